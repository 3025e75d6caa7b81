import type { ClientAddress } from '../hot/client-address.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import { toCode } from '../lib/code.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import type { LinkCache } from '../links/cache.ts'
import type { KnownCodes } from '../links/known-codes.ts'
import type { PlainRequest } from './plain-request.ts'
import { type Answer, Answers, type ResponseDeps } from './responses.ts'

interface FollowDeps extends ResponseDeps {
  cache: LinkCache
  /** Whether a link may have the code: see `KnownCodes`. */
  codes: Pick<KnownCodes, 'mayExist' | 'prepare'>
  journal: { append(linkId: number): void }
  limiter: Pick<RateLimiter, 'take'>
  address: ClientAddress
  /** Whether any proxy is trusted, so that `X-Forwarded-For` counts. */
  behindProxy: boolean
  counters: Pick<RedirectCounters, 'add'>
}

/** `peer`: the address of the client or its proxy. Undefined: the control thread answers. */
export type Follow = (request: PlainRequest, peer: string) => Answer | undefined

/**
 * HOT PATH. Answers GET /{code} on a redirect thread. No schema, no hooks, no await, no exceptions,
 * no needless object: bench/load/redirect.ts guards its cost. The control thread answers requests
 * for a link with rules, for a text that is not a code, and while the database fails.
 */
export function follower(deps: FollowDeps): Follow {
  const { cache, codes, journal, limiter, address, behindProxy, counters } = deps
  const answers = new Answers(deps)

  return (request, peer) => {
    const code = toCode(request.text)
    if (code === undefined) return undefined
    const client = address.resolve(peer, behindProxy ? request.get('x-forwarded-for') : null)
    let destination = cache.findInMemory(code)
    if (destination === undefined) {
      try {
        if (codes.mayExist(code)) {
          destination = cache.lookUp(code)
          if (!destination) codes.prepare()
        }
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
      return answers.refuse('rate_limited', String(budget.retryAfter), { budget, headers: request })
    }
    if (destination?.location) {
      journal.append(destination.id)
      return answers.redirect(destination.location, budget, code)
    }
    if (destination?.isDisabled) {
      counters.add('disabled')
      return answers.refuse('link_disabled', code, { budget, headers: request })
    }
    counters.add('notFound')
    return answers.refuse('code_not_found', code, { budget, headers: request })
  }
}
