import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { testApp } from '../support/app.ts'
import { Conversation, firstAnswer, slowly } from '../support/conversation.ts'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { shared } from '../support/shared.ts'

/** Requests that are slow, broken off, or many at once, to get past what judges them. */

const FORM = 'application/x-www-form-urlencoded'

test('a form that arrives after its session has ended changes nothing', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const { csrf, text } = await ann.get('/app/keys')
  const replaces = /name="replaces" value="(\d*)"/.exec(text)?.[1] ?? ''
  const order = {
    head: [
      'POST /app/keys/new HTTP/1.1',
      `Cookie: hopcode=${ann.cookies.get('hopcode')}`,
      `Content-Type: ${FORM}`,
    ],
    body: `replaces=${replaces}&csrf=${csrf}`,
  }
  const answer = await slowly(app, order, () =>
    ann.post('/app/sign-out', {}, { from: '/app/keys' }),
  )
  expect(answer.status).toBe(303)
  expect(answer.text).not.toContain('hop_')
})

test.each([
  { path: '/api/shorten', json: { url: 'https://example.com/late' } },
  { path: '/api/reserve', json: { code: 'LATE2026' } },
])('$path makes no link for an account that is deleted meanwhile', async ({ path, json }) => {
  await using app = await testApp()
  const ann = await makeMember(app, 'free@example.com')
  const head = [
    `POST ${path} HTTP/1.1`,
    `X-API-Key: ${app.key('free')}`,
    'Content-Type: application/json',
  ]
  const answer = await slowly(app, { head, body: JSON.stringify(json) }, async () => {
    const seen = await ann.post('/app/account/delete', { current: PASSWORD })
    expect(seen.location).toBe('/app/sign-in?done=deleted')
  })
  expect(answer.status).toBe(401)
  expect(answer.text).not.toContain('passcode":')
  expect((await app.reserve('LATE2026', 'pro')).passcode).toHaveLength(24)
})

test('of many registrations sent at once, no more than five make an account', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { csrf, setCookies } = await new Visitor(app).get('/app/sign-up')
  const cookie = setCookies[0]?.split(';')[0] ?? ''
  const seen = await Promise.all(
    Array.from({ length: 8 }, (_, i) => {
      const visitor = new Visitor(app, { cookie })
      const sent = { email: `user${i}@example.com`, password: PASSWORD, csrf }
      return visitor.post('/app/sign-up', sent)
    }),
  )
  expect(seen.map(({ status }) => status).sort()).toEqual([303, 303, 303, 303, 303, 429, 429, 429])
})

test('a browser that has signed in is one browser, however it writes its mark', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const mark = ann.cookies.get('hopcode-known') ?? ''
  const visitor = new Visitor(app)
  const { csrf } = await visitor.get('/app/sign-in')
  const statuses: number[] = []
  for (const [i, more] of ['', '', '', '', '.', '.x', '=', '==', 'A', '..'].entries()) {
    visitor.cookies.set('hopcode-known', mark + more)
    const sent = { email: 'ann@example.com', password: `guess number ${i}`, csrf }
    statuses.push((await visitor.post('/app/sign-in', sent)).status)
  }
  expect(statuses.slice(0, 9)).toEqual(Array(9).fill(401))
  expect(statuses[9]).toBe(429)
})

const untouched = shared(testApp)

test.each(['', '%', '[', 'a b', 'localhost:99999'])(
  'a request with the host %j gets an answer of ours',
  async (host) => {
    const app = await untouched()
    using conversation = await Conversation.open(app.url)
    conversation.send(`GET /app/links HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const { status, headers } = await firstAnswer(conversation)
    expect({ status, to: headers.get('location') }).toEqual({
      status: 303,
      to: '/app/sign-in?next=%2Fapp%2Flinks',
    })
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  },
)

test('a sender that goes away is no failure of the service', async () => {
  await using app = await testApp()
  const { promise: gone, resolve } = Promise.withResolvers<void>()
  const { hostname, port } = new URL(app.url)
  const socket = connect({ host: hostname, port: Number(port) }, () => {
    const head = ['POST /app/sign-in HTTP/1.1', 'Host: hop.test', `Content-Type: ${FORM}`]
    socket.write(`${[...head, 'Content-Length: 100', '', ''].join('\r\n')}abc`, () => {
      void app.call('GET', '/-/live').then(() => socket.destroy())
    })
  })
  socket.on('close', () => resolve())
  await gone
  for (let i = 0; i < 20; i++) await app.call('GET', '/-/live')
  expect(app.log.join()).not.toContain('request.failed')
})

test('a form of somebody who is not signed in has at most 16 KiB', async () => {
  await using app = await testApp()
  const visitor = new Visitor(app)
  const { csrf } = await visitor.get('/app/sign-in')
  const email = 'a'.repeat(16 * 1024)
  const seen = await visitor.post('/app/sign-in', { email, password: PASSWORD, csrf })
  expect(seen.status).toBe(413)
  expect(seen.text).toContain('at most 16 KiB')
  const { owner } = await setUpOwner(app)
  const more = { current: PASSWORD, password: 'x'.repeat(20_000) }
  expect(
    (await owner.post('/app/account/security/password', more, { from: '/app/account' })).status,
  ).toBe(422)
})
