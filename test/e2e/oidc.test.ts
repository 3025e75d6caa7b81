import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { Visitor } from '../support/dashboard.ts'
import {
  ANN,
  consent,
  lastReason,
  makeUser,
  pathOf,
  START,
  signedInAs,
  signInWith,
  withProvider,
} from '../support/oidc.ts'
import { Provider } from '../support/oidc-provider.ts'

/** Sign-in with a provider of OpenID Connect. */

const OPEN = { OIDC_SIGNUP: 'open' }
const FAILED = 'Sign-in failed'

test('without a provider there is no link, and no page', async () => {
  await using app = await testApp()
  const visitor = new Visitor(app)
  expect((await visitor.get('/app/sign-in')).text).not.toContain(START)
  for (const path of [START, `${START}/callback?state=x&code=y`]) {
    expect((await visitor.get(path)).status).toBe(404)
  }
})

test('the link leads to the provider with PKCE, state, nonce and the address of BASE_URL', async () => {
  await using it = await withProvider({ BASE_URL: 'https://hop.test' })
  const visitor = new Visitor(it.app, {
    'x-forwarded-proto': 'http',
    'x-forwarded-host': 'evil.example',
    host: 'evil.example',
  })
  expect((await visitor.get('/app/sign-in')).text).toContain('Sign in with Example SSO')
  const { status, location, setCookies } = await visitor.get(START)
  expect(status).toBe(302)
  const url = new URL(location ?? '')
  expect(url.origin + url.pathname).toBe(`${it.provider.url}/authorize`)
  const query = Object.fromEntries(url.searchParams)
  expect(query).toMatchObject({
    client_id: 'hopcode',
    response_type: 'code',
    scope: 'openid email profile',
    redirect_uri: `https://hop.test${START}/callback`,
    code_challenge_method: 'S256',
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  })
  const [cookie = ''] = setCookies.filter((line) => line.startsWith('__Host-hopcode-oidc='))
  expect(cookie).toEndWith('; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600')
  // Nothing of it can be read.
  expect(atob((cookie.split(/[=;]/)[1] ?? '').replace(/[-_]/g, '0'))).not.toContain('state')
})

test('a known identity gets a session; the same address again and others’ cookies do not', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeUser(app, provider)
  const visitor = new Visitor(app)
  const path = await consent(visitor, provider, ANN)
  const cookie = visitor.cookies.get('hopcode-oidc') ?? ''
  const seen = await visitor.get(path)
  expect([seen.status, seen.location]).toEqual([303, '/app/links'])
  expect(visitor.cookies.has('hopcode-oidc')).toBe(false)
  expect(await signedInAs(visitor)).toBe('ann@example.com')
  expect((await visitor.get('/app/account/security')).text).not.toContain('stays signed in')

  const tokens = provider.count('/token')
  const again = await visitor.get(path)
  expect([again.status, again.text.includes('This sign-in has expired')]).toEqual([400, true])
  expect(again.text).toContain(`href="${START}"`)
  const stranger = new Visitor(app)
  expect((await stranger.get(path)).status).toBe(400)
  // The state of another browser, with a cookie of its own.
  await consent(stranger, provider, ANN)
  expect((await stranger.get(path)).status).toBe(400)
  expect(provider.count('/token')).toBe(tokens)
  // A copy of the cookie: the provider accepts a code once.
  const copy = new Visitor(app)
  copy.cookies.set('hopcode-oidc', cookie)
  expect((await copy.get(path)).status).toBe(400)
  expect(lastReason(app.log)).toBe('oidc.state')
  for (const one of [stranger, copy]) expect(await signedInAs(one)).toBe('')
})

test('a sign-in cannot be finished after ten minutes', async () => {
  await using it = await withProvider(OPEN)
  const visitor = new Visitor(it.app)
  const path = await consent(visitor, it.provider, ANN)
  it.app.advance(601_000)
  expect((await visitor.get(path)).status).toBe(400)
  expect(it.provider.count('/token')).toBe(0)
})

test.each([
  ['another nonce', { nonce: 'other' }, 400, 'oidc.state'],
  ['no nonce', { nonce: undefined }, 502, 'oidc.provider'],
  ['no subject', { sub: undefined }, 502, 'oidc.provider'],
] as const)('an ID token with %s starts no session', async (_, claims, status, reason) => {
  await using it = await withProvider(OPEN)
  it.provider.spoil = (right) => JSON.parse(JSON.stringify({ ...right, ...claims }))
  const visitor = new Visitor(it.app)
  const seen = await signInWith(visitor, it.provider, ANN)
  expect([seen.status, lastReason(it.app.log)]).toEqual([status, reason])
  expect(seen.text).toContain(FAILED)
  expect(await signedInAs(visitor)).toBe('')
})

test('an ID token without a signature starts no session', async () => {
  await using it = await withProvider(OPEN)
  it.provider.isUnsigned = true
  const visitor = new Visitor(it.app)
  expect((await signInWith(visitor, it.provider, ANN)).status).toBe(502)
  expect(await signedInAs(visitor)).toBe('')
})

test('a wrong code, a refusal and the parameter of another issuer start no session', async () => {
  await using it = await withProvider(OPEN)
  const visitor = new Visitor(it.app)
  const changed = async (change: (query: URLSearchParams) => void) => {
    const path = await consent(visitor, it.provider, ANN)
    const url = new URL(path, 'http://hop.test')
    change(url.searchParams)
    const { status } = await visitor.get(pathOf(url.href))
    return [status, lastReason(it.app.log)]
  }
  expect(await changed((query) => query.set('code', 'of-another-client'))).toEqual([
    400,
    'oidc.state',
  ])
  const denied = (query: URLSearchParams) => {
    query.delete('code')
    query.set('error', 'access_denied')
  }
  expect(await changed(denied)).toEqual([403, 'oidc.denied'])
  const others = (query: URLSearchParams) => query.set('iss', 'https://evil.example')
  const tokens = it.provider.count('/token')
  expect(await changed(others)).toEqual([502, 'oidc.provider'])
  const twice = (query: URLSearchParams) => query.append('state', 'x')
  expect((await changed(twice))[0]).toBe(502)
  expect(it.provider.count('/token')).toBe(tokens)
  expect(await signedInAs(visitor)).toBe('')
})

test('the service starts without the provider, and signs in when it is there', async () => {
  const first = new Provider()
  const { port, settings } = first
  await first[Symbol.asyncDispose]()
  await using app = await testApp({ env: { ...settings, ...OPEN } })
  const visitor = new Visitor(app)
  expect((await visitor.get('/app/sign-in')).status).toBe(200)
  const seen = await visitor.get(START)
  expect([seen.status, lastReason(app.log)]).toEqual([502, 'oidc.provider'])
  expect(seen.text).toContain('Example SSO does not answer')
  await using provider = new Provider({ port })
  expect((await signInWith(visitor, provider, ANN)).location).toBe('/app/links')
})

test('a provider that does not answer is given up after five seconds, and bounds the waiting', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  provider.isSilent = true
  const statuses = await Promise.all(
    Array.from({ length: 25 }, async () => (await new Visitor(app).get(START)).status),
  )
  const count = (status: number) => statuses.filter((one) => one === status).length
  expect([count(502), count(503)]).toEqual([20, 5])
  expect(provider.requests).toHaveLength(1)
  expect((await app.call('GET', '/api/status')).status).toBe(200)
  provider.isSilent = false
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
})

test('the provider rotates its keys', async () => {
  await using it = await withProvider(OPEN)
  await makeUser(it.app, it.provider)
  it.provider.rotateKeys()
  expect((await signInWith(new Visitor(it.app), it.provider, ANN)).location).toBe('/app/links')
  // Each host keeps what it has found.
  if (!it.app.clusterUrl) expect(it.provider.count('/.well-known/openid-configuration')).toBe(1)
})

test('an issuer with another path is named with both in the log', async () => {
  await using it = await withProvider(OPEN, { issuer: 'https://id.example/realm' })
  const seen = await new Visitor(it.app).get(START)
  expect([seen.status, lastReason(it.app.log)]).toEqual([502, 'oidc.issuer'])
  const line = it.app.log.findLast((one) => one.includes('oidc.issuer')) ?? ''
  expect(line).toContain(`OIDC_ISSUER is ${it.provider.url}`)
  expect(line).toContain('the provider says https://id.example/realm')
})

test('a slash at the end of an issuer without a path makes no difference', async () => {
  await using provider = new Provider()
  const env = { ...provider.settings, ...OPEN, OIDC_ISSUER: `${provider.url}/` }
  await using app = await testApp({ env })
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
})

test('OIDC_REQUIRE: a claim must have or contain the value', async () => {
  await using it = await withProvider({ ...OPEN, OIDC_REQUIRE: 'groups=hopcode' })
  const { app, provider } = it
  const attempt = async (claims: object) =>
    (await signInWith(new Visitor(app), provider, { ...ANN, ...claims })).status
  for (const groups of [
    undefined,
    [],
    ['hopcode-admins'],
    'hopcodes',
    ['x', 'y'],
    { hopcode: 1 },
  ]) {
    expect([groups, await attempt({ groups })]).toEqual([groups, 403])
  }
  expect(await attempt({ groups: ['x', 'hopcode'] })).toBe(303)
  expect(await attempt({ groups: 'hopcode' })).toBe(303)
  expect(await attempt({})).toBe(403)
  // Claims that only the userinfo endpoint has.
  provider.info = { groups: ['hopcode'] }
  expect(await attempt({})).toBe(303)
})

test('an address that only the userinfo endpoint has', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  provider.info = { email: ANN.email, email_verified: true }
  const visitor = new Visitor(app)
  expect((await signInWith(visitor, provider, { sub: 'u-1' })).location).toBe('/app/links')
  expect(await signedInAs(visitor)).toBe(ANN.email)
  // The answer about another user.
  provider.info = { sub: 'u-2', email: 'bob@example.com', email_verified: true }
  expect((await signInWith(new Visitor(app), provider, { sub: 'u-3' })).status).toBe(502)
})

test.each([['client_secret_basic'], ['client_secret_post']])('the secret as %s', async (method) => {
  await using it = await withProvider(OPEN, { methods: [method] })
  expect((await signInWith(new Visitor(it.app), it.provider, ANN)).location).toBe('/app/links')
})

test('the next page is one of the dashboard', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeUser(app, provider)
  for (const [next, location] of [
    ['/app/links?page=2', '/app/links?page=2'],
    ['//evil.example', '/app/links'],
    ['https://evil.example/', '/app/links'],
    ['/app/../..//evil', '/app/links'],
  ] as const) {
    const query = `?${new URLSearchParams({ next })}`
    const seen = await signInWith(new Visitor(app), provider, ANN, query)
    expect([next, seen.location]).toEqual([next, location])
  }
})

test('neither log lines nor addresses of pages have secrets or tokens', async () => {
  await using it = await withProvider({ ...OPEN, LOG_REQUESTS: 'all' })
  const { app, provider } = it
  const visitor = new Visitor(app)
  const path = await consent(visitor, provider, ANN)
  const code = new URL(path, 'http://hop.test').searchParams.get('code') ?? ''
  await visitor.get(path)
  await visitor.get(path)
  const log = app.log.join('\n')
  for (const secret of [code, 'secret-access-token', 'not so secret']) {
    expect(log).not.toContain(secret)
  }
})
