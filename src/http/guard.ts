import { Elysia } from 'elysia'
import { findAccount, type KeyCheckDeps } from '../accounts/keys.ts'
import type { BudgetGroup } from '../accounts/plans.ts'
import type { Account } from '../accounts/store.ts'
import { AppError, degradedError } from '../errors.ts'
import type { ClientAddress } from '../hot/client-address.ts'
import { isoTime, type MonotonicClock } from '../lib/clock.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import { type Headed, REQUEST_ID, type Unrouted } from './errors.ts'
import { methodsOf } from './methods.ts'
import type { RequestIds } from './request-id.ts'

export interface GuardDeps extends KeyCheckDeps {
  limiter: RateLimiter
  maintenance: MaintenanceMode
  address: ClientAddress
  requestIds: RequestIds
  monotonic: MonotonicClock
}

/** What Elysia's context gives that the guard needs. */
export interface Arrival {
  request: Request
  server: Bun.Server<unknown> | null
  set: Headed
}

interface Demands {
  budget: BudgetGroup
  /** The endpoint goes on during maintenance: redirects and images do. */
  duringMaintenance?: boolean
  /**
   * The endpoint reports the service's state: while the account or the maintenance cannot be looked
   * up, the request is charged to its address and answered with 503 `degraded`.
   */
  reportsState?: boolean
}

/**
 * Every refusal that does not depend on the request's content, in the order of the API: 503
 * maintenance, 429. Charges the caller's budget and says so in the headers. Returns the account of
 * a valid key.
 */
export function admit(
  deps: GuardDeps,
  { request, server, set }: Arrival,
  { budget, duringMaintenance = false, reportsState = false }: Demands,
): Account | undefined {
  const { limiter, address, requestIds } = deps
  const { headers } = request
  set.headers[REQUEST_ID] = requestIds.next()
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
  const account = read(() => findAccount(deps, headers.get('x-api-key')))
  const peer = server?.requestIP(request)?.address ?? ''
  address.resolve(peer, headers.get('x-forwarded-for'))
  const passes = limiter.take(budget, account, address)
  describeLimit(limiter, set)
  if (!duringMaintenance) read(() => refuseDuringMaintenance(deps))
  if (!passes) throw rateLimited(limiter)
  if (!isReadable) throw degradedError('unhealthy', { database: 'error' })
  return account
}

/** Says in the headers what the limiter's last decision left. */
export function describeLimit(limiter: RateLimiter, set: Headed): void {
  set.headers['x-ratelimit-limit'] = limiter.limit
  set.headers['x-ratelimit-remaining'] = limiter.remaining
  set.headers['x-ratelimit-reset'] = limiter.resetAt
}

/** The limiter's last decision as a refusal. */
export function rateLimited({ retryAfter: seconds }: RateLimiter): AppError {
  return new AppError('rate_limited', String(seconds), retryAfter(seconds))
}

/** Throws `maintenance` while one is planned to last. */
export function refuseDuringMaintenance({ maintenance, clock }: GuardDeps): void {
  const until = maintenance.until()
  if (until === undefined) return
  const seconds = Math.ceil((until - clock()) / 1000)
  throw new AppError('maintenance', isoTime(until), retryAfter(seconds))
}

/**
 * Refuses a path that has no route for this method. One of the API with another method is charged
 * like the path's own, and told which are allowed.
 */
export function refuseUnrouted(
  deps: GuardDeps,
  { routes, server }: Pick<Elysia, 'routes' | 'server'>,
  { request, path, set }: Unrouted,
): never {
  const allowed = methodsOf(routes, path)
  if (allowed.length === 0) {
    if (path.startsWith('/api/')) refuseDuringMaintenance(deps)
    throw new AppError('path_not_found')
  }
  if (!/^\/(app|docs|cdn|-)?(\/|$)/.test(path)) {
    const budget = allowed.includes('POST') ? 'write' : 'read'
    const duringMaintenance = !path.startsWith('/api/')
    admit(deps, { request, server, set }, { budget, duringMaintenance })
  }
  throw new AppError('method_not_allowed', request.method, {
    headers: { allow: allowed.join(', ') },
  })
}

const retryAfter = (seconds: number) => ({ headers: { 'retry-after': String(seconds) } })

/** For endpoints that anyone may call. */
export const publicly = (deps: GuardDeps, demands: Demands) =>
  new Elysia({ name: 'guard.publicly', seed: demands }).derive(
    { as: 'scoped' },
    ({ request, server, set }) => {
      admit(deps, { request, server, set: set as Headed }, demands)
    },
  )

/**
 * For endpoints of an account: gives `account`, or refuses with 401 before the body is looked at.
 */
export const requireKey = (deps: GuardDeps, budget: BudgetGroup) =>
  new Elysia({ name: 'guard.requireKey', seed: budget }).derive(
    { as: 'scoped' },
    ({ request, server, set }) => {
      const account = admit(deps, { request, server, set: set as Headed }, { budget })
      if (!account) throw new AppError('invalid_api_key')
      return { account }
    },
  )
