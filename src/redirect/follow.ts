import type { ClientAddress } from '../hot/client-address.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Peers } from '../http/context.ts'
import { toCode } from '../lib/code.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import type { LinkCache } from '../links/cache.ts'
import type { KnownCodes } from '../links/known-codes.ts'
import { type ResponseDeps, redirector, refuser } from './responses.ts'

export interface FollowDeps extends ResponseDeps {
  cache: LinkCache
  /** Whether a link may have the code: see `KnownCodes`. */
  codes: Pick<KnownCodes, 'mayExist'>
  journal: { append(linkId: number): void }
  limiter: Pick<RateLimiter, 'take' | 'hasReads'>
  address: ClientAddress
  /** Whether any proxy is trusted, so that `X-Forwarded-For` counts. */
  behindProxy: boolean
  counters: Pick<RedirectCounters, 'add'>
}

/** Undefined: the control thread answers. */
export type Follow = (text: string, request: Request, server: Peers) => Response | undefined

/**
 * HOT PATH. Answers GET /{code} on a redirect thread. No schema, no hooks, no await, no exceptions,
 * no needless object: bench/load/redirect.ts guards its cost. The control thread answers requests
 * with an API key, for a link with rules, for what is no code, and while the database fails.
 */
export function follower(deps: FollowDeps): Follow {
  const { cache, codes, journal, limiter, address, behindProxy, counters } = deps
  const redirect = redirector(deps)
  const refuse = refuser(deps)

  return (text, request, server) => {
    const { headers } = request
    const code = toCode(text)
    if (code === undefined || headers.get('x-api-key') !== null) return undefined
    const peer = server.requestIP(request)?.address ?? ''
    const client = address.resolve(peer, behindProxy ? headers.get('x-forwarded-for') : null)
    let destination = cache.findInMemory(code)
    if (destination === undefined) {
      try {
        // A caller without reads left causes no look-up for a code that is certainly unknown.
        const isLookedUp = limiter.hasReads(undefined, client) || codes.mayExist(code)
        if (isLookedUp) destination = cache.lookUp(code)
      } catch {
        return undefined
      }
    }
    if (destination?.hasRules) return undefined
    // Known first: a link that is found has a budget of its own.
    const charge = destination?.location ? 'redirect' : 'read'
    const budget = limiter.take(charge, undefined, client)
    if (!budget.allowed) {
      counters.add('limited')
      return refuse('rate_limited', String(budget.retryAfter), { budget, headers })
    }
    if (destination?.location) {
      if (request.method === 'GET') journal.append(destination.id)
      else counters.add('foundByHead')
      return redirect(code, destination.location, budget)
    }
    if (destination?.isDisabled) {
      counters.add('disabled')
      return refuse('link_disabled', code, { budget, headers })
    }
    counters.add('notFound')
    return refuse('code_not_found', code, { budget, headers })
  }
}
