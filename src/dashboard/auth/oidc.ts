import type { IdentityKey } from '../../accounts/identities.ts'
import type { OidcError, OidcReason } from '../../accounts/oidc.ts'
import { type Checks, FLOW_LIFE_SECONDS } from '../../accounts/oidc.ts'
import { connectIdentity } from '../../accounts/operations/registration.ts'
import { seal, unseal } from '../../accounts/sealed.ts'
import { hashesEqual } from '../../accounts/secrets.ts'
import type { Origin } from '../../accounts/security-log.ts'
import type { PersonId } from '../../accounts/store.ts'
import { SECOND } from '../../lib/clock.ts'
import { type Html, html } from '../../lib/html.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import type { AnonymousContext, CurrentUser } from './guard.ts'
import { DISABLED } from './sign-in.ts'

/**
 * What a browser keeps between the start of a sign-in with the provider and its end, sealed in a
 * cookie: so any host of a cluster can finish it, and nothing is stored for those who never do.
 */

const START = '/app/sign-in/oidc'
/** The page that says that a person has too many identities. */
export const TOO_MANY = '/app/account/security?done=identities'

/** A sign-in that has begun. */
export interface Flow extends Checks {
  kind: 'flow'
  /** Epoch ms of the start. */
  at: number
  next: string | undefined
  /** What a session asked for: to connect the identity, or to prove again who its person is. */
  task?: { what: 'connect' | 'prove'; sessionId: number; personId: PersonId }
}

/** An identity whose address a person here has: it is connected after their next sign-in. */
interface Pending extends IdentityKey {
  kind: 'pending'
  at: number
  email: string
  personId: PersonId
  disconnections: number
}

const USE = { purpose: 'oidc-sign-in', about: '' } as const

type Sealing = Pick<DashboardDeps, 'cookies' | 'hasher' | 'random' | 'clock' | 'data'>

const cookieOf = (deps: Sealing, value: Flow | Pending): string =>
  deps.cookies.oidc(seal(deps, USE, Buffer.from(JSON.stringify(value))).toString('base64url'))

function read(deps: Sealing, request: Request): Flow | Pending | undefined {
  const text = deps.cookies.findByName('oidc', request)
  if (text === undefined) return undefined
  try {
    const opened = unseal(deps.hasher, USE, Buffer.from(text, 'base64url'))
    const value = JSON.parse(Buffer.from(opened).toString()) as Flow | Pending
    const age = deps.clock() - value.at
    // Negative if the clock was set back.
    return age >= 0 && age <= FLOW_LIFE_SECONDS * SECOND ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Starts a sign-in: the page of the provider, and the cookie that belongs to it and has all of its
 * state (decision 072).
 */
export async function beginFlow(
  deps: Sealing & Required<Pick<DashboardDeps, 'oidc'>>,
  { next, task, network }: Pick<Flow, 'next' | 'task'> & Pick<Origin, 'network'>,
): Promise<{ url: string; cookie: string }> {
  const begun = await deps.oidc?.begin(task?.what === 'prove', network)
  if (!begun) throw new Error('there is no provider')
  const { url, checks } = begun
  const flow: Flow = { kind: 'flow', ...checks, at: deps.clock(), next, ...(task && { task }) }
  return { url, cookie: cookieOf(deps, flow) }
}

/** The sign-in that this browser has begun, if `state` is that of it. */
export function findFlow(
  { deps, request }: AnonymousContext,
  state: string | null,
): Flow | undefined {
  const flow = read(deps, request)
  if (flow?.kind !== 'flow' || state === null) return undefined
  return hashesEqual(Buffer.from(flow.state), Buffer.from(state)) ? flow : undefined
}

/** `identity`: verified by the provider just now. */
export const pendingCookie = (
  deps: Sealing,
  identity: IdentityKey & { email: string; personId: PersonId },
): string => {
  const disconnections = deps.data.identities.disconnections(identity.personId)
  return cookieOf(deps, { kind: 'pending', at: deps.clock(), disconnections, ...identity })
}

/** Whether this browser has an identity that waits for a sign-in of the person. */
export const isPending = ({ deps, request }: AnonymousContext, { id }: { id: PersonId }): boolean =>
  findPending(deps, request)?.personId === id

/** A copy of the cookie is worthless after the person was disconnected. */
function findPending(deps: Sealing, request: Request): Pending | undefined {
  const found = read(deps, request)
  if (found?.kind !== 'pending') return undefined
  const isCurrent = found.disconnections === deps.data.identities.disconnections(found.personId)
  return isCurrent ? found : undefined
}

/**
 * After a sign-in with the password: connects the identity that waits for it. `next`: the page that
 * says why it is not connected.
 */
export async function connectPending(
  { deps, request, origin }: AnonymousContext,
  { session, person: { id: personId } }: CurrentUser,
): Promise<{ cookies: string[]; next?: string }> {
  const pending = findPending(deps, request)
  if (pending?.personId !== personId) return { cookies: [] }
  const { issuer, subject, email, disconnections } = pending
  const by = { sessionId: session.id, disconnections }
  const identity = { issuer, subject, email, personId, by, now: deps.clock() }
  const connected = await connectIdentity({ ...deps, origin }, identity)
  const cookies = [deps.cookies.end('oidc')]
  return connected === 'too_many' ? { cookies, next: TOO_MANY } : { cookies }
}

const startPath = (query: Record<string, string>): string =>
  Object.keys(query).length > 0 ? `${START}?${new URLSearchParams(query)}` : START

/** Absent without a provider. It is a link, because forms may lead to this host only. */
export const providerLink = ({ oidc }: DashboardDeps, next: string | undefined): Html | false =>
  oidc !== undefined &&
  html`<p class="provider">${parts.linkButton(
    `Sign in with ${oidc.settings.name}`,
    startPath(next ? { next } : {}),
    'primary',
  )}</p>`

/** Between the provider and the form with a password. */
export const OR = html`<p class="or">or</p>`

/** For a person without a password: proves again who they are. `next`: the page that follows. */
export const proveLink = ({ oidc }: DashboardDeps, next: string): Html =>
  oidc === undefined
    ? html`<p>You have no password. Ask the administrator for a link that sets one.</p>`
    : parts.linkButton(`Confirm with ${oidc.settings.name}`, startPath({ prove: '1', next }))

export const taskOf = (
  { id: sessionId, personId }: { id: number; personId: PersonId },
  what: 'connect' | 'prove',
): NonNullable<Flow['task']> => ({ what, sessionId, personId })

export type OidcRefusal =
  | OidcReason
  | 'oidc.no_address'
  | 'oidc.unverified'
  | 'oidc.not_allowed'
  | 'oidc.wrong_person'
  | 'oidc.not_proved'
  | 'oidc.no_auth_time'
  | 'oidc.taken'
  | 'disabled'

export const OIDC_REFUSALS: Readonly<
  Record<OidcRefusal, [status: number, text: (name: string) => string]>
> = {
  'oidc.state': [400, () => 'This sign-in has expired. Try again.'],
  'oidc.provider': [502, (name) => `${name} sent an answer that this service cannot use.`],
  'oidc.issuer': [502, (name) => `${name} is another provider than this service expects.`],
  'oidc.denied': [403, (name) => `${name} did not let you sign in.`],
  'oidc.no_address': [
    403,
    (name) => `${name} sends no e-mail address that can be used here. Ask the administrator.`,
  ],
  'oidc.unverified': [403, (name) => `${name} has not verified your e-mail address.`],
  'oidc.not_allowed': [403, (name) => `Your user at ${name} has no access to this service.`],
  'oidc.wrong_person': [403, () => 'This invitation is for another e-mail address.'],
  'oidc.not_proved': [
    403,
    (name) => `${name} did not ask you to sign in again, or you signed in there as another user.`,
  ],
  'oidc.no_auth_time': [
    403,
    (name) =>
      `${name} does not say when you signed in there. Sign out here, sign in again with ${name}, ` +
      'and repeat this within ten minutes.',
  ],
  'oidc.taken': [409, (name) => `Your user at ${name} belongs to another person here.`],
  disabled: [401, () => DISABLED],
}

const PROBLEMS: Readonly<Partial<Record<OidcError['problem'], (name: string) => string>>> = {
  silence: (name) => `${name} does not answer.`,
  setup: (name) => `Sign-in with ${name} is not set up correctly here. Ask the administrator.`,
}

/** The text of an error, for the visitor. */
export const oidcText = ({ reason, problem }: OidcError, name: string): string =>
  (PROBLEMS[problem] ?? OIDC_REFUSALS[reason][1])(name)
