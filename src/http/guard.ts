import { Elysia } from 'elysia'
import {
  apiKeyOf,
  findAccount,
  hasAccess,
  type KeyAccess,
  type KeyCheckDeps,
  payerOf,
} from '../accounts/keys.ts'
import type { BudgetGroup } from '../accounts/plans.ts'
import type { KeyHolder } from '../accounts/store.ts'
import type { Decider } from '../db/writer.ts'
import { AppError, degradedError, retryAfter } from '../errors.ts'
import type { ClientAddress } from '../hot/client-address.ts'
import { isoTime, type MonotonicClock } from '../lib/clock.ts'
import type { Budget, RateLimiter } from '../limits/budgets.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import {
  clientOf,
  newRequestId,
  REQUEST_ID,
  type RequestContext,
  type ResponseState,
} from './context.ts'
import type { UnmatchedRequest } from './errors.ts'

export interface GuardDeps extends KeyCheckDeps {
  limiter: RateLimiter
  maintenance: MaintenanceMode
  address: ClientAddress
  monotonic: MonotonicClock
  writer: Decider
}

interface GuardOptions {
  budget: BudgetGroup
  /** What the endpoint needs of a key. Absent for a public one. */
  access?: KeyAccess
  /** The API key. Default: that of the headers. */
  key?: string | null
  /** The endpoint works during maintenance, as redirects and images do. */
  duringMaintenance?: boolean
  /**
   * The endpoint reports the service's state: if the account or the maintenance cannot be read from
   * the database, the request is charged to its address and answered with 503 `degraded`.
   */
  reportsState?: boolean
}

/**
 * Throws the refusals that do not depend on the request's content, in the order of the API: 503
 * maintenance, then 429. Charges the caller's budget and sets the `X-RateLimit-*` headers. Returns
 * the account of a valid key.
 */
export function admit(
  deps: GuardDeps,
  context: RequestContext,
  options: GuardOptions,
): KeyHolder | undefined {
  const { limiter, address } = deps
  const { request, set } = context
  const { budget: group, access, duringMaintenance = false, reportsState = false } = options
  const { key = apiKeyOf(request.headers) } = options
  set.headers[REQUEST_ID] = newRequestId()
  let isReadable = true
  const read = <Found>(find: () => Found): Found | undefined => {
    try {
      return find()
    } catch (error) {
      if (!reportsState || error instanceof AppError) throw error
      isReadable = false
      return undefined
    }
  }
  const account = read(() => findAccount(deps, key))
  const payer = payerOf(account, access)
  const budget = payer
    ? limiter.takeOfKey(payer, group)
    : limiter.take(group, undefined, clientOf(address, request))
  describeBudget(budget, set)
  if (!duringMaintenance) read(() => refuseDuringMaintenance(deps))
  if (!budget.allowed) throw rateLimited(budget)
  if (!isReadable) throw degradedError('unhealthy', 'error')
  return account
}

/** Sets the `X-RateLimit-*` headers. */
export function describeBudget({ limit, remaining, resetAt }: Budget, set: ResponseState): void {
  set.headers['x-ratelimit-limit'] = limit
  set.headers['x-ratelimit-remaining'] = remaining
  set.headers['x-ratelimit-reset'] = resetAt
}

export const rateLimited = ({ retryAfter: seconds }: Budget): AppError =>
  new AppError('rate_limited', String(seconds), retryAfter(seconds))

/** Throws `maintenance` during planned maintenance. */
export function refuseDuringMaintenance({ maintenance, clock }: GuardDeps): void {
  const until = maintenance.until()
  if (until === undefined) return
  const seconds = Math.ceil((until - clock()) / 1000)
  throw new AppError('maintenance', isoTime(until), retryAfter(seconds))
}

/** Charges the request like one for an unknown code. */
export function refuseUnknownPath(
  deps: GuardDeps,
  context: RequestContext,
  { duringMaintenance, code }: { duringMaintenance: boolean; code?: 'misdirected' },
): never {
  admit(deps, context, { budget: 'read', duringMaintenance })
  throw new AppError(code ?? 'path_not_found')
}

/**
 * Refuses a path without a route for this method. A path of the API that has another method is
 * charged to that method's budget, and `Allow` lists its methods; all other paths are charged as
 * reads.
 */
export function refuseUnmatched(
  deps: GuardDeps,
  { routes }: Pick<Elysia, 'routes'>,
  { request, path, set }: UnmatchedRequest,
): never {
  const allowed = methodsOf(routes, path)
  const duringMaintenance = !path.startsWith('/api/')
  if (allowed.length === 0) refuseUnknownPath(deps, { request, set }, { duringMaintenance })
  if (/^\/(app|docs|cdn|-)?(\/|$)/.test(path)) {
    // Successful requests for most of these paths have no `X-RateLimit-*` either.
    const budget = deps.limiter.take('read', undefined, clientOf(deps.address, request))
    if (!budget.allowed) throw rateLimited(budget)
  } else {
    const budget = allowed.includes('POST') ? 'write' : 'read'
    admit(deps, { request, set }, { budget, duringMaintenance })
  }
  throw new AppError('method_not_allowed', request.method, {
    headers: { allow: allowed.join(', ') },
  })
}

export interface Route {
  method: string
  path: string
}

/** The methods of a path, for `Allow`. GET implies HEAD. Empty for an unknown path. */
export function methodsOf(routes: readonly Route[], path: string): string[] {
  const methods = new Set<string>()
  // Split only once: anybody can send a path of 15,000 segments.
  const found = segmentsOf(path)
  for (const route of routes) {
    if (!matches(segmentsOf(route.path), found)) continue
    methods.add(route.method)
    if (route.method === 'GET') methods.add('HEAD')
  }
  return [...methods]
}

/** A segment `:name` of a pattern stands for one non-empty segment, `*` for the rest. */
export function matches(wanted: readonly string[], found: readonly string[]): boolean {
  if (wanted.at(-1) === '*') return wanted.slice(0, -1).every((name, i) => fits(name, found[i]))
  return wanted.length === found.length && wanted.every((name, i) => fits(name, found[i]))
}

function fits(name: string, segment: string | undefined): boolean {
  return name.startsWith(':') ? segment !== undefined && segment !== '' : name === segment
}

/** The segments of a path. A slash at its end counts for nothing. */
export const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/').slice(1)

/** For endpoints that need no API key. */
export function publicly(deps: GuardDeps, options: GuardOptions) {
  return new Elysia({ name: 'guard.publicly', seed: options }).derive(
    { as: 'scoped' },
    ({ request, set }) => {
      admit(deps, { request, set: set as ResponseState }, options)
    },
  )
}

/** Throws 401, and 403 for a key without this access. */
export function requireAccess(
  account: KeyHolder | undefined,
  access: KeyAccess,
): { account: KeyHolder } {
  if (!account) throw new AppError('invalid_api_key')
  if (!hasAccess(account, access)) {
    throw new AppError(account.keyScope === 'write' ? 'manage_key_needed' : 'read_only_key')
  }
  return { account }
}

/** Charges a request with a key and provides its account. Throws as `requireAccess`. */
export function enterWithKey(
  deps: GuardDeps,
  context: RequestContext,
  access: KeyAccess,
  key = apiKeyOf(context.request.headers),
): { account: KeyHolder } | Promise<{ account: KeyHolder }> {
  const budget = access === 'read' ? 'read' : 'write'
  const found = admit(deps, context, { budget, access, key })
  refuseOtherSite(found, context.request.headers)
  if (budget === 'read' || !deps.writer.isInCluster) return requireAccess(found, access)
  const again = () => requireAccess(findAccount(deps, key), access)
  return deps.writer.decide(() => requireAccess(found, access), again)
}

/**
 * A key that only creates stands in the source of pages: pages of other sites than those that it
 * lists may not use it. Browsers name the site of a page in `Origin`, and that a script or a form
 * is of another site in `Sec-Fetch-Site`; other programs send neither.
 */
function refuseOtherSite(account: KeyHolder | undefined, headers: Headers): void {
  if (account?.keyScope !== 'create') return
  const origin = headers.get('origin')
  const isOwn = origin !== null && URL.parse(origin)?.host === headers.get('host')
  const isListed = origin !== null && account.origins.includes(origin)
  const isElsewhere = /^(cross|same)-site$/.test(headers.get('sec-fetch-site') ?? '')
  if (isOwn || isListed || (origin === null && !isElsewhere)) return
  throw new AppError('foreign_site')
}

/**
 * For endpoints of an account: provides `account`. Throws as `requireAccess`, before the body is
 * read: Elysia reads it before a hook whose parameter is not destructured.
 */
export function requireKey(deps: GuardDeps, access: KeyAccess) {
  const enter = (request: Request, set: object) =>
    enterWithKey(deps, { request, set: set as ResponseState }, access)
  const decides = access !== 'read' && deps.writer.isInCluster
  return new Elysia({ name: 'guard.requireKey', seed: access }).derive(
    { as: 'scoped' },
    decides
      ? async ({ request, set }) => await enter(request, set)
      : ({ request, set }) => enter(request, set) as { account: KeyHolder },
  )
}
