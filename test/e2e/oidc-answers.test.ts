import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { Visitor } from '../support/dashboard.ts'
import {
  ANN,
  consent,
  lastReason,
  lastRefused,
  makeUser,
  pathOf,
  START,
  signedInAs,
  signInWith,
  withProvider,
} from '../support/oidc.ts'
import { DISCOVERY } from '../support/oidc-provider.ts'

/** Answers of a provider that are thin, wrong, large or late. */

const OPEN = { OIDC_SIGNUP: 'open' }

const VERIFIED = { email_verified: true }
const { email } = ANN

test.each([
  ['no flag in the ID token', { email }, { email, ...VERIFIED }, 303],
  ['the flag alone', { email }, VERIFIED, 303],
  ['a flag that is null', { email, email_verified: null }, VERIFIED, 303],
  ['an address that is null', { email: null, ...VERIFIED }, { email, ...VERIFIED }, 303],
  ['an address that is no text', { email: 7 }, { email, ...VERIFIED }, 303],
  ['a flag that is a text', { email }, { email_verified: 'true' }, 303],
  ['a null that hides nothing', { email, ...VERIFIED }, { email: null }, 303],
  ['a flag that says no', { email, email_verified: false }, VERIFIED, 403],
  ['a text that says no', { email }, { email_verified: 'false' }, 403],
  ['a no of userinfo', VERIFIED, { email, email_verified: false }, 403],
  ['a flag of another address', { email }, { email: 'eve@example.com', ...VERIFIED }, 403],
  ['no flag at all', { email }, { email }, 403],
] as const)('userinfo completes the ID token: %s', async (_, token, info, status) => {
  await using it = await withProvider(OPEN)
  it.provider.info = info
  const visitor = new Visitor(it.app)
  const claims = JSON.parse(JSON.stringify({ sub: 'u-1', ...token }))
  expect((await signInWith(visitor, it.provider, claims)).status).toBe(status)
  expect(await signedInAs(visitor)).toBe(status === 303 ? email : '')
})

test('auth_time of userinfo proves nothing', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const thin = { sub: ANN.sub }
  provider.info = { email, ...VERIFIED, auth_time: Math.floor(app.now() / 1000) }
  const seen = await signInWith(ann, provider, thin, '?prove=1')
  expect([seen.status, provider.count('/userinfo')]).toEqual([403, 1])
})

test.each([
  ['absent', undefined],
  ['of a host without a dot', 'bob@intranet'],
  ['of a host that is not ASCII', 'info@münchen.example'],
  ['empty', ''],
])('an address that is %s is named as the problem', async (_, unusable) => {
  await using it = await withProvider(OPEN)
  const claims = { sub: 'u-1', ...(unusable !== undefined && { email: unusable }), ...VERIFIED }
  const seen = await signInWith(new Visitor(it.app), it.provider, claims)
  expect([seen.status, lastReason(it.app.log)]).toEqual([403, 'oidc.no_address'])
  expect(seen.text).toContain('sends no e-mail address that can be used here')
  expect(lastRefused(it.app.log)?.detail).toContain('claim email')
  if (unusable) expect(it.app.log.join()).not.toContain(unusable)
})

const CHALLENGE = { 'www-authenticate': 'Basic realm="x", error="invalid_client"' }
const SET_UP = 'is not set up correctly here'
const UNUSABLE = 'sent an answer that this service cannot use'
const answer = (error: string, status: number, headers = {}) =>
  Response.json({ error }, { status, headers })

test.each([
  ['with a challenge', () => answer('invalid_client', 401, CHALLENGE), 'invalid_client', SET_UP],
  ['without one', () => answer('invalid_client', 401), 'invalid_client', SET_UP],
  ['as 400', () => answer('invalid_client', 400), 'invalid_client', SET_UP],
  ['as Keycloak', () => answer('unauthorized_client', 401), 'unauthorized_client', SET_UP],
  ['without a reason', () => new Response('no', { status: 401 }), 'status 401', SET_UP],
  ['for its own reason', () => answer('slow_down', 400), 'slow_down', UNUSABLE],
  ['with a failure', () => new Response('no', { status: 500 }), 'status 500', UNUSABLE],
  ['with a page', () => new Response('<p>'), 'OAUTH_RESPONSE_IS_NOT_JSON', UNUSABLE],
])(
  'a provider that refuses the client %s is quoted in the log',
  async (_, refuse, detail, text) => {
    await using it = await withProvider(OPEN)
    it.provider.instead = (path) => (path === '/token' ? refuse() : undefined)
    const seen = await signInWith(new Visitor(it.app), it.provider, ANN)
    expect([seen.status, lastReason(it.app.log)]).toEqual([502, 'oidc.provider'])
    expect(lastRefused(it.app.log)?.detail).toContain(detail)
    expect(seen.text).toContain(text)
    expect(seen.text).not.toContain('does not answer')
  },
)

test('a refusal of the client at the page of the provider is a problem of the set-up', async () => {
  await using it = await withProvider(OPEN)
  const visitor = new Visitor(it.app)
  const path = await consent(visitor, it.provider, ANN)
  const refused = path.replace(/code=[^&]+/, 'error=unauthorized_client')
  const seen = await visitor.get(refused)
  expect([seen.status, seen.text.includes(SET_UP)]).toEqual([502, true])
  expect(lastRefused(it.app.log)?.detail).toContain('unauthorized_client')
})

test.each([
  ['a number', { sub: 17 }, 'claim sub'],
  ['empty', { sub: '' }, 'claim sub'],
  ['of 256 letters', { sub: 'x'.repeat(256) }, 'claim sub'],
  ['of 200,000 letters', { sub: 'x'.repeat(200_000) }, 'claim sub'],
  ['not ASCII', { sub: 'jürgen' }, 'claim sub'],
  ['with an end of text in it', { sub: 'ann-1\0x' }, 'claim sub'],
  ['of another client', { aud: 'other' }, 'claim aud'],
  ['of another issuer', { iss: 'https://evil.example' }, 'claim iss'],
  ['too old', { exp: 1 }, 'claim exp'],
])(
  'an ID token that is %s is an answer, and names its claim in the log',
  async (_, wrong, detail) => {
    await using it = await withProvider(OPEN)
    it.provider.spoil = (right) => JSON.parse(JSON.stringify({ ...right, ...wrong }))
    const visitor = new Visitor(it.app)
    const seen = await signInWith(visitor, it.provider, ANN)
    expect([seen.status, lastReason(it.app.log)]).toEqual([502, 'oidc.provider'])
    expect([seen.text.includes(UNUSABLE), seen.text.includes('does not answer')]).toEqual([
      true,
      false,
    ])
    expect(lastRefused(it.app.log)?.detail).toContain(detail)
    expect(await signedInAs(visitor)).toBe('')
  },
)

test('a subject may have 255 characters', async () => {
  await using it = await withProvider(OPEN)
  const long = { ...ANN, sub: '~'.repeat(255) }
  await makeUser(it.app, it.provider, long)
  const visitor = new Visitor(it.app)
  expect((await signInWith(visitor, it.provider, long)).location).toBe('/app/links')
})

test.each([
  ['without endpoints', {}],
  ['without the token endpoint', { authorization_endpoint: 'http://127.0.0.1/a' }],
  ['with an endpoint that is no address', { authorization_endpoint: 7, token_endpoint: 7 }],
])('discovery %s is not kept', async (_, document) => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const whole = { issuer: provider.url, ...document }
  provider.instead = (path) => (path === DISCOVERY ? Response.json(whole) : undefined)
  const seen = await new Visitor(app).get(START)
  expect([seen.status, seen.text.includes(UNUSABLE)]).toEqual([502, true])
  provider.instead = () => undefined
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
})

const BLANKS = new Uint8Array(64 * 1024).fill(0x20)
const JSON_TYPE = { 'content-type': 'application/json' }

/** Counts the bytes that were taken of an answer without an end. */
function endless() {
  const sent = { bytes: 0 }
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    sent.bytes += BLANKS.length
    controller.enqueue(BLANKS)
  }
  return { sent, answer: () => new Response(new ReadableStream({ pull }), { headers: JSON_TYPE }) }
}

test.each([[DISCOVERY], ['/token'], ['/userinfo']])(
  'an answer of %s is read to 1 MiB',
  async (path) => {
    await using it = await withProvider(OPEN)
    const { app, provider } = it
    const attempt = async () => {
      const visitor = new Visitor(app)
      const begun = await visitor.get(START)
      if (begun.location === null) return begun
      return visitor.get(pathOf(provider.consent(begun.location, { sub: 'u-1' })))
    }
    const { sent, answer } = endless()
    const packed = gzipSync(new Uint8Array(64 * 1024 * 1024).fill(0x20))
    const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' }
    for (const large of [answer, () => new Response(packed, { headers })]) {
      provider.instead = (asked) => (asked === path ? large() : undefined)
      const seen = await attempt()
      expect([seen.status, seen.text.includes(UNUSABLE)]).toEqual([502, true])
    }
    expect(sent.bytes).toBeLessThan(32 * 1024 * 1024)
    const { log } = app
    expect(log.some((line) => line.includes('more than 1 MiB'))).toBe(true)
  },
)

test('an answer that is compressed although nobody asked for it is read', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' }
  const info = gzipSync(JSON.stringify({ sub: 'u-1', email, ...VERIFIED }))
  provider.instead = (path) => (path === '/userinfo' ? new Response(info, { headers }) : undefined)
  expect((await signInWith(new Visitor(app), provider, { sub: 'u-1' })).location).toBe('/app/links')
})

test('a redirect of the provider is not followed', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  provider.instead = (path) =>
    path === DISCOVERY ? Response.redirect(`${provider.url}/elsewhere`) : undefined
  expect((await new Visitor(app).get(START)).status).toBe(502)
  expect(provider.count('/elsewhere')).toBe(0)
})

test('a network has four slots for answers of the provider, and others sign in meanwhile', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeUser(app, provider)
  const released = Promise.withResolvers<undefined>()
  const reached = Promise.withResolvers<void>()
  const before = provider.count('/token')
  provider.instead = (path) => {
    if (path !== '/token') return undefined
    if (provider.count('/token') === before + 4) reached.resolve()
    return released.promise
  }
  const from = (n: number) => new Visitor(app, { from: `198.51.100.${n + 1}` })
  const paths = await Promise.all(
    Array.from({ length: 7 }, async (_, n) => {
      const visitor = from(n)
      return { visitor, path: await consent(visitor, provider, ANN) }
    }),
  )
  const finishing = paths.map(({ visitor, path }) => visitor.get(path))
  await reached.promise
  const refused = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const visitor = from(9)
      return visitor.get(await consent(visitor, provider, ANN))
    }),
  )
  for (const { status, headers } of refused) {
    expect([status, Number(headers.get('retry-after')) > 0]).toEqual([503, true])
  }
  provider.instead = () => undefined
  const other = new Visitor(app, { from: '203.0.113.7' })
  expect((await other.get(START)).status).toBe(302)
  expect((await signInWith(other, provider, ANN)).location).toBe('/app/links')
  released.resolve(undefined)
  const statuses = (await Promise.all(finishing)).map(({ status }) => status).toSorted()
  expect(statuses).toEqual([303, 303, 303, 303, 503, 503, 503])
  // The slots are free again, and a code that was refused for lack of one still works.
  const again = from(3)
  expect((await signInWith(again, provider, ANN)).location).toBe('/app/links')
})

const ROLES = { realm_access: { roles: ['user', 'admin'] } }
const URL_CLAIM = 'https://x.example/app.roles'

test.each([
  ['realm_access.roles', ROLES, {}, 303],
  ['realm_access.roles', { realm_access: { roles: 'admin' } }, {}, 303],
  ['realm_access.roles', {}, ROLES, 303],
  ['realm_access.roles', { realm_access: { x: 1 } }, ROLES, 303],
  ['realm_access.roles', { realm_access: null }, ROLES, 303],
  ['resource_access.my.app.roles', { resource_access: { 'my.app': { roles: 'admin' } } }, {}, 303],
  [URL_CLAIM, { [URL_CLAIM]: ['admin'] }, {}, 303],
  ['a.b', { 'a.b': 'user', a: { b: 'admin' } }, {}, 403],
  ['realm_access.roles', { realm_access: { roles: ['admins'] } }, {}, 403],
  ['realm_access.roles', { realm_access: { roles: ['user'] } }, ROLES, 403],
  ['realm_access.roles', { realm_access: [{ roles: 'admin' }], roles: 'admin' }, {}, 403],
  ['realm_access.roles', { realm_access: 'admin' }, {}, 403],
  ['a.constructor.name', { a: { b: 1 } }, {}, 403],
] as const)('OIDC_REQUIRE %s in %j and %j', async (claim, token, info, status) => {
  await using it = await withProvider({ ...OPEN, OIDC_REQUIRE: `${claim}=admin` })
  it.provider.info = JSON.parse(JSON.stringify(info))
  const claims = JSON.parse(JSON.stringify({ ...ANN, ...token }))
  expect((await signInWith(new Visitor(it.app), it.provider, claims)).status).toBe(status)
})
