import { expect, test } from 'bun:test'
import { MINUTE } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, type Seen, setUpOwner, Visitor } from '../support/dashboard.ts'
import { addOneTimeLink, makeMember, setupLinkByCommand } from '../support/members.ts'

/** Nobody gets into an account, or keeps it, with less than its password. */

const NEW_PASSWORD = 'eleven silent bees'
const ACCOUNTS = '/app/service/accounts'

const setupPath = (app: TestApp) => new URL(app.setupLink).pathname
const keyIn = ({ text }: Seen): string => /value="(hop_\w+)"/.exec(text)?.[1] ?? ''
const linkIn = ({ text }: Seen): string => /value="http:\/\/hop\.test([^"]+)"/.exec(text)?.[1] ?? ''

/** Somebody who signs up with the owner's address before the owner does. */
async function signUpAs(app: TestApp, email: string, password: string) {
  const eve = new Visitor(app, { from: '192.0.2.66' })
  await eve.signUp(email, password)
  const seen = await eve.post(
    '/app/keys/new',
    { name: 'Eve', scope: 'write' },
    { from: '/app/keys' },
  )
  return { eve, key: keyIn(seen) }
}

test('who registered the owner’s address first does not become owner: set-up asks for the password of that account', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { eve, key } = await signUpAs(app, 'Owner@Example.com', PASSWORD)
  const owner = new Visitor(app)
  for (const current of [undefined, '', NEW_PASSWORD, 'not this one']) {
    const sent = { email: OWNER, password: NEW_PASSWORD, ...(current !== undefined && { current }) }
    const { status, text } = await owner.post(setupPath(app), sent)
    expect([current, status]).toEqual([current, 422])
    expect(text).toMatch(/id="field-current"[^>]* aria-invalid="true"/)
    expect(text).not.toContain(NEW_PASSWORD)
  }
  expect((await eve.get('/app/account')).status).toBe(200)
  expect((await eve.get('/app/service')).status).toBe(404)
  expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 200 })
  // The link still works, for an address of one's own.
  const other = await owner.post(setupPath(app), { email: 'me@example.com', password: PASSWORD })
  expect(keyIn(other)).toMatch(/^hop_/)
  expect((await owner.get('/app/service')).status).toBe(200)
  expect((await eve.get('/app/service')).status).toBe(404)
})

test('set-up over an account, with its password, ends its sessions, keys and pending links at once', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { eve, key } = await signUpAs(app, OWNER, PASSWORD)
  const reset = addOneTimeLink(app, { purpose: 'reset', email: OWNER })
  const owner = new Visitor(app)
  const sent = { email: OWNER, password: NEW_PASSWORD, current: PASSWORD }
  const seen = await owner.post(setupPath(app), sent)
  expect([seen.status, seen.location]).toEqual([303, '/app/keys?done=owner'])
  expect((await owner.get('/app/keys?done=owner')).text).toContain('No API key')
  expect((await owner.get('/app/service')).status).toBe(200)
  expect((await eve.get('/app/account')).location).toStartWith('/app/sign-in')
  expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 401 })
  expect((await new Visitor(app).get(reset)).status).toBe(404)
  expect((await new Visitor(app).signIn(OWNER)).status).toBe(401)
  expect((await new Visitor(app).signIn(OWNER, NEW_PASSWORD)).status).toBe(303)
})

test('a set-up link of the command line makes no member an owner without the member’s password', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const ann = await makeMember(app, 'ann@example.com')
  const invite = linkIn(
    await owner.post(`${ACCOUNTS}/invites`, { email: '', plan: 'pro' }, { from: ACCOUNTS }),
  )
  const path = new URL(await setupLinkByCommand(app)).pathname
  const operator = new Visitor(app)
  const sent = { email: 'ann@example.com', password: NEW_PASSWORD }
  expect((await operator.post(path, sent)).status).toBe(422)
  expect((await ann.get('/app/service')).status).toBe(404)
  expect((await operator.post(path, { ...sent, current: PASSWORD })).status).toBe(303)
  expect((await operator.get('/app/service')).status).toBe(200)
  expect((await ann.get('/app/account')).status).toBe(303)
  // Those of others go on.
  expect((await owner.get('/app/account')).status).toBe(200)
  expect((await new Visitor(app).get(invite)).status).toBe(200)
})

test('set-up over an account has five guesses at its password, then one a minute', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  await signUpAs(app, OWNER, PASSWORD)
  const owner = new Visitor(app)
  const guess = async (current: string) =>
    (await owner.post(setupPath(app), { email: OWNER, password: NEW_PASSWORD, current })).status
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) statuses.push(await guess(`guess number ${i}`))
  expect(statuses).toEqual([422, 422, 422, 422, 422, 429])
  app.advance(MINUTE)
  expect(await guess(PASSWORD)).toBe(303)
})

test('a copied session cookie is worth nothing once its owner has changed the password', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const thief = new Visitor(app, { from: '192.0.2.66' })
  for (const [name, value] of ann.cookies) thief.cookies.set(name, value)
  expect((await thief.get('/app/account')).status).toBe(200)
  const sent = { current: PASSWORD, password: NEW_PASSWORD }
  const seen = await ann.post('/app/account/security/password', sent, { from: '/app/account' })
  expect(seen.location).toBe('/app/account/security?done=password')
  expect(seen.setCookies.join()).toMatch(/hopcode=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax/)
  expect((await thief.get('/app/account')).status).toBe(303)
  expect((await ann.get('/app/account')).status).toBe(200)
})

/** The button that each key on the page has. */
const ANOTHER = { name: 'Another', scope: 'write' }
const KEY_ROWS = /aria-label="(Revoke|End) the key /g

/** What a cookie alone must not be enough for, and a part of what follows once it is done. */
const GUARDED: [path: string, fields: Record<string, string>, done: string][] = [
  ['/app/keys/rotate', { key: '1' }, 'see it again'],
  ['/app/keys/new', { name: 'Shop', scope: 'read' }, 'see it again'],
  ['/app/keys/revoke', { key: '1' }, 'done=revoked'],
  ['/app/keys/end', { key: '1' }, 'done=ended'],
  [`${ACCOUNTS}/1/reset`, {}, '/app/reset/'],
  [`${ACCOUNTS}/invites`, { email: '', plan: 'enterprise' }, '/app/join/'],
  [`${ACCOUNTS}/1/plan`, { plan: 'pro' }, 'done=plan'],
  // The last owner cannot be disabled.
  [`${ACCOUNTS}/1/disable`, { links: '1' }, 'Disable'],
]
test.each(GUARDED)(
  'ten minutes after the password was entered, it is asked for again before %s',
  async (path, fields, done) => {
    await using app = await testApp()
    const { owner, key } = await setUpOwner(app)
    app.advance(10 * MINUTE)
    const keysBefore = (await owner.get('/app/keys')).text.match(KEY_ROWS)
    const asked = await owner.post(path, fields, { from: '/app/account' })
    expect(asked.status).toBe(403)
    expect(asked.text).toContain('Confirm your password')
    expect(asked.text).toContain(`action="${path}"`)
    for (const [name, value] of Object.entries(fields)) {
      expect(asked.text).toContain(`<input type="hidden" name="${name}" value="${value}">`)
    }
    const { csrf } = asked
    const wrong = await owner.post(path, { ...fields, csrf, current: 'not this one' })
    expect(wrong.status).toBe(422)
    expect(wrong.invalid).toEqual(['current'])
    expect((await owner.get('/app/keys')).text.match(KEY_ROWS)).toEqual(keysBefore)
    expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 200 })
    const seen = await owner.post(path, { ...fields, csrf, current: PASSWORD })
    expect(`${seen.location}${seen.text}`).toContain(done)
    // Entered once, it holds for ten minutes more.
    app.advance(10 * MINUTE - 1)
    const again = await owner.post('/app/keys/new', ANOTHER, { from: '/app/account' })
    expect(again.text).not.toContain('Confirm your password')
    app.advance(1)
    const late = await owner.post(
      '/app/keys/new',
      { ...ANOTHER, name: 'Late' },
      { from: '/app/account' },
    )
    expect(late.text).toContain('Confirm your password')
  },
)

test('within ten minutes of signing in, the password is not asked for again', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  app.advance(10 * MINUTE - 1)
  const seen = await owner.post('/app/keys/rotate', { key: '1' }, { from: '/app/keys' })
  expect(keyIn(seen)).toMatch(/^hop_/)
})

test('a confirmed password holds for its own session alone, and for none after the clock was set back', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const there = new Visitor(app)
  await there.signIn(OWNER)
  app.advance(10 * MINUTE)
  const ask = (visitor: Visitor, fields: Record<string, string>) =>
    visitor.post('/app/keys/new', { ...ANOTHER, ...fields }, { from: '/app/account' })
  expect((await ask(owner, { current: PASSWORD })).status).toBe(200)
  expect((await ask(there, { name: 'There' })).status).toBe(403)
  app.stepWall(-5 * MINUTE)
  expect((await ask(owner, { name: 'Owner' })).status).toBe(403)
})

test.each(['/app/keys/rotate', '/app/account/delete'])(
  'the password that %s asks for again has five guesses in a session',
  async (path) => {
    await using app = await testApp()
    const ann = await makeMember(app, 'ann@example.com')
    app.advance(10 * MINUTE)
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) {
      const sent = { key: '1', current: `guess number ${i}` }
      statuses.push((await ann.post(path, sent, { from: '/app/account' })).status)
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429])
  },
)

test('an invitation ends when the account that sent it is disabled or deleted', async () => {
  await using app = await testApp()
  const { owner } = await setUpOwner(app)
  const path = new URL(await setupLinkByCommand(app)).pathname
  const other = new Visitor(app)
  await other.post(path, { email: 'other@example.com', password: PASSWORD })
  const invite = async (sender: Visitor) =>
    linkIn(await sender.post(`${ACCOUNTS}/invites`, { email: '', plan: 'pro' }, { from: ACCOUNTS }))
  const kept = await invite(owner)
  const status = async (link: string) => (await new Visitor(app).get(link)).status

  const first = await invite(other)
  await owner.post(`${ACCOUNTS}/2/disable`, {}, { from: ACCOUNTS })
  await owner.post(`${ACCOUNTS}/2/enable`, {}, { from: ACCOUNTS })
  expect([await status(first), await status(kept)]).toEqual([404, 200])
  const sent = { email: 'guest@example.com', password: 'eleven silent bees' }
  expect((await new Visitor(app).post(first, sent, { from: '/app/sign-in' })).status).toBe(404)

  await other.signIn('other@example.com')
  const second = await invite(other)
  expect(await status(second)).toBe(200)
  await other.post('/app/account/delete', { current: PASSWORD })
  expect([await status(second), await status(kept)]).toEqual([404, 200])
})

test('set-up, a changed password and a reset all refuse a password made of the address', async () => {
  await using app = await testApp()
  const password = 'Owner2026!'
  const refused = await new Visitor(app).post(setupPath(app), { email: OWNER, password })
  expect([refused.status, keyIn(refused)]).toEqual([422, ''])
  const { owner } = await setUpOwner(app)
  const sent = { current: PASSWORD, password }
  const changed = await owner.post('/app/account/security/password', sent, { from: '/app/account' })
  expect(changed.status).toBe(422)
  expect(changed.invalid).toEqual(['password'])
  const reset = addOneTimeLink(app, { purpose: 'reset', email: OWNER })
  expect((await new Visitor(app).post(reset, { password })).status).toBe(422)
  expect((await owner.get('/app/account')).status).toBe(200)
})
