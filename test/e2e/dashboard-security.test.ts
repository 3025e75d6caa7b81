import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { OWNER, PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { openBeside } from '../support/database.ts'
import { addOneTimeLink, makeMember } from '../support/members.ts'
import { sharedApp } from '../support/shared.ts'

/** How the dashboard defends accounts: sessions, cookies, forms, headers. */

const COOKIE = 'hopcode'
const sessionOf = (visitor: Visitor) => visitor.cookies.get(COOKIE) ?? ''

/** Every byte of the database, its log included. */
async function stored(app: TestApp): Promise<string> {
  const files = ['hopcode.db', 'hopcode.db-wal'].map((name) => Bun.file(join(app.dataDir, name)))
  const parts = await Promise.all(
    files.map(async (file) => ((await file.exists()) ? Buffer.from(await file.bytes()) : '')),
  )
  return parts.map((part) => part.toString('latin1')).join()
}

test('a session’s token has 256 random bits and is stored as a hash alone', async () => {
  await using app = await testApp({ realPasswords: true })
  const { owner } = await setUpOwner(app)
  const token = sessionOf(owner)
  expect(Buffer.from(token, 'base64url')).toHaveLength(32)
  const all = await stored(app)
  expect(all).toContain(OWNER)
  expect(all).not.toContain(token)
  expect(all).not.toContain(Buffer.from(token, 'base64url').toString('latin1'))
  expect(all).not.toContain(app.setupLink.split('/').at(-1) ?? '?')
  expect(all).not.toContain(PASSWORD)
  expect(all).toContain('$argon2id$v=19$m=19456,t=2,p=1$')
})

test('signing in makes a new session and ends the one that the browser had', async () => {
  await using app = await testApp()
  await makeMember(app, 'ann@example.com')
  const planted = new Visitor(app)
  planted.cookies.set(COOKIE, 'A'.repeat(43))
  await planted.signIn('ann@example.com')
  const first = sessionOf(planted)
  expect(first).not.toBe('A'.repeat(43))
  const again = new Visitor(app)
  const token = (await again.get('/app/sign-in')).csrf
  again.cookies.set(COOKIE, first)
  await again.post('/app/sign-in', { email: 'ann@example.com', password: PASSWORD, csrf: token })
  expect(sessionOf(again)).not.toBe(first)
  expect((await planted.get('/app/account')).status).toBe(303)
  expect((await again.get('/app/account')).status).toBe(200)
})

test('signing out ends the session on the server, not in the browser alone', async () => {
  await using app = await testApp()
  const ann = await makeMember(app, 'ann@example.com')
  const token = sessionOf(ann)
  const seen = await ann.post('/app/sign-out', {}, { from: '/app/account' })
  expect(seen.location).toBe('/app/sign-in?done=out')
  expect(ann.cookies.has(COOKIE)).toBe(false)
  ann.cookies.set(COOKIE, token)
  expect((await ann.get('/app/account')).status).toBe(303)
})

test('over https every cookie is __Host-, Secure, HttpOnly and SameSite', async () => {
  await using app = await testApp({ env: { BASE_URL: 'https://hop.test' } })
  const visitor = new Visitor(app)
  const path = new URL(app.setupLink).pathname
  const page = await visitor.get(path)
  const seen = await visitor.post(path, { email: OWNER, password: PASSWORD })
  const cookies = [...page.setCookies, ...seen.setCookies]
  expect(cookies.map((cookie) => cookie.split('=')[0]).sort()).toEqual([
    '__Host-hopcode',
    '__Host-hopcode-form',
    '__Host-hopcode-form',
    '__Host-hopcode-known',
  ])
  for (const cookie of cookies) {
    expect(cookie).toContain('; Path=/; HttpOnly; SameSite=Lax; Secure')
    expect(cookie).not.toContain('Domain')
  }
  expect((await visitor.get('/app/account')).status).toBe(200)
})

test('over http://localhost the cookies are plain, because a browser would take no other', async () => {
  await using app = await testApp({ env: { BASE_URL: 'http://localhost:3000' } })
  const { setCookies } = await new Visitor(app).get('/app/sign-in')
  expect(setCookies[0]).toMatch(/^hopcode-form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  expect(app.log.join()).not.toContain('dashboard.not_private')
  await using far = await testApp({ env: { BASE_URL: 'http://links.example' } })
  expect(far.log.join()).toContain('dashboard.not_private')
})

const limits = [
  { name: '30 minutes without use', env: {}, step: 30 * MINUTE - 1 },
  { name: 'SESSION_IDLE_MINUTES', env: { SESSION_IDLE_MINUTES: '5' }, step: 5 * MINUTE - 1 },
]
test.each(limits)('a session ends after $name, and not before', async ({ env, step }) => {
  await using app = await testApp({ env })
  const ann = await makeMember(app, 'ann@example.com')
  app.advance(step + 1)
  expect((await ann.get('/app/account')).status).toBe(303)
  const bea = await makeMember(app, 'bea@example.com')
  app.advance(step)
  expect((await bea.get('/app/account')).status).toBe(200)
})

test.each([
  { name: '12 hours', env: {}, hours: 12 },
  { name: 'SESSION_MAX_HOURS', env: { SESSION_MAX_HOURS: '2' }, hours: 2 },
])('a session ends after $name however much it is used', async ({ env, hours }) => {
  await using app = await testApp({ env: { SESSION_IDLE_MINUTES: '1440', ...env } })
  const ann = await makeMember(app, 'ann@example.com')
  app.advance(hours * HOUR - 1)
  expect((await ann.get('/app/account')).status).toBe(200)
  app.advance(1)
  expect((await ann.get('/app/account')).status).toBe(303)
})

/** What is under the random pad, which is the first half of a token. */
function unmasked(token: string): string {
  const bytes = Buffer.from(token, 'base64url')
  return Buffer.from(bytes.subarray(32).map((byte, i) => byte ^ (bytes[i] ?? 0))).toString(
    'base64url',
  )
}

const foreign = [
  { name: 'from another site', headers: { 'sec-fetch-site': 'cross-site' } },
  { name: 'from a sister host', headers: { 'sec-fetch-site': 'same-site' } },
  { name: 'of a foreign origin', headers: { origin: 'https://evil.example' }, plain: true },
  { name: 'of no origin', headers: { origin: 'null' }, plain: true },
  { name: 'without a token', headers: {}, csrf: '' },
  { name: 'with a token that is nonsense', headers: {}, csrf: 'A'.repeat(86) },
  { name: 'with a token without its pad', headers: {}, csrf: 'unmasked' },
  { name: 'with the token of another session', headers: {}, csrf: 'eve' },
]
const withTwo = sharedApp(async (app) => ({
  ann: await makeMember(app, 'ann@example.com'),
  eve: await makeMember(app, 'eve@example.com'),
}))

test.each(foreign)(
  'a form $name is refused, and changes nothing',
  async ({ headers, csrf, plain }) => {
    const { app, ann, eve } = await withTwo()
    const own = (await ann.get('/app/account')).csrf
    const stolen =
      csrf === 'eve'
        ? (await eve.get('/app/account')).csrf
        : csrf === 'unmasked'
          ? unmasked(own)
          : csrf
    const sent = { current: PASSWORD, password: 'eleven silent bees', csrf: stolen ?? own }
    const answer = plain
      ? await ann.postAsOld('/app/account/security/password', sent, headers)
      : await ann.post('/app/account/security/password', sent, { headers })
    expect(answer.status).toBe(403)
    expect((await new Visitor(app).signIn('ann@example.com')).status).toBe(303)
  },
)

test.each(foreign.slice(0, 6))(
  'a sign-in form $name is refused',
  async ({ headers, csrf, plain }) => {
    const { app } = await withTwo()
    const visitor = new Visitor(app)
    const own = (await visitor.get('/app/sign-in')).csrf
    const sent = { email: 'ann@example.com', password: PASSWORD, csrf: csrf ?? own }
    const answer = plain
      ? await visitor.postAsOld('/app/sign-in', sent, headers)
      : await visitor.post('/app/sign-in', sent, { headers })
    expect(answer.status).toBe(403)
    expect(visitor.cookies.has(COOKIE)).toBe(false)
  },
)

test('a browser that sends no Sec-Fetch-Site is known by the origin of BASE_URL or of its host', async () => {
  await using app = await testApp()
  await makeMember(app, 'ann@example.com')
  for (const origin of ['http://hop.test', app.url]) {
    const visitor = new Visitor(app)
    const { csrf } = await visitor.get('/app/sign-in')
    const sent = { email: 'ann@example.com', password: PASSWORD, csrf }
    const seen = await visitor.postAsOld('/app/sign-in', sent, { origin })
    expect(seen.status).toBe(303)
  }
})

test('an unknown address and a wrong password are answered alike', async () => {
  await using app = await testApp()
  await makeMember(app, 'ann@example.com')
  const answers = await Promise.all(
    ['ann@example.com', 'bob@example.com'].map(async (email) => {
      const { status, text, headers } = await new Visitor(app).signIn(email, 'not the password')
      const same = text.replaceAll(email, 'E').replace(/name="csrf" value="[^"]+"/, '')
      return { status, same, names: [...headers.keys()].sort() }
    }),
  )
  expect(answers[0]).toEqual(answers[1] as (typeof answers)[0])
  expect(answers[0]?.status).toBe(401)
})

test('every answer of the dashboard has the security headers, and none may be stored', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { owner } = await setUpOwner(app)
  const anonymous = new Visitor(app)
  const paths = ['/app', '/app/', '/app/sign-in', '/app/sign-up', '/app/account', '/app/nothing']
  const more = [
    '/app/account/delete',
    '/app/setup/x',
    '/app/assets/x',
    app.setupLink,
    '/app/sign-out',
  ]
  for (const visitor of [owner, anonymous]) {
    for (const path of [...paths, ...more.map((text) => text.replace('http://hop.test', ''))]) {
      const { headers } = await visitor.get(path)
      const policy = headers.get('content-security-policy') ?? ''
      expect([path, policy]).toEqual([path, expect.stringContaining("default-src 'none'")])
      expect(policy).toContain("script-src 'self';")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect([path, headers.get('cache-control')]).toEqual([path, 'no-store'])
    }
  }
})

test('no page has a script or a style of its own, and nothing from elsewhere', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { owner } = await setUpOwner(app)
  for (const path of ['/app/account', '/app/account/delete', '/app/nothing']) {
    const { text } = await owner.get(path)
    expect(text).not.toMatch(/<script(?![^>]*\ssrc="\/app\/assets\/)/)
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i)
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
  }
})

test('files of the dashboard are kept for good under a name that changes with them', async () => {
  await using app = await testApp()
  const { text } = await new Visitor(app).get('/app/sign-in')
  const files = [...text.matchAll(/"(\/app\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '')
  expect(new Set(files).size).toBe(7)
  for (const path of files) {
    const { status, headers } = await new Visitor(app).get(path)
    expect({ path, status, kept: headers.get('cache-control') }).toEqual({
      path,
      status: 200,
      kept: 'public, max-age=31536000, immutable',
    })
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('no password, key, session or one-time link stands in the log, however much is logged', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'all' } })
  const { owner, key } = await setUpOwner(app)
  const invite = addOneTimeLink(app, { purpose: 'invite', plan: 'free' })
  const anonymous = new Visitor(app)
  await anonymous.get(invite)
  await anonymous.post(invite, { email: 'no address', password: PASSWORD })
  await anonymous.signIn(OWNER, 'some wrong password')
  await owner.get(`/app/join/${invite.split('/').at(-1)}`)
  // A failure logs its path.
  using db = openBeside(app.dataDir)
  db.run('DROP TABLE one_time_links')
  expect((await anonymous.get(invite)).status).toBe(500)
  const log = app.log.join('\n')
  expect(log).toContain('/app/join/')
  const secrets = [PASSWORD, 'some wrong password', key, sessionOf(owner), app.setupLink, invite]
  for (const secret of secrets) expect(log).not.toContain(secret.split('/').at(-1) ?? '?')
})

test('a failure is a page with the number of the request, and says nothing of its cause', async () => {
  await using app = await testApp()
  const anonymous = new Visitor(app)
  using db = openBeside(app.dataDir)
  db.run('DROP TABLE one_time_links')
  const { status, headers, text } = await anonymous.get(new URL(app.setupLink).pathname)
  expect(status).toBe(500)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(text).toContain(headers.get('x-request-id') ?? '?')
  expect(text).not.toContain('one_time_links')
})

const malformed = [
  { name: 'JSON', type: 'application/json', body: '{}', status: 415 },
  { name: 'no type', type: '', body: 'a=1', status: 415 },
  {
    name: 'more than 64 KiB',
    type: 'application/x-www-form-urlencoded',
    body: 'a'.repeat(2 ** 16 + 1),
    status: 413,
  },
  { name: 'a broken multipart', type: 'multipart/form-data; boundary=x', body: '--y', status: 415 },
]
test.each(malformed)('a form of $name is refused with a page', async ({ type, body, status }) => {
  const { app } = await withTwo()
  const headers = { 'content-type': type, 'sec-fetch-site': 'same-origin' }
  // Sent in pieces, a body declares no length.
  const inPieces = async function* () {
    yield Buffer.from(body.slice(0, 1))
    yield Buffer.from(body.slice(1))
  }
  for (const sent of [body, inPieces()]) {
    const answer = await fetch(`${app.url}/app/sign-in`, { method: 'POST', headers, body: sent })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  }
})

test('pages of the dashboard are charged to nobody’s read budget', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '3' } })
  const visitor = new Visitor(app, { from: '192.0.2.77' })
  for (let i = 0; i < 8; i++) expect((await visitor.get('/app/sign-in')).status).toBe(200)
  const { headers } = await app.call('GET', '/api/status', { from: '192.0.2.77' })
  expect(headers.get('x-ratelimit-remaining')).toBe('2')
})
