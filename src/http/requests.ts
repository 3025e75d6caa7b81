import { Elysia } from 'elysia'
import { type ClientAddress, clientNetwork } from '../hot/client-address.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { clientOf, REQUEST_ID } from './context.ts'

/** Number of responses with the same route, method and status. */
export interface RequestCount {
  /** A pattern like `/api/lookup/:code`, or `unmatched`. */
  route: string
  method: string
  status: number
  count: number
}

export interface RequestTimes {
  route: string
  method: string
  seconds: Histogram
}

/** The route of an unknown path, and of a known path with a wrong method. */
const UNMATCHED = 'unmatched'
/** redirect/follow.ts counts redirects, without a hook. */
const REDIRECT = '/:code'
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts and times responses. Bounded, because a route is a pattern and never a client's path. */
export class RequestTally {
  readonly #counts = new Map<string, RequestCount>()
  readonly #times = new Map<string, RequestTimes>()

  add(route: string, method: string, status: number, seconds: number): void {
    const known = METHODS.has(method) ? method : 'other'
    const key = `${known} ${status} ${route}`
    const found = this.#counts.get(key)
    if (found) found.count++
    else this.#counts.set(key, { route, method: known, status, count: 1 })
    const timesKey = `${known} ${route}`
    let times = this.#times.get(timesKey)
    if (!times) {
      times = { route, method: known, seconds: new Histogram(LATENCY_BOUNDS) }
      this.#times.set(timesKey, times)
    }
    times.seconds.observe(seconds)
  }

  counts(): Iterable<RequestCount> {
    return this.#counts.values()
  }

  times(): Iterable<RequestTimes> {
    return this.#times.values()
  }
}

interface ObserverDeps {
  tally: RequestTally
  monotonic: MonotonicClock
  address: ClientAddress
  log: Log
  /** Whether to log a line for each request. */
  logs: boolean
}

interface Start {
  at: number
  client: string | undefined
}

/** The part of Elysia's context that is used after the response. */
interface AfterResponse {
  request: Request
  route?: string
  set: { status?: number | string; headers: Record<string, string | number> }
  account?: { id: number }
  responseValue?: unknown
}

/**
 * Counts, times and, if `logs`, logs every request except redirects. Must be used before the
 * routes: hooks apply only to those registered later.
 */
export const observeRequests = ({ tally, monotonic, address, log, logs }: ObserverDeps) => {
  const starts = new WeakMap<Request, Start>()
  return new Elysia({ name: 'http.requests' })
    .onRequest(({ request, server }) => {
      const client = logs ? clientNetwork(clientOf(address, { request, server })) : undefined
      starts.set(request, { at: monotonic(), client })
    })
    .onAfterResponse({ as: 'global' }, (context) => {
      const { request, route, set, account, responseValue } = context as unknown as AfterResponse
      const start = starts.get(request)
      if (!start || route === REDIRECT) return
      const { method } = request
      const status =
        responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200)
      const ms = monotonic() - start.at
      tally.add(route || UNMATCHED, method, status, ms / 1000)
      if (!logs) return
      log.info('request', {
        method,
        route: route || UNMATCHED,
        status,
        ms: Math.round(ms * 10) / 10,
        request_id: set.headers[REQUEST_ID],
        account_id: account?.id,
        client: start.client,
      })
    })
}
