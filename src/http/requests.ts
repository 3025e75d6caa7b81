import { Elysia } from 'elysia'
import type { ClientAddress } from '../hot/client-address.ts'
import { clientNetwork } from '../hot/client-network.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { REQUEST_ID } from './errors.ts'

/** Answers alike in route, method and status. */
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

/** What an unknown path, or a known one with a wrong method, is counted under. */
const UNMATCHED = 'unmatched'
/** Counts itself, without a hook: see redirect/follow.ts. */
const REDIRECT = '/:code'
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts and times answers. Bounded, because a route is a pattern and never a caller's path. */
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
  /** A line for each request. */
  logs: boolean
}

interface Arrived {
  at: number
  client: string | undefined
}

/** What Elysia's context holds once the answer is made. */
interface Answered {
  request: Request
  route?: string
  set: { status?: number | string; headers: Record<string, string | number> }
  account?: { id: number }
  responseValue?: unknown
}

/**
 * Counts, times and, where asked, logs every request but redirects. Must be used before the routes:
 * hooks reach only those that come later.
 */
export const observeRequests = ({ tally, monotonic, address, log, logs }: ObserverDeps) => {
  const arrivals = new WeakMap<Request, Arrived>()
  return new Elysia({ name: 'http.requests' })
    .onRequest(({ request, server }) => {
      let client: string | undefined
      if (logs) {
        // Asked now: once it is answered, the connection may be gone.
        const peer = server?.requestIP(request)?.address ?? ''
        address.resolve(peer, request.headers.get('x-forwarded-for'))
        client = clientNetwork(address)
      }
      arrivals.set(request, { at: monotonic(), client })
    })
    .onAfterResponse({ as: 'global' }, (context) => {
      const { request, route, set, account, responseValue } = context as unknown as Answered
      const arrived = arrivals.get(request)
      if (!arrived || route === REDIRECT) return
      const { method } = request
      const status =
        responseValue instanceof Response ? responseValue.status : Number(set.status ?? 200)
      const ms = monotonic() - arrived.at
      tally.add(route || UNMATCHED, method, status, ms / 1000)
      if (!logs) return
      const request_id = set.headers[REQUEST_ID]
      const { client } = arrived
      log.info('request', {
        ...{ method, route: route || UNMATCHED, status, ms: Math.round(ms * 10) / 10 },
        ...{ request_id, account_id: account?.id, client },
      })
    })
}
