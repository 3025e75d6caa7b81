import { expect, test } from 'bun:test'
import { memberCommands } from '../../src/cli/members.ts'
import type { TestApp } from '../support/app.ts'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { addKey, disable, inviteTo, makeMember } from '../support/members.ts'
import {
  ANN,
  lastReason,
  lastRefused,
  makeUser,
  signedInAs,
  signInWith,
  withProvider,
} from '../support/oidc.ts'
import type { Provider } from '../support/oidc-provider.ts'
import { codeOf, enableTwoFactor, TWO_FACTOR } from '../support/totp.ts'

/** What an e-mail address that the provider names connects, and what it tells. */

const OPEN = { OIDC_SIGNUP: 'open' }
const TRUSTING = { OIDC_TRUST_EMAIL: 'on', SIGNUP: 'open' }
/** Has a password in every mode: by a link of the command line. */
const PRO = 'pro@example.com'
const OWNERS = { PASSWORD_SIGN_IN: 'owners' }
/** A user of the provider that belongs to Mallory, who has created the person of Ann's address. */
const MALLORY = { sub: 'mallory-1', email: 'mallory@example.com', email_verified: true }

const identitiesOf = (app: TestApp, email: string) =>
  app.administration.data.identities.list(
    app.administration.data.accounts.findByEmail(email)?.id ?? 0,
  )

async function connect(visitor: Visitor, provider: Provider, claims: typeof ANN) {
  const path = '/app/account/security/identities/connect'
  const { text } = await visitor.post(path, { current: PASSWORD }, { from: '/app/account' })
  const link = /href="(http:\/\/127[^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const { pathname, search } = new URL(provider.consent(link, claims))
  return visitor.get(pathname + search)
}

test('a member whom somebody else has invited and set up is not connected by the address', async () => {
  await using it = await withProvider({ OIDC_TRUST_EMAIL: 'on' })
  const { app, provider } = it
  const mallory = await makeMember(app, 'mallory@example.com')
  const path = await inviteTo(mallory, ANN.email, 'editor')
  await new Visitor(app).post(path, { email: ANN.email, password: PASSWORD })
  const ann = new Visitor(app)
  const seen = await signInWith(ann, provider, ANN)
  expect([seen.status, lastReason(app.log)]).toEqual([409, 'oidc.account_exists'])
  expect(seen.text).toContain('Sign in once with its')
  expect(await signedInAs(ann)).toBe('')
  expect(identitiesOf(app, ANN.email)).toEqual([])
})

/** Each leaves a way to what the person creates later. */
const TRACES: Record<string, (app: TestApp, mallory: Visitor, provider: Provider) => unknown> = {
  'an identity': (_, mallory, provider) => connect(mallory, provider, MALLORY),
  'an API key': (_, mallory) =>
    mallory.post('/app/keys/new', { name: 'k', scope: 'read' }, { from: '/app/keys' }),
  'an API key that expires tomorrow': (app) => {
    addKey(app, ANN.email, { name: 'k', scope: 'read' })
    app.administer(({ accounts }) =>
      accounts.revokeKeys(accounts.findByEmail(ANN.email)?.id ?? 0, app.now() + 1),
    )
  },
  'an invitation sent': (_, mallory) => inviteTo(mallory, 'eve@example.com'),
  'a member of the own account': async (app, mallory) => {
    const path = await inviteTo(mallory, 'eve@example.com', 'viewer')
    await new Visitor(app).post(path, { email: 'eve@example.com', password: PASSWORD })
  },
  'a membership of another account': async (app, mallory) => {
    const path = await inviteTo(await makeMember(app, 'eve@example.com'), ANN.email, 'viewer')
    await mallory.post(path, {})
  },
  'a second factor': (app, mallory) => enableTwoFactor(app, mallory),
  'a second factor that waits for its code': (_, mallory) =>
    mallory.post(`${TWO_FACTOR}/begin`, { current: PASSWORD }, { from: TWO_FACTOR }),
}

test.each(Object.keys(TRACES))('a person with %s is not connected by the address', async (name) => {
  await using it = await withProvider(TRUSTING)
  const { app, provider } = it
  const mallory = new Visitor(app)
  await mallory.signUp(ANN.email)
  await TRACES[name]?.(app, mallory, provider)
  const before = identitiesOf(app, ANN.email)
  const ann = new Visitor(app)
  const seen = await signInWith(ann, provider, ANN)
  expect([seen.status, lastReason(app.log)]).toEqual([409, 'oidc.account_exists'])
  expect(await signedInAs(ann)).toBe('')
  expect(identitiesOf(app, ANN.email)).toEqual(before)
  // Nothing of the person has ended.
  expect(await signedInAs(mallory)).toBe(ANN.email)
})

test('after a connection by the address, nothing of the person’s past gives access', async () => {
  await using it = await withProvider(TRUSTING)
  const { app, provider } = it
  const mallory = new Visitor(app)
  await mallory.signUp(ANN.email)
  const { text } = await mallory.post(
    '/app/account/security/identities/connect',
    { current: PASSWORD },
    { from: '/app/account' },
  )
  const link = /href="(http:\/\/127[^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const ann = await makeUser(app, provider)
  expect(await signedInAs(ann)).toBe(ANN.email)
  // Mallory’s browser was at the provider meanwhile.
  const { pathname, search } = new URL(provider.consent(link, MALLORY))
  expect((await mallory.get(pathname + search)).status).toBe(400)
  expect((await mallory.signIn(ANN.email)).status).toBe(401)
  expect((await signInWith(mallory, provider, MALLORY)).status).toBe(403)
  expect(identitiesOf(app, ANN.email)).toHaveLength(1)
})

test('a session that ends while the provider answers connects nothing', async () => {
  await using it = await withProvider(TRUSTING)
  const { app, provider } = it
  const mallory = new Visitor(app)
  await mallory.signUp(ANN.email)
  const personId = app.administration.data.accounts.findByEmail(ANN.email)?.id ?? 0
  provider.instead = async (path) => {
    if (path === '/token') await app.administration.data.sessions.endAll({ personId })
    return undefined
  }
  expect((await connect(mallory, provider, MALLORY)).status).toBe(400)
  expect(identitiesOf(app, ANN.email)).toEqual([])
})

test.each([
  ['off', {}],
  ['on', { OIDC_TRUST_EMAIL: 'on' }],
  ['off, with open sign-up', OPEN],
  ['off, with passwords of owners', OWNERS],
])('an unverified address tells nothing about people here: trust %s', async (_, env) => {
  await using it = await withProvider(env)
  const { app, provider } = it
  await makeMember(app, PRO)
  const pages = []
  for (const email of [PRO, 'nobody@example.com']) {
    const claims = { sub: 'x-1', email, email_verified: false }
    const { status, text } = await signInWith(new Visitor(app), provider, claims)
    expect([status, lastReason(app.log)]).toEqual([403, 'oidc.unverified'])
    pages.push(text.replaceAll(/[\w-]{40,}/g, ''))
  }
  expect(pages[0]).toBe(pages[1] ?? '')
})

test('PASSWORD_SIGN_IN=owners: a password needs a verified address at the provider', async () => {
  await using it = await withProvider(OWNERS)
  const { app, provider } = it
  await setUpOwner(app)
  await makeMember(app, PRO)
  const thief = new Visitor(app)
  const claims = { sub: 'thief-1', email: PRO, email_verified: false }
  const { csrf } = await signInWith(thief, provider, claims)
  const sent = { email: PRO, password: PASSWORD, ...(csrf && { csrf }) }
  expect((await thief.post('/app/sign-in', sent)).status).toBe(401)
  expect(await signedInAs(thief)).toBe('')
  expect(identitiesOf(app, PRO)).toEqual([])
})

test('a cookie of before a disconnection neither connects nor signs in', async () => {
  await using it = await withProvider(OWNERS)
  const { app, provider } = it
  await setUpOwner(app)
  const email = PRO
  await makeMember(app, email)
  const claims = { ...ANN, email }
  const visitor = new Visitor(app)
  const { csrf } = await signInWith(visitor, provider, claims)
  const copy = new Map(visitor.cookies)
  const form = { email, password: PASSWORD, csrf }
  expect((await visitor.post('/app/sign-in', form)).location).toBe('/app/links')
  expect(identitiesOf(app, email)).toHaveLength(1)
  await memberCommands.disconnectPerson(app.administration, { email, json: true })
  const again = new Visitor(app)
  for (const [name, value] of copy) again.cookies.set(name, value)
  expect((await again.post('/app/sign-in', form)).status).toBe(401)
  expect(identitiesOf(app, email)).toEqual([])
  // A new sign-in at the provider connects.
  const next = await signInWith(again, provider, claims)
  await again.post('/app/sign-in', { ...form, csrf: next.csrf })
  expect(identitiesOf(app, email)).toHaveLength(1)
})

test('a disconnection between the password and the code of a second factor ends the sign-in', async () => {
  await using it = await withProvider(OWNERS)
  const { app, provider } = it
  await setUpOwner(app)
  const { key } = await enableTwoFactor(app, await makeMember(app, PRO))
  for (const isDisconnected of [true, false]) {
    app.advance(60_000)
    const visitor = new Visitor(app)
    const { csrf } = await signInWith(visitor, provider, { ...ANN, email: PRO })
    const { location } = await visitor.post('/app/sign-in', {
      email: PRO,
      password: PASSWORD,
      csrf,
    })
    expect(location).toStartWith('/app/sign-in/code')
    if (isDisconnected) await memberCommands.disconnectPerson(app.administration, { email: PRO })
    await visitor.post('/app/sign-in/code', { code: codeOf(key, app.now()) })
    expect(await signedInAs(visitor)).toBe(isDisconnected ? '' : PRO)
    expect(identitiesOf(app, PRO)).toHaveLength(isDisconnected ? 0 : 1)
  }
})

test.each([
  ['on', TRUSTING],
  ['off', {}],
])(
  'a new user with the address of a disabled account is refused as disabled: trust %s',
  async (_, env) => {
    await using it = await withProvider(env)
    const { app, provider } = it
    await makeMember(app, ANN.email)
    disable(app, ANN.email)
    const seen = await signInWith(new Visitor(app), provider, ANN)
    expect([seen.status, lastReason(app.log)]).toEqual([401, 'disabled'])
    expect(seen.text).toContain('This account is disabled')
  },
)

test('a sixth user is not connected by the password, and the page says why', async () => {
  await using it = await withProvider(TRUSTING)
  const { app, provider } = it
  const ann = await makeMember(app, ANN.email)
  for (let n = 0; n < 5; n++) await connect(ann, provider, { ...ANN, sub: `n-${n}` })
  const visitor = new Visitor(app)
  const { csrf } = await signInWith(visitor, provider, ANN)
  const seen = await visitor.post('/app/sign-in', { email: ANN.email, password: PASSWORD, csrf })
  expect(seen.location).toBe('/app/account/security?done=identities')
  expect((await visitor.get(seen.location ?? '')).text).toContain('at most five users')
  expect(identitiesOf(app, ANN.email)).toHaveLength(5)
})

test('hopcode account issuer keeps people connected when the provider has another address', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const { renameIssuer } = memberCommands
  const { administration: deps } = app
  const to = 'https://id.example/realms/main'
  await expect(renameIssuer(deps, { from: provider.url, to: 'id.example' })).rejects.toThrow(
    'issuer',
  )
  await expect(renameIssuer(deps, { from: 'https://x.example', to })).rejects.toThrow('nobody')
  expect(JSON.parse(await renameIssuer(deps, { from: provider.url, to, json: true }))).toEqual({
    from: provider.url,
    to,
    renamed: 1,
  })
  expect(identitiesOf(app, ANN.email)).toMatchObject([{ issuer: to, subject: ANN.sub }])
  expect(await signedInAs(ann)).toBe(ANN.email)
  // The provider has its old name still: the page does not send them to what is not there.
  const seen = await signInWith(new Visitor(app), provider, ANN)
  expect([seen.status, lastRefused(app.log)?.detail]).toEqual([409, `connected with ${to}`])
  expect(seen.text).toContain('Ask the')
  expect(seen.text).not.toContain('Sign in as before')
  await renameIssuer(deps, { from: to, to: provider.url })
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
  expect(problemsOf(app)).toEqual([])
})

test('hopcode account issuer connects nobody with the user of another person', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const { renameIssuer } = memberCommands
  const { administration: deps } = app
  const [from, to] = ['https://old.example', provider.url]
  const ann = await makeUser(app, provider)
  await renameIssuer(deps, { from: to, to: from })
  const eve = await makeMember(app, 'eve@example.com')
  await connect(eve, provider, ANN)
  await expect(renameIssuer(deps, { from, to })).rejects.toThrow('different people')
  expect(identitiesOf(app, ANN.email)).toMatchObject([{ issuer: from }])
  // One person with both keeps one.
  await memberCommands.disconnectPerson(deps, { email: 'eve@example.com' })
  await connect(ann, provider, ANN)
  expect(identitiesOf(app, ANN.email)).toHaveLength(2)
  await renameIssuer(deps, { from, to })
  expect(identitiesOf(app, ANN.email)).toMatchObject([{ issuer: to }])
  expect((await signInWith(new Visitor(app), provider, ANN)).location).toBe('/app/links')
  expect(problemsOf(app)).toEqual([])
})
