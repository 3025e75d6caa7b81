import { parseEmail } from '../../accounts/credentials.ts'
import type { IdentityRow } from '../../accounts/identities.ts'
import { type Claims, OidcError } from '../../accounts/oidc.ts'
import { findOneTimeLink, LINK_PAGES, type OneTimeLinkRow } from '../../accounts/one-time-links.ts'
import { connectIdentity, signUpWithProvider } from '../../accounts/operations/registration.ts'
import { hasSecondFactor } from '../../accounts/second-factor.ts'
import type { SessionRow } from '../../accounts/sessions.ts'
import type { PersonRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { html } from '../../lib/html.ts'
import { anonymousForm } from '../auth/csrf.ts'
import type { AnonymousContext } from '../auth/guard.ts'
import {
  beginFlow,
  type Flow,
  findFlow,
  OIDC_REFUSALS,
  type OidcRefusal,
  oidcText,
  pendingCookie,
  providerLink,
  TOO_MANY,
  taskOf,
} from '../auth/oidc.ts'
import {
  askForCode,
  countAttempts,
  countRegistration,
  findSession,
  startSession,
} from '../auth/sign-in.ts'
import { type DashboardDeps, OIDC_CALLBACK } from '../deps.ts'
import { safeNext } from '../errors.ts'
import { anonymousPages } from '../page-routes.ts'
import { seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { authPage } from '../ui/layout.ts'

/** Sign-in with a provider of OpenID Connect. */

const HOME = '/app/links'

export const oidcPages = anonymousPages({
  'GET /app/sign-in/oidc': { run: begin },
  [`GET ${OIDC_CALLBACK}`]: { run: finish },
})

interface RefusalOptions {
  next?: string | undefined
  /** For the log. */
  detail?: string
  accountId?: number
  error?: OidcError
}

function refused(
  { deps, request, origin }: AnonymousContext,
  reason: OidcRefusal,
  { next, error, detail = error?.message, accountId }: RefusalOptions = {},
): Response {
  deps.security.record('session.refused', origin, { accountId, fields: { reason, detail } })
  const [status, text] = OIDC_REFUSALS[reason]
  const name = deps.oidc?.settings.name ?? ''
  return authPage(
    { deps, request },
    {
      title: 'Sign-in failed',
      status,
      cookies: [deps.cookies.end('oidc')],
      main: html`${parts.errorNotice(error ? oidcText(error, name) : text(name))}
        ${providerLink(deps, next)}
        <p class="hint after"><a href="/app/sign-in">Sign in with a password</a></p>`,
    },
  )
}

/** Throws `page_not_found` without a provider. */
function providerOf({ oidc }: DashboardDeps) {
  if (!oidc) throw new AppError('page_not_found')
  return oidc
}

async function begin(context: AnonymousContext): Promise<Response> {
  const { deps, query, origin } = context
  providerOf(deps)
  const next = safeNext(query.next)
  const session = query.prove === '1' ? findSession(context) : undefined
  const task = session && taskOf(session, 'prove')
  const { network } = origin
  try {
    const { url, cookie } = await beginFlow(deps, { next, network, ...(task && { task }) })
    return seeOther(url, [cookie], 302)
  } catch (error) {
    if (!(error instanceof OidcError)) throw error
    return refused(context, error.reason, { next, error })
  }
}

async function finish(context: AnonymousContext): Promise<Response> {
  const { deps, request, origin } = context
  const provider = providerOf(deps)
  const query = new URL(request.url).searchParams
  // Before any request to the provider.
  const flow = findFlow(context, query.get('state'))
  const session = findSession(context)
  if (!flow || !isOf(flow.task, session)) return refused(context, 'oidc.state')
  const attempts = [{ gate: 'address', key: origin.address }] as const
  deps.throttle.require(attempts)
  const { next } = flow
  let claims: Claims
  try {
    claims = await provider.finish(query, flow, origin.network)
  } catch (error) {
    if (!(error instanceof OidcError)) throw error
    if (error.reason === 'oidc.state') countAttempts(deps, attempts, { origin })
    return refused(context, error.reason, { next, error })
  }
  if (!claims.isAllowed) return refused(context, 'oidc.not_allowed', { next })
  const identity = deps.data.identities.find(claims)
  if (flow.task && session) return finishTask(context, { flow, session, claims, identity })
  return identity
    ? signInAs(context, { ...identity, claims }, next)
    : signInNew(context, claims, next)
}

/** Seconds in the year 5138: what is beyond it is no time, but milliseconds. */
const AUTH_TIME_MAX = 1e11

/**
 * When the user has signed in at the provider, in epoch ms, never after `now`. Undefined if the
 * provider does not say.
 */
const signedInAt = ({ authTime = AUTH_TIME_MAX }: Claims, now: number): number | undefined =>
  authTime < AUTH_TIME_MAX ? Math.floor(Math.min(authTime * SECOND, now)) : undefined

/** Signs in as the person of an identity. The second factor still applies. */
async function signInAs(
  context: AnonymousContext,
  { id: identityId, personId, claims }: Pick<IdentityRow, 'id' | 'personId'> & { claims: Claims },
  next = HOME,
): Promise<Response> {
  const { deps } = context
  const person = deps.data.accounts.findPerson(personId)
  if (!person?.hasAccount) {
    return refused(context, 'disabled', person && { accountId: person.accountId })
  }
  const ended = deps.cookies.end('oidc')
  const provedAt = signedInAt(claims, deps.clock())
  if (hasSecondFactor(person)) {
    const asked = askForCode(deps, { person, identityId, provedAt }, { next })
    asked.headers.append('set-cookie', ended)
    return asked
  }
  const proof = { kind: 'one', identityId, provedAt } as const
  const { cookies } = await startSession(context, { personId, proof })
  return seeOther(next, [...cookies, ended])
}

/** An identity that nobody has connected: of a person with the same address, or a new one. */
async function signInNew(
  context: AnonymousContext,
  claims: Claims,
  next: string | undefined,
): Promise<Response> {
  const { deps, origin } = context
  const { settings } = providerOf(deps)
  const { issuer, subject, isVerified } = claims
  const email = parseEmail(claims.email ?? '')
  const now = deps.clock()
  if (!email) {
    const detail = `claim email: ${claims.email === undefined ? 'absent' : 'no address'}`
    return refused(context, 'oidc.no_address', { next, detail })
  }
  // Before the address is looked up: the user of an address that is not theirs learns nothing.
  if (!isVerified) return refused(context, 'oidc.unverified', { next })
  const person = deps.data.accounts.findByEmail(email)
  if (person) {
    const { id: personId, accountId } = person
    const identity = { issuer, subject, email, personId }
    if (!person.hasAccount) return refused(context, 'disabled', { next, accountId })
    // The address alone signs nobody in, unless the operator trusts the provider with it.
    const connected = settings.trustsEmail
      ? await connectIdentity({ ...deps, origin }, { ...identity, now, by: 'address' })
      : 'known'
    if (connected === 'taken') return refused(context, 'oidc.taken', { next })
    if (typeof connected !== 'object') return existingPage(context, identity, person, next)
    return signInAs(context, { id: connected.id, personId, claims }, next)
  }
  const invite = inviteOf(context, next)
  if (!invite && settings.signUp !== 'open') return refused(context, 'oidc.not_allowed', { next })
  if (!invite) countRegistration(context)
  const created = await signUpWithProvider({ ...deps, origin }, invite, { issuer, subject, email })
  if (created === 'gone') return refused(context, 'oidc.wrong_person', { next: undefined })
  if (created === 'taken') return refused(context, 'oidc.state', { next })
  const { personId, identityId } = created
  return signInAs(context, { id: identityId, personId, claims }, invite ? HOME : next)
}

/** The invitation whose page is to be opened next. */
function inviteOf({ deps }: AnonymousContext, next = ''): OneTimeLinkRow | undefined {
  const [, page, token = ''] = /^\/app\/(\w+)\/([\w-]+)$/.exec(next) ?? []
  return page === LINK_PAGES.invite
    ? findOneTimeLink(deps, 'invite', token, deps.clock())
    : undefined
}

/** The next sign-in with the password connects the identity. */
function existingPage(
  { deps, request, origin }: AnonymousContext,
  identity: Parameters<typeof pendingCookie>[1],
  { id, accountId, passwordHash }: PersonRow,
  next: string | undefined,
): Response {
  const { name } = providerOf(deps).settings
  const issuers = deps.data.identities.list(id).map(({ issuer }) => issuer)
  const isMoved = issuers.length > 0 && !issuers.includes(identity.issuer)
  const detail = isMoved ? `connected with ${issuers.join(', ')}` : undefined
  const fields = { reason: 'oidc.account_exists', detail }
  deps.security.record('session.refused', origin, { accountId, fields })
  const sender = anonymousForm(deps, request)
  const form = parts.form(sender, '/app/sign-in', [
    next && parts.hiddenFields({ next }),
    parts.emailField({
      name: 'email',
      value: identity.email,
      autocomplete: 'username',
      extra: { readonly: true },
    }),
    parts.field({
      name: 'password',
      label: 'Password',
      type: 'password',
      required: true,
      autocomplete: 'current-password',
      extra: { autofocus: true },
    }),
    parts.button('Sign in and connect'),
  ])
  return authPage(
    { deps, request },
    {
      title: 'You have an account here',
      status: 409,
      cookies: [...sender.cookies, pendingCookie(deps, identity)],
      main:
        passwordHash === null
          ? html`<p>A person with the address ${identity.email} ${
              isMoved
                ? html`signed in here with another provider, or with another address of it. Ask the
                    administrator to connect ${name} with your account.`
                : html`signs in here in another way. Sign in as before, and connect ${name} under
                    Account → Security.`
            }</p>`
          : html`<p>An account with the address ${identity.email} exists. Sign in once with its
              password: then ${name} is connected, and signs you in.</p>${form}`,
    },
  )
}

/** Whether the session is the one that has asked. A sign-in needs none. */
const isOf = (task: Flow['task'], session: SessionRow | undefined): boolean =>
  !task || (session?.id === task.sessionId && session.personId === task.personId)

interface TaskEnd {
  flow: Flow
  session: SessionRow
  claims: Claims
  identity: IdentityRow | undefined
}

/** What a session has asked for. */
async function finishTask(
  context: AnonymousContext,
  { flow: { task, at, next = '/app/account/security' }, session, claims, identity }: TaskEnd,
): Promise<Response> {
  const { deps, origin } = context
  const { personId, accountId } = session
  const ended = [deps.cookies.end('oidc')]
  if (task?.what === 'prove') {
    const isOwn = identity?.personId === personId
    const provedAt = signedInAt(claims, deps.clock())
    if (isOwn && provedAt === undefined) {
      return refused(context, 'oidc.no_auth_time', { next, accountId })
    }
    const isProved = isOwn && provedAt !== undefined && provedAt >= at - MINUTE
    if (!isProved) return refused(context, 'oidc.not_proved', { next, accountId })
    const isStored = await deps.data.sessions.prove({
      id: session.id,
      personId,
      provedAt: deps.clock(),
    })
    if (!isStored) throw new AppError('sign_in_needed')
    return seeOther(next, ended)
  }
  const { issuer, subject, email = null } = claims
  const by = { sessionId: session.id }
  const about = { issuer, subject, email, personId, by, now: deps.clock() }
  const connected = await connectIdentity({ ...deps, origin }, about)
  if (connected === 'taken') return refused(context, 'oidc.taken', { accountId })
  if (connected === 'gone') throw new AppError('sign_in_needed')
  if (connected === 'too_many') return seeOther(TOO_MANY, ended)
  if (typeof connected !== 'object') return refused(context, 'oidc.state', { accountId })
  return seeOther('/app/account/security?done=connected', ended)
}
