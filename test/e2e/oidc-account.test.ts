import { expect, test } from 'bun:test'
import type { JWTPayload } from 'jose'
import { memberCommands } from '../../src/cli/members.ts'
import type { TestApp } from '../support/app.ts'
import { PASSWORD, type Seen, Visitor } from '../support/dashboard.ts'
import { problemsOf } from '../support/database.ts'
import { makeMember, resetPasswordByCommand } from '../support/members.ts'
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
import type { Provider } from '../support/oidc-provider.ts'
import { codeOf, enableTwoFactor } from '../support/totp.ts'

/** What people do with the identities that they have connected. */

const OPEN = { OIDC_SIGNUP: 'open' }
const ACCOUNT = '/app/account'
const SECURITY = `${ACCOUNT}/security`
const CONNECT = `${SECURITY}/identities/connect`
const BOB = { sub: 'bob-1', email: 'bob@example.com', email_verified: true }

const post = (visitor: Visitor, path: string, fields: Record<string, string> = {}) =>
  visitor.post(path, fields, { from: SECURITY })

/** The address of the provider on a page. */
const linkIn = ({ text }: Seen): string =>
  (/href="(http:\/\/127[^"]+)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&')

const connect = async (visitor: Visitor, provider: Provider, claims: JWTPayload): Promise<Seen> => {
  const link = linkIn(await post(visitor, CONNECT, { current: PASSWORD }))
  return visitor.get(pathOf(provider.consent(link, claims)))
}

const disconnectPath = async (visitor: Visitor): Promise<string> => {
  const { text } = await visitor.get(SECURITY)
  return /action="(\/app\/account\/security\/identities\/\d+\/disconnect)"/.exec(text)?.[1] ?? ''
}

const disconnectByCommand = (app: TestApp, email: string): Promise<string> =>
  memberCommands.disconnectPerson(app.administration, { email, json: true })

test('a person connects a user of the provider, after the password, and disconnects it', async () => {
  await using it = await withProvider()
  const { app, provider } = it
  const ann = await makeMember(app, ANN.email)
  app.advance(11 * 60_000)
  const asked = await post(ann, CONNECT)
  expect([asked.status, linkIn(asked)]).toEqual([403, ''])
  expect((await post(ann, CONNECT, { current: 'wrong' })).text).toContain('not your password')
  // The address at the provider may be another one, and unverified.
  const other = { sub: 'x-1', email: 'private@example.org' }
  expect((await connect(ann, provider, other)).location).toBe(`${SECURITY}?done=connected`)
  const { text } = await ann.get(SECURITY)
  expect([text.includes('private@example.org'), text.includes(provider.url)]).toEqual([true, true])
  const visitor = new Visitor(app)
  expect((await signInWith(visitor, provider, other)).location).toBe('/app/links')
  expect(await signedInAs(visitor)).toBe(ANN.email)

  expect((await post(ann, await disconnectPath(ann))).location).toBe(
    `${SECURITY}?done=disconnected`,
  )
  // The sessions that it has started end.
  expect(await signedInAs(visitor)).toBe('')
  expect(await signedInAs(ann)).toBe(ANN.email)
  expect((await signInWith(new Visitor(app), provider, other)).status).toBe(403)
  expect(problemsOf(app)).toEqual([])
})

test('nobody connects a user of somebody else, or for another session', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeUser(app, provider, BOB)
  const ann = await makeMember(app, ANN.email)
  const taken = await connect(ann, provider, BOB)
  expect([taken.status, taken.text.includes('belongs to another person')]).toEqual([409, true])
  // Ann has begun, and the browser is signed in as somebody else when it comes back.
  const link = linkIn(await post(ann, CONNECT, { current: PASSWORD }))
  const back = pathOf(provider.consent(link, { sub: 'ann-2' }))
  const shared = new Visitor(app)
  shared.cookies.set('hopcode-oidc', ann.cookies.get('hopcode-oidc') ?? '')
  expect((await shared.get(back)).status).toBe(400)
  await makeMember(app, 'eve@example.com')
  await shared.signIn('eve@example.com')
  shared.cookies.set('hopcode-oidc', ann.cookies.get('hopcode-oidc') ?? '')
  expect((await shared.get(back)).status).toBe(400)
  expect((await signInWith(new Visitor(app), provider, { sub: 'ann-2' })).status).toBe(403)
  // A form of another person’s identity.
  const bobs = await disconnectPath(await makeUser(app, provider, BOB))
  expect((await post(ann, bobs)).status).toBe(404)
})

test('a person has at most five', async () => {
  await using it = await withProvider()
  const ann = await makeMember(it.app, ANN.email)
  const seen = []
  for (let n = 0; n < 6; n++) {
    seen.push((await connect(ann, it.provider, { sub: `n-${n}` })).location)
  }
  expect(seen.filter((path) => path === `${SECURITY}?done=connected`)).toHaveLength(5)
  expect(seen.at(-1)).toBe(`${SECURITY}?done=identities`)
})

test('the only way to sign in cannot be disconnected', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const seen = await post(ann, await disconnectPath(ann))
  expect([seen.status, seen.text.includes('your only way to sign in')]).toEqual([422, true])
  // With a second one, or with a password, it can.
  const link = linkIn(await post(ann, CONNECT))
  await ann.get(pathOf(provider.consent(link, { sub: 'ann-2' })))
  expect((await post(ann, await disconnectPath(ann))).location).toContain('done=disconnected')
})

test('without a password, the provider confirms who somebody is', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  app.advance(11 * 60_000)
  const asked = await post(ann, '/app/account/delete')
  expect([asked.status, asked.text.includes('Confirm with Example SSO')]).toEqual([422, true])
  expect((await post(ann, CONNECT)).status).toBe(403)

  const query = '?prove=1&next=/app/account/delete'
  const begun = await ann.get(START + query)
  expect(new URL(begun.location ?? '').searchParams.get('max_age')).toBe('0')
  const proveWith = async (claims: JWTPayload) =>
    ann.get(await consent(ann, provider, claims, query))
  const now = Math.floor(app.now() / 1000)
  // The provider has not asked again, or does not say so, or it was somebody else.
  for (const [claims, reason, text] of [
    [{ ...ANN, auth_time: now - 3600 }, 'oidc.not_proved', 'did not ask you to sign in again'],
    [{ ...ANN, auth_time: 0 }, 'oidc.not_proved', 'did not ask you to sign in again'],
    [{ ...BOB, auth_time: now }, 'oidc.not_proved', 'as another user'],
    [BOB, 'oidc.not_proved', 'as another user'],
    [ANN, 'oidc.no_auth_time', 'Sign out here, sign in again with Example SSO'],
    [{ ...ANN, auth_time: now * 1000 }, 'oidc.no_auth_time', 'within ten minutes'],
  ] as const) {
    const seen = await proveWith(claims)
    expect([seen.status, lastReason(app.log)]).toEqual([403, reason])
    expect(seen.text).toContain(text)
  }
  expect((await post(ann, CONNECT)).status).toBe(403)
  expect((await proveWith({ ...ANN, auth_time: now })).location).toBe('/app/account/delete')
  expect(linkIn(await post(ann, CONNECT))).toStartWith(provider.url)
  const deleted = await ann.post('/app/account/delete', {})
  expect(deleted.location).toBe('/app/sign-in?done=deleted')
  expect(problemsOf(app)).toEqual([])
})

test.each([
  ['two hours ago', -7200, 403],
  ['eleven minutes ago', -660, 403],
  ['in 1970', Number.NEGATIVE_INFINITY, 403],
  ['nine minutes ago', -540, 200],
  ['now', 0, 200],
  ['by a clock that is half a minute ahead', 30, 200],
  ['by a clock that is a year ahead', 365 * 86_400, 200],
  // As without `auth_time`, which a new sign-in gives for ten minutes.
  ['in milliseconds', 1.7e12, 200],
  ['never', undefined, 200],
])('a session of a user who has signed in at the provider %s', async (_, offset, status) => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  await makeUser(app, provider)
  const seconds = app.now() / 1000 + (offset ?? 0)
  const auth_time = Math.max(0, seconds)
  const claims = { ...ANN, ...(offset !== undefined && { auth_time }) }
  const ann = new Visitor(app)
  await signInWith(ann, provider, claims)
  const set = () => post(ann, `${SECURITY}/password`, { password: 'seven green otters' })
  expect((await post(ann, CONNECT)).status).toBe(status)
  if (status === 403) expect((await set()).location).toBeNull()
  // It is proved for ten minutes at most, whatever the provider says.
  app.advance(10 * 60_000)
  expect((await post(ann, CONNECT)).status).toBe(403)
  expect((await set()).location).toBeNull()
})

test('an old sign-in at the provider proves nothing with a password or a code beside it', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const { key } = await enableTwoFactor(app, ann)
  app.advance(60_000)
  const visitor = new Visitor(app)
  const signIn = async (claims: JWTPayload) => {
    await signInWith(visitor, provider, claims)
    app.advance(60_000)
    const { location } = await visitor.post('/app/sign-in/code', { code: codeOf(key, app.now()) })
    expect(location).toBe('/app/links')
    return (await post(visitor, CONNECT)).status
  }
  const old = { ...ANN, auth_time: app.now() / 1000 - 7200 }
  expect(await signIn(old)).toBe(403)
  expect(await signIn(ANN)).toBe(200)
  await post(visitor, `${SECURITY}/password`, { password: 'seven green otters' })
  expect(await signIn(old)).toBe(403)
})

test('a new sign-in is the way out where the provider does not say when it was', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  app.advance(11 * 60_000)
  expect((await post(ann, CONNECT)).status).toBe(403)
  await ann.post('/app/sign-out', {}, { from: SECURITY })
  await signInWith(ann, provider, ANN)
  expect(linkIn(await post(ann, CONNECT))).toStartWith(provider.url)
})

test('a first password, after which the session of the provider goes on', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const set = await post(ann, `${SECURITY}/password`, { password: 'seven green otters' })
  expect(set.location).toBe(`${SECURITY}?done=password`)
  expect(await signedInAs(ann)).toBe(ANN.email)
  const visitor = new Visitor(app)
  expect((await visitor.signIn(ANN.email, 'seven green otters')).location).toBe('/app/links')
  expect((await post(ann, await disconnectPath(ann))).location).toContain('done=disconnected')
})

test('a link for a new password works without the provider', async () => {
  await using it = await withProvider({ ...OPEN })
  const { app, provider } = it
  await makeUser(app, provider)
  await provider[Symbol.asyncDispose]()
  const { link } = JSON.parse(await resetPasswordByCommand(app, ANN.email))
  const visitor = new Visitor(app)
  const seen = await visitor.post(new URL(link).pathname, { password: 'seven green otters' })
  expect(seen.location).toBe('/app/links')
  expect(await signedInAs(visitor)).toBe(ANN.email)
})

test('the command line disconnects a person, whose sessions of the provider end', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  const list = () =>
    memberCommands.listMembers(app.administration, { account: ANN.email, json: true })
  expect(JSON.parse(await list())).toMatchObject({ issuers: [provider.url] })
  const done = JSON.parse(await disconnectByCommand(app, ANN.email))
  expect(done).toEqual({ email: ANN.email, disconnected: 1 })
  expect(await signedInAs(ann)).toBe('')
  expect(JSON.parse(await list())).toMatchObject({ issuers: [] })
  expect(JSON.parse(await disconnectByCommand(app, ANN.email)).disconnected).toBe(0)
})

test('a person who is removed can be invited again, with the same user of the provider', async () => {
  await using it = await withProvider(OPEN)
  const { app, provider } = it
  const ann = await makeUser(app, provider)
  await ann.post('/app/account/delete', {})
  expect((await signInWith(ann, provider, ANN)).location).toBe('/app/links')
  expect(problemsOf(app)).toEqual([])
})
