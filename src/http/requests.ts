import { Elysia } from 'elysia'
import { type ClientAddress, clientNetwork } from '../hot/client-address.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { clientOf, isShortLink, REQUEST_ID } from './context.ts'

/** Number of responses with the same route, method and status. */
interface RequestCount {
  /** A pattern like `/api/lookup/:code`, or `unmatched`. */
  route: string
  method: string
  status: number
  count: number
}

interface RequestTimes {
  route: string
  method: string
  seconds: Histogram
}

/** The route of an unknown path, and of a known path with a wrong method. */
const UNMATCHED = 'unmatched'
const REDIRECT = '/:code'
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts and times responses. Bounded, because a route is a pattern and never a client's path. */
export class RequestTally {
  readonly #counts = new Map<string, RequestCount>()
  readonly #times = new Map<string, RequestTimes>()

  add(route: string, method: string, status: number, seconds: number): void {
    const known = METHODS.has(method) ? method : 'other'
    const about = { route, method: known }
    const counted = () => ({ ...about, status, count: 0 })
    this.#counts.getOrInsertComputed(`${known} ${status} ${route}`, counted).count++
    const timed = () => ({ ...about, seconds: new Histogram(LATENCY_BOUNDS) })
    this.#times.getOrInsertComputed(`${known} ${route}`, timed).seconds.observe(seconds)
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
  /** Which requests get a line in the log. */
  logs: 'none' | 'api' | 'all'
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
  params?: { code?: string }
}

/**
 * Counts, times and logs the requests that the control thread answers. redirect/ has counters of
 * its own. Must be used before the routes: hooks apply to those registered later.
 */
export const observeRequests = ({ tally, monotonic, address, log, logs }: ObserverDeps) => {
  const starts = new WeakMap<Request, Start>()
  return new Elysia({ name: 'http.requests' })
    .onRequest(({ request }) => {
      const client = logs !== 'none' ? clientNetwork(clientOf(address, request)) : undefined
      starts.set(request, { at: monotonic(), client })
    })
    .onAfterResponse(
      { as: 'global' },
      ({ request, route, set, account, responseValue, params }: AfterResponse) => {
        const start = starts.get(request)
        if (!start) return
        const { method } = request
        const response = responseValue instanceof Response ? responseValue : undefined
        const status = response?.status ?? Number(set.status ?? 200)
        const ms = monotonic() - start.at
        const isRedirect = isShortLink(request)
        if (!isRedirect) tally.add(route || UNMATCHED, method, status, ms / 1000)
        if (logs === 'none' || (isRedirect && logs === 'api')) return
        log.info('request', {
          method,
          route: isRedirect ? REDIRECT : route || UNMATCHED,
          status,
          ms: Math.round(ms * 10) / 10,
          request_id: response?.headers.get(REQUEST_ID) ?? set.headers[REQUEST_ID],
          account_id: account?.id,
          code: isRedirect ? params?.code?.slice(0, 20) : undefined,
          client: start.client,
        })
      },
    )
}
