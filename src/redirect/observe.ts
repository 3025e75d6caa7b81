import { clientNetwork } from '../hot/client-address.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import type { Histogram } from '../lib/histogram.ts'
import type { Follow } from './follow.ts'

/** One redirect in this many is timed: reading the clock for each would slow down all of them. */
export const SAMPLED_ONE_IN = 128

/** HOT PATH. Times a sample of redirects, the first one included. */
export function timed(follow: Follow, seconds: Histogram, monotonic: MonotonicClock): Follow {
  let untilNext = 1
  return (request, client) => {
    if (--untilNext > 0) return follow(request, client)
    untilNext = SAMPLED_ONE_IN
    const start = monotonic()
    const answer = follow(request, client)
    seconds.observe((monotonic() - start) / 1000)
    return answer
  }
}

interface LoggedDeps {
  /** Writes the log line of a request for a short link. */
  note: (line: Record<string, string | number | null>) => void
  monotonic: MonotonicClock
}

/** Logs each redirect, with `LOG_REQUESTS=all`: that costs more than the redirect itself. */
export function logged(follow: Follow, { note, monotonic }: LoggedDeps): Follow {
  return (request, client) => {
    const start = monotonic()
    const network = clientNetwork(client)
    const answer = follow(request, client)
    if (!answer) return undefined
    note({
      method: 'GET',
      route: '/:code',
      status: answer.status,
      ms: Math.round((monotonic() - start) * 10) / 10,
      request_id: answer.headers['X-Request-Id'] ?? null,
      code: request.text.slice(0, 20),
      client: network,
    })
    return answer
  }
}
