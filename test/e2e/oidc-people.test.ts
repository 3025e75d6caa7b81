import { expect, test } from 'bun:test'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { disable, inviteTo, makeMember, resetPasswordByCommand } from '../support/members.ts'
import {
  ANN,
  lastReason,
  makeUser,
  START,
  signedInAs,
  signInWith,
  withProvider,
} from '../support/oidc.ts'
import { codeOf, enableTwoFactor } from '../support/totp.ts'

/** Whom a sign-in with the provider signs in, creates or connects. */

const OPEN = { OIDC_SIGNUP: 'open' }
const TRUSTING = { OIDC_TRUST_EMAIL: 'on', SIGNUP: 'open' }

test('closed: an unknown identity is refused, also one with the name of an owner', async () => {
  await using it = await withProvider()
  await setUpOwner(it.app)
  const visitor = new Visitor(it.app)
  const claims = { sub: 'x', email: 'x@example.com', email_verified: true }
  const seen = await signInWith(visitor, it.provider, {
    ...claims,
    preferred_username: 'owner@example.com',
    upn: 'owner@example.com',
  })
  expect([seen.status, lastReason(it.app.log)]).toEqual([403, 'oidc.not_allowed'])
  expect(await signedInAs(visitor)).toBe('')
})

test.each([
  [true, 303],
  ['true', 303],
  [false, 403],
  ['false', 403],
  [undefined, 403],
] as const)('open: with email_verified %p a new identity gets %p', async (verified, status) => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const visitor = new Visitor(app)
  const seen = await signInWith(visitor, provider, { ...ANN, email_verified: verified })
  expect(seen.status).toBe(status)
  expect(await signedInAs(visitor)).toBe(status === 303 ? ANN.email : '')
  const person = app.administer(({ accounts }) => accounts.findByEmail(ANN.email))
  expect([person?.passwordHash, person?.isOwner]).toEqual(
    status === 303 ? [null, 0] : [undefined, undefined],
  )
  expect(problemsOf(app)).toEqual([])
})

test('open: new accounts are counted as sign-ups', async () => {
  await using it = await withProvider(OPEN)
  const seen = []
  for (let n = 0; n < 7; n++) {
    const claims = { sub: `n-${n}`, email: `n-${n}@example.com`, email_verified: true }
    seen.push((await signInWith(new Visitor(it.app), it.provider, claims)).status)
  }
  expect(seen).toEqual([303, 303, 303, 303, 303, 429, 429])
})

test('a person with the same address signs in once with the password, and is connected', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeMember(app, ANN.email)
  const visitor = new Visitor(app)
  const seen = await signInWith(visitor, provider, ANN)
  expect([seen.status, lastReason(app.log)]).toEqual([409, 'oidc.account_exists'])
  expect(seen.text).toContain('Sign in once with its')
  const asked = await signInWith(visitor, provider, ANN, '?next=/app/analytics')
  const wrong = { email: ANN.email, password: 'wrong', csrf: asked.csrf, next: '/app/analytics' }
  expect((await visitor.post('/app/sign-in', wrong)).status).toBe(401)
  expect(await signedInAs(visitor)).toBe('')
  const right = { ...wrong, password: PASSWORD }
  expect((await visitor.post('/app/sign-in', right)).location).toBe('/app/analytics')
  expect(visitor.cookies.has('hopcode-oidc')).toBe(false)
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
  expect(problemsOf(app)).toEqual([])
})

test('the password of another person connects nothing', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeMember(app, ANN.email)
  await makeMember(app, 'eve@example.com')
  const visitor = new Visitor(app)
  const { csrf } = await signInWith(visitor, provider, ANN)
  await visitor.post('/app/sign-in', { email: 'eve@example.com', password: PASSWORD, csrf })
  expect(await signedInAs(visitor)).toBe('eve@example.com')
  expect((await signInWith(new Visitor(app), provider, ANN)).status).toBe(409)
})

test('OIDC_TRUST_EMAIL=on connects a verified address at once, and ends the password', async () => {
  await using it = await withProvider(TRUSTING)
  const { app, provider } = it
  // Somebody else may have created the person: nobody verified the address.
  const before = new Visitor(app)
  await before.signUp(ANN.email)
  const reset = new URL(JSON.parse(await resetPasswordByCommand(app, ANN.email)).link).pathname
  const visitor = new Visitor(app)
  const unverified = { ...ANN, email_verified: false }
  expect((await signInWith(visitor, provider, unverified)).status).toBe(403)
  expect(await signedInAs(before)).toBe(ANN.email)
  expect((await signInWith(visitor, provider, ANN)).location).toBe('/app/links')
  expect(await signedInAs(visitor)).toBe(ANN.email)
  expect(await signedInAs(before)).toBe('')
  expect((await before.signIn(ANN.email)).status).toBe(401)
  expect((await before.get(reset)).status).toBe(404)
})

test('OIDC_TRUST_EMAIL=on connects no owner of the service', async () => {
  await using it = await withProvider({ OIDC_TRUST_EMAIL: 'on' })
  const { owner } = await setUpOwner(it.app)
  const claims = { ...ANN, email: 'owner@example.com' }
  expect((await signInWith(new Visitor(it.app), it.provider, claims)).status).toBe(409)
  expect(await signedInAs(owner)).toBe('owner@example.com')
})

test('two-factor sign-in still asks for a code', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const member = await makeUser(app, provider)
  const { key } = await enableTwoFactor(app, member)
  app.advance(60_000)
  const visitor = new Visitor(app)
  const seen = await signInWith(visitor, provider, ANN, '?next=/app/keys')
  expect(seen.location).toStartWith('/app/sign-in/code')
  expect(await signedInAs(visitor)).toBe('')
  const code = codeOf(key, app.now())
  const done = await visitor.post('/app/sign-in/code', { code, next: '/app/keys', stay: '1' })
  expect(done.location).toBe('/app/keys')
  expect(await signedInAs(visitor)).toBe(ANN.email)
  // A session of the provider does not last longer.
  expect(done.setCookies.join()).not.toMatch(/hopcode=[^;]+;[^,]*Max-Age/)
  // A code works once.
  const second = new Visitor(app)
  await signInWith(second, provider, ANN)
  expect((await second.post('/app/sign-in/code', { code })).status).toBe(401)
})

test('with two factors, the password and the code connect the identity', async () => {
  await using it = await withProvider()
  const { app, provider } = it
  const { key } = await enableTwoFactor(app, await makeMember(app, ANN.email))
  app.advance(60_000)
  const visitor = new Visitor(app)
  const { csrf } = await signInWith(visitor, provider, ANN)
  await visitor.post('/app/sign-in', { email: ANN.email, password: PASSWORD, csrf })
  expect((await signInWith(new Visitor(app), provider, ANN)).status).toBe(409)
  await visitor.post('/app/sign-in/code', { code: codeOf(key, app.now()) })
  const next = await signInWith(new Visitor(app), provider, ANN)
  expect(next.location).toStartWith('/app/sign-in/code')
})

test('a disabled account is refused like with its password', async () => {
  await using it = await withProvider(OPEN)
  await makeUser(it.app, it.provider)
  disable(it.app, ANN.email)
  const visitor = new Visitor(it.app)
  const seen = await signInWith(visitor, it.provider, ANN)
  expect([seen.status, lastReason(it.app.log)]).toEqual([401, 'disabled'])
  expect(seen.text).toContain('This account is disabled')
})

test('PASSWORD_SIGN_IN=owners: members sign in with the provider only', async () => {
  await using it = await withProvider({ PASSWORD_SIGN_IN: 'owners' })
  const { app, provider } = it
  // Has a password by a link of the command line.
  const PRO = { ...ANN, email: 'pro@example.com' }
  await setUpOwner(app)
  await makeMember(app, PRO.email)
  const member = new Visitor(app)
  const seen = await member.signIn(PRO.email)
  expect([seen.status, seen.text.includes('Sign in with Example SSO.')]).toEqual([401, true])
  expect((await new Visitor(app).signIn('owner@example.com')).location).toBe('/app/links')
  // Once, to connect the provider.
  const { csrf } = await signInWith(member, provider, PRO)
  await member.post('/app/sign-in', { email: PRO.email, password: PASSWORD, csrf })
  expect(await signedInAs(member)).toBe(PRO.email)
  expect((await signInWith(new Visitor(app), provider, PRO)).location).toBe('/app/links')
  // Nor does an invitation set one.
  const invitation = await inviteTo(member, 'bob@example.com')
  const page = await new Visitor(app).get(invitation)
  expect([page.text.includes(START), page.text.includes('name="password"')]).toEqual([true, false])
  const forged = new Visitor(app)
  const { csrf: token } = await forged.get('/app/sign-in')
  const sent = { email: 'bob@example.com', password: PASSWORD, csrf: token }
  expect((await forged.post(invitation, sent)).status).toBe(422)
})

test('no provider makes somebody an owner, and the setup link still does', async () => {
  await using it = await withProvider({ ...OPEN, OIDC_TRUST_EMAIL: 'on' })
  const { app, provider } = it
  const claims = { ...ANN, is_owner: true, role: 'owner', groups: ['owners', 'admin'] }
  const ann = await makeUser(app, provider, claims)
  expect((await ann.get('/app/service/accounts')).status).toBe(404)
  const { owner } = await setUpOwner(app)
  expect((await owner.get('/app/service/accounts')).status).toBe(200)
})

test('an invitation lets a new person in, who joins its account', async () => {
  await using it = await withProvider()
  const { app, provider } = it
  const bob = await makeMember(app, 'bob@example.com')
  await bob.post('/app/links', { url: 'https://example.com/of-bob' })
  const path = await inviteTo(bob, ANN.email, 'viewer')
  const ann = new Visitor(app)
  const page = await ann.get(path)
  const query = `?${new URLSearchParams({ next: path })}`
  expect(page.text).toContain(`${START}${query}`)
  const eve = { sub: 'eve-1', email: 'eve@example.com', email_verified: true }
  expect((await signInWith(new Visitor(app), provider, eve, query)).status).toBe(403)
  const unverified = { ...ANN, email_verified: false }
  expect((await signInWith(new Visitor(app), provider, unverified, query)).status).toBe(403)
  expect((await signInWith(ann, provider, ANN, query)).location).toBe('/app/links')
  const { text } = await ann.get('/app/links')
  expect([text.includes('of-bob'), text.includes('id="create"')]).toEqual([true, false])
  // It is used.
  expect((await new Visitor(app).get(path)).status).toBe(404)
  expect(problemsOf(app)).toEqual([])
})
