import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import { clientOf } from '../http/context.ts'
import type { GuardDeps } from '../http/guard.ts'
import { toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import type { Budget } from '../limits/budgets.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { RuleCache } from '../links/rules.ts'
import { type Answer, Answers, type ResponseDeps } from './responses.ts'
import { stateOf, withQuery } from './rules.ts'

interface ControlDeps extends GuardDeps, ResponseDeps {
  requestIds: GuardDeps['requestIds']
  destinations: DestinationReads
  rules: RuleCache
  journal: { append(linkId: number): void }
  log: Log
  counters: Pick<RedirectCounters, 'add'>
}

/**
 * Answers the requests for short links that a redirect thread forwards: with an API key, for a link
 * with rules, in an unusual form, and during a failure of the database.
 */
export function controlFollower(deps: ControlDeps): (text: string, request: Request) => Answer {
  const { destinations, rules, journal, limiter, address, clock, counters } = deps
  const answers = new Answers(deps)

  return (text, request) => {
    const { headers } = request
    const client = clientOf(address, request)
    let account: Account | undefined
    let budget: Budget | undefined
    try {
      const key = headers.get('x-api-key')
      account = key === null ? undefined : findAccount(deps, key)
      const code = toCode(text)
      const destination = code && destinations.find(code)
      const isRuled = code !== undefined && destination?.hasRules === true
      const found = isRuled ? rules.find(code, destination.id) : undefined
      const state = found ? stateOf(found, clock()) : 'active'
      // The limit in the headers must not tell a paused link from an unknown code.
      const isFound = typeof destination?.location === 'string' && state !== 'off'
      budget = limiter.take(isFound ? 'redirect' : 'read', account, client)
      if (!budget.allowed) {
        counters.add('limited')
        return answers.refuse('rate_limited', String(budget.retryAfter), { budget, headers })
      }
      if (code === undefined || !destination?.location || state === 'off') {
        const isDisabled = destination?.isDisabled === true
        counters.add(isDisabled ? 'disabled' : 'notFound')
        const refusal = isDisabled ? 'link_disabled' : 'code_not_found'
        return answers.refuse(refusal, text.toUpperCase(), { budget, headers })
      }
      if (found && state === 'expired') {
        counters.add('expired')
        const { expiredLocation } = found
        return expiredLocation === null
          ? answers.refuse('link_expired', code, { budget, headers })
          : answers.redirect(expiredLocation, budget)
      }
      const { id, location } = destination
      const isHit = request.method === 'GET'
      if (found && isHit) found.hits++
      if (isHit) journal.append(id)
      else counters.add('foundByHead')
      const isExtended = found?.forwardQuery === true
      const target = isExtended ? withQuery(location, request.url) : location
      return answers.redirect(target, budget, code)
    } catch (error) {
      // A failed request is charged too, and its headers report its own caller's budget.
      budget ??= limiter.take('read', account, client)
      counters.add('failed')
      const { answer, requestId } = answers.fail({ budget, headers })
      const fields = { request_id: requestId, method: request.method, path: '/:code' }
      deps.log.error('request.failed', fields, error)
      return answer
    }
  }
}
