import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { PASSWORD, type Seen, Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, makeMember } from '../support/members.ts'

/** A login flood from one network, or by one member, keeps nobody else out. */

const ANN = 'ann@example.com'

/** One sign-in with a wrong password from each address, all at once. */
async function flood(app: TestApp, addresses: readonly string[]): Promise<Promise<Seen>[]> {
  const { csrf, cookies } = await openForm(app)
  return addresses.map((from, i) => {
    const visitor = new Visitor(app, { from })
    for (const [name, value] of cookies) visitor.cookies.set(name, value)
    const sent = { email: `user${i}@example.com`, password: 'a wrong guess', csrf }
    return visitor.post('/app/sign-in', sent)
  })
}

async function openForm(app: TestApp) {
  const visitor = new Visitor(app)
  const { csrf } = await visitor.get('/app/sign-in')
  return { csrf, cookies: visitor.cookies }
}

/** Resolves at the first refusal: then every place in the queue was taken. */
const firstBusy = (answers: readonly Promise<Seen>[]): Promise<unknown> =>
  Promise.any(
    answers.map(async (answer) => {
      const { status } = await answer
      if (status !== 503) throw new Error(`answered ${status}`)
    }),
  )

const hex = (n: number) => n.toString(16)

test.each([
  { network: 'IPv6 /56', clientIp: (i: number) => `2001:db8:1:${hex(0x100 + i)}::1` },
  { network: 'IPv4 /24', clientIp: (i: number) => `198.51.100.${i}` },
])('one $network that fills the sign-in queue keeps no other network out', async (row) => {
  await using app = await testApp({ realPasswords: true })
  await makeMember(app, ANN)
  const attack = await flood(
    app,
    Array.from({ length: 140 }, (_, i) => row.clientIp(i)),
  )
  await firstBusy(attack)
  for (const from of ['203.0.113.7', '2001:db8:2::1']) {
    expect((await new Visitor(app, { from }).signIn(ANN)).status).toBe(303)
  }
  await app.beginStop()
  await Promise.all(attack)
})

test('a queue full of sign-ins from many networks keeps no holder of a one-time link out', async () => {
  await using app = await testApp({ realPasswords: true })
  await makeMember(app, ANN)
  const invite = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  const reset = addOneTimeLink(app, { purpose: 'reset', email: ANN })
  const addresses = Array.from({ length: 140 }, (_, i) => `2001:db8:${hex(i + 1)}::1`)
  const attack = await flood(app, addresses)
  await firstBusy(attack)
  const sent = { email: 'guest@example.com', password: PASSWORD }
  expect((await new Visitor(app).post(invite, sent)).status).toBe(200)
  expect((await new Visitor(app).post(reset, { password: PASSWORD })).status).toBe(303)
  const path = new URL(app.setupLink).pathname
  const owner = { email: 'owner@example.com', password: PASSWORD }
  expect((await new Visitor(app).post(path, owner)).status).toBe(200)
  await app.beginStop()
  await Promise.all(attack)
})

test('one member who sends the right password without end keeps no known browser out', async () => {
  await using app = await testApp({ realPasswords: true })
  const ann = await makeMember(app, ANN)
  await ann.post('/app/sign-out', {}, { from: '/app/account' })
  const eve = await makeMember(app, 'eve@example.com')
  const { csrf } = await eve.get('/app/account')
  const sent = { current: PASSWORD, password: PASSWORD, csrf }
  const attack = Array.from({ length: 60 }, () => eve.post('/app/account/security/password', sent))
  await Promise.race(attack)
  expect((await ann.signIn(ANN)).status).toBe(303)
  const statuses = (await Promise.all(attack)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 303).length).toBeLessThanOrEqual(5)
  expect(statuses).toContain(429)
})

test('the right password asked for again inside a session counts: five at once', async () => {
  await using app = await testApp({ realPasswords: true })
  const ann = await makeMember(app, ANN)
  const sent = { current: PASSWORD, password: PASSWORD }
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) {
    statuses.push(
      (await ann.post('/app/account/security/password', sent, { from: '/app/account' })).status,
    )
  }
  expect(statuses).toEqual([303, 303, 303, 303, 303, 429])
  app.advance(60_000)
  expect(
    (await ann.post('/app/account/security/password', sent, { from: '/app/account' })).status,
  ).toBe(303)
})
