import { type FirstStep, newStepToken } from '../../accounts/second-factor.ts'
import { LONG_SESSION_MS, type SessionRow, type SignInProof } from '../../accounts/sessions.ts'
import { newDeviceToken } from '../../accounts/sign-in.ts'
import type { AccountId, PersonId } from '../../accounts/store.ts'
import type { Attempt } from '../../accounts/throttle.ts'
import { networkOf } from '../../hot/client-address.ts'
import type { DashboardDeps } from '../deps.ts'
import { seeOther } from '../responses.ts'
import { type AnonymousContext, type CurrentUser, currentUserOf } from './guard.ts'

export const DISABLED = 'This account is disabled. Ask the administrator.'

export const CODE_PAGE = '/app/sign-in/code'

/**
 * Redirects to the page that asks for the second factor, after the first step. There is no session
 * yet.
 */
export function askForCode(
  { cookies, hasher, clock }: DashboardDeps,
  step: FirstStep,
  { next, isLong = false }: { next?: string | undefined; isLong?: boolean },
): Response {
  const query = new URLSearchParams({ ...(next && { next }), ...(isLong && { stay: '1' }) })
  const path = query.size > 0 ? `${CODE_PAGE}?${query}` : CODE_PAGE
  return seeOther(path, [cookies.step(newStepToken(hasher, step, clock()))])
}

/** Seconds left of a long session; undefined for others, whose cookie ends with the browser. */
export const cookieSeconds = (
  { isLong, createdAt }: { isLong: boolean | number; createdAt: number },
  now: number,
): number | undefined =>
  isLong ? Math.max(0, Math.ceil((createdAt + LONG_SESSION_MS - now) / 1000)) : undefined

/**
 * Starts a new session and never reuses the one whose cookie the request sent. `isLong`: it lasts
 * 30 days. `cookies` belong to the response.
 */
export async function startSession(
  { deps, request, origin }: AnonymousContext,
  { personId, proof }: { personId: PersonId; proof: SignInProof },
  isLong = false,
): Promise<{ user: CurrentUser; cookies: string[] }> {
  const { cookies, hasher, random, sessions } = deps
  const { session, token } = await sessions.start(personId, proof, {
    address: origin.address,
    agent: request.headers.get('user-agent') ?? '',
    replaces: cookies.findByName('session', request),
    isLong,
  })
  const fields = { long: isLong ? 'yes' : undefined }
  deps.security.record('session.started', origin, { accountId: session.accountId, fields })
  return {
    user: currentUserOf(deps, session, { request, origin, token }),
    cookies: [
      cookies.session(token, cookieSeconds(session, session.createdAt)),
      cookies.known(newDeviceToken(hasher, random, personId)),
      cookies.end('form'),
    ],
  }
}

/** The session of a page that needs none. */
export const findSession = ({ deps, request }: AnonymousContext): SessionRow | undefined =>
  deps.sessions.findByToken(deps.cookies.findByName('session', request))

/** What every way to a new account or membership does. Throws `too_many_attempts`. */
export function countRegistration({ deps, origin }: AnonymousContext): void {
  const registration = [
    { gate: 'registration', key: origin.address },
    { gate: 'registrationNetwork', key: networkOf(origin.address) },
    { gate: 'registrations', key: 'all' },
  ] as const
  // No await stands before the count, so that parallel requests are all counted.
  deps.throttle.require(registration)
  countAttempts(deps, registration, { origin })
}

interface CountOptions {
  origin: CurrentUser['origin']
  accountId?: AccountId | undefined
}

/** Counts attempts, and logs each limit that they reach. */
export function countAttempts(
  { throttle, security }: DashboardDeps,
  attempts: readonly Attempt[],
  { origin, accountId }: CountOptions,
): void {
  for (const gate of throttle.count(attempts)) {
    security.record('throttle.engaged', origin, { accountId, fields: { gate } })
  }
}

/**
 * The result of `check`, which is undefined for a wrong guess. Counts a wrong guess. Throws
 * `too_many_attempts`. There is no await between the check of the throttle and the count, so
 * parallel guesses are all counted.
 */
export function tryGuess<Result>(
  deps: DashboardDeps,
  attempts: readonly Attempt[],
  by: CountOptions,
  check: () => Result | undefined,
): Result | undefined {
  deps.throttle.require(attempts)
  const result = check()
  if (result === undefined) countAttempts(deps, attempts, by)
  else deps.throttle.clear(attempts)
  return result
}
