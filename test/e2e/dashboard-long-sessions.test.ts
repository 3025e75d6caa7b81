import { expect, test } from 'bun:test'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { testApp } from '../support/app.ts'
import { OWNER, PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { openBeside } from '../support/database.ts'
import { codeOf, enableTwoFactor } from '../support/totp.ts'

/** “Stay signed in for 30 days”. */

const DAY = 24 * HOUR
const MONTH_SECONDS = 30 * 24 * 3600

const cookieIn = ({ setCookies }: Seen): string =>
  setCookies.find((cookie) => cookie.startsWith('hopcode=')) ?? ''

const stay = (visitor: Visitor): Promise<Seen> =>
  visitor.post('/app/sign-in', { email: OWNER, password: PASSWORD, stay: '1' })

test('a long session lasts 30 days without being used, and not a millisecond longer', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const owner = new Visitor(app)
  const signedIn = await stay(owner)
  expect(cookieIn(signedIn)).toEndWith(`; Path=/; HttpOnly; SameSite=Lax; Max-Age=${MONTH_SECONDS}`)
  app.advance(30 * DAY - 1)
  expect((await owner.get('/app/account')).status).toBe(200)
  app.advance(1)
  expect((await owner.get('/app/account')).location).toStartWith('/app/sign-in')
})

test('without the choice a session expires as before, and its cookie with the browser', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const owner = new Visitor(app)
  const signedIn = await owner.signIn(OWNER)
  expect(cookieIn(signedIn)).not.toContain('Max-Age')
  app.advance(30 * MINUTE)
  expect((await owner.get('/app/account')).status).toBe(303)
})

test('a sign-in deletes expired sessions and keeps long ones', async () => {
  await using app = await testApp()
  const { owner: short } = await setUpOwner(app)
  const long = new Visitor(app)
  await stay(long)
  app.advance(13 * HOUR)
  const other = new Visitor(app)
  await other.signIn(OWNER)
  expect((await short.get('/app/account')).status).toBe(303)
  const { status, text } = await long.get('/app/account/security')
  expect(status).toBe(200)
  expect(text.match(/stays signed in until/g)).toHaveLength(1)
})

test('a sign-in ends no session that lasts longer than a long one by SESSION_MAX_HOURS', async () => {
  await using app = await testApp({
    env: { SESSION_MAX_HOURS: '2160' },
  })
  const { owner } = await setUpOwner(app)
  {
    using db = openBeside(app.dataDir)
    db.run('UPDATE sessions SET created_at = created_at - ?', [40 * DAY])
  }
  await new Visitor(app).signIn(OWNER)
  expect((await owner.get('/app/account')).status).toBe(200)
})

test('a long session enters the password again for keys, two-factor sign-in and deletion', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const owner = new Visitor(app)
  await stay(owner)
  app.advance(20 * DAY)
  const requests = [
    ['/app/keys/new', { name: 'Website', scope: 'read' }, 403],
    ['/app/keys/rotate', { key: '1' }, 403],
    ['/app/keys/revoke', { key: '1' }, 403],
    ['/app/keys/end', { key: '1' }, 403],
    ['/app/account/security/password', { password: 'eleven silent bees' }, 422],
    ['/app/account/two-factor/begin', {}, 403],
  ] as const
  for (const [path, fields, status] of requests) {
    const seen = await owner.post(path, { ...fields }, { from: '/app/account' })
    expect({ path, status: seen.status }).toEqual({ path, status })
  }
  expect((await owner.get('/app/keys')).text.match(/aria-label="Revoke the key/g)).toHaveLength(1)
})

test('a changed password gives a long session a new cookie for the rest of its time', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const owner = new Visitor(app)
  await stay(owner)
  app.advance(10 * DAY)
  const sent = { current: PASSWORD, password: 'eleven silent bees' }
  const changed = await owner.post('/app/account/security/password', sent, { from: '/app/account' })
  expect(cookieIn(changed)).toEndWith(`Max-Age=${20 * 24 * 3600}`)
  app.advance(20 * DAY - 1)
  expect((await owner.get('/app/account')).status).toBe(200)
  app.advance(1)
  expect((await owner.get('/app/account')).status).toBe(303)
})

test('the choice is kept after a wrong password', async () => {
  await using app = await testApp()
  await setUpOwner(app)
  const sent = { email: OWNER, password: 'not this one', stay: '1' }
  const { status, text } = await new Visitor(app).post('/app/sign-in', sent)
  expect(status).toBe(401)
  expect(text).toMatch(/name="stay" value="1" checked/)
})

test('the choice holds across the second step of a sign-in', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const { key } = await enableTwoFactor(app, owner)
  const there = new Visitor(app)
  const first = await stay(there)
  expect(first.location).toBe('/app/sign-in/code?stay=1')
  const page = await there.get(first.location ?? '')
  expect(page.text).toMatch(/name="stay" value="1" checked/)
  app.advance(MINUTE)
  const fields = { code: codeOf(key, app.now()), stay: '1' }
  const seen = await there.post('/app/sign-in/code', fields)
  expect(cookieIn(seen)).toEndWith(`Max-Age=${MONTH_SECONDS}`)
})
