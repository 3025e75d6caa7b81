import { type ClientAddress, clientNetwork } from '../hot/client-address.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import type { Histogram } from '../lib/histogram.ts'
import type { Follow } from './follow.ts'

/** One redirect in this many is timed: reading the clock for each would slow all down. */
export const SAMPLED_ONE_IN = 128

/** HOT PATH. Times a sample of redirects, the first one included. */
export function timed(follow: Follow, seconds: Histogram, monotonic: MonotonicClock): Follow {
  let untilNext = 1
  return (text, request, server) => {
    if (--untilNext > 0) return follow(text, request, server)
    untilNext = SAMPLED_ONE_IN
    const start = monotonic()
    const response = follow(text, request, server)
    seconds.observe((monotonic() - start) / 1000)
    return response
  }
}

interface LoggedDeps {
  /** Writes what the log says about a request for a short link. */
  note: (line: Record<string, string | number | null>) => void
  address: ClientAddress
  monotonic: MonotonicClock
}

/** Logs each redirect, with `LOG_REQUESTS=all`: that costs more than the redirect itself. */
export function logged(follow: Follow, { note, address, monotonic }: LoggedDeps): Follow {
  return (text, request, server) => {
    const start = monotonic()
    // Before the response: a connection that is closed has no peer any more.
    const peer = server.requestIP(request)?.address ?? ''
    const client = clientNetwork(address.resolve(peer, request.headers.get('x-forwarded-for')))
    const response = follow(text, request, server)
    if (!response) return undefined
    note({
      method: request.method,
      route: '/:code',
      status: response.status,
      ms: Math.round((monotonic() - start) * 10) / 10,
      request_id: response.headers.get('x-request-id'),
      code: text.slice(0, 20),
      client,
    })
    return response
  }
}
