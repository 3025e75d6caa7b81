import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import { REFUSALS } from '../errors.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import { clientOf } from '../http/context.ts'
import type { GuardDeps } from '../http/guard.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import type { Budget } from '../limits/budgets.ts'
import type { DestinationReads } from '../links/destination.ts'
import type { LinkRules, RuleCache } from '../links/rules.ts'
import {
  AnswerHeaders,
  NO_SNIFFING,
  type Refuse,
  type ResponseDeps,
  redirector,
  refuser,
  withHeaders,
} from './responses.ts'
import { stateOf, withQuery } from './rules.ts'
import { isNavigation, visitorPage } from './visitor-page.ts'

export interface ControlDeps extends GuardDeps, ResponseDeps {
  requestIds: GuardDeps['requestIds']
  destinations: DestinationReads
  rules: RuleCache
  journal: { append(linkId: number): void }
  log: Log
  counters: Pick<RedirectCounters, 'add'>
}

/**
 * Answers the requests for short links that a redirect thread forwards: with an API key, for a link
 * with rules, and during a failure of the database.
 */
export function controlFollower(deps: ControlDeps): (text: string, request: Request) => Response {
  const { destinations, rules, journal, limiter, address, clock, counters } = deps
  const redirect = redirector(deps)
  const refuse = refuser(deps)
  const expired = expiredFollower(deps, refuse)
  const failed = new AnswerHeaders(deps, NO_SNIFFING)

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
        return refuse('rate_limited', String(budget.retryAfter), { budget, headers })
      }
      if (code === undefined || !destination?.location || state === 'off') {
        const isDisabled = destination?.isDisabled === true
        counters.add(isDisabled ? 'disabled' : 'notFound')
        const refusal = isDisabled ? 'link_disabled' : 'code_not_found'
        return refuse(refusal, text.toUpperCase(), { budget, headers })
      }
      if (found && state === 'expired') return expired(code, found, { request, budget })
      const { id, location } = destination
      const isHit = request.method === 'GET'
      if (found && isHit) found.hits++
      if (isHit) journal.append(id)
      else counters.add('foundByHead')
      const isExtended = found?.forwardQuery === true
      return redirect(code, isExtended ? withQuery(location, request.url) : location, budget)
    } catch (error) {
      // A failed request is charged too, and its headers report its own caller's budget.
      budget ??= limiter.take('read', account, client)
      return failure(deps, failed, { budget, error, request })
    }
  }
}

interface RequestInfo {
  request: Request
  budget: Budget
}

/** After the end of a link: 410, or a redirect to the URL for this case. */
function expiredFollower(deps: ControlDeps, refuse: Refuse) {
  const elsewhere = new AnswerHeaders(deps, { 'Cache-Control': 'no-store' })
  const location = elsewhere.line('Location')
  return (code: Code, { expiredLocation }: LinkRules, { request, budget }: RequestInfo) => {
    deps.counters.add('expired')
    if (expiredLocation === null) {
      return refuse('link_expired', code, { budget, headers: request.headers })
    }
    location.set(expiredLocation)
    elsewhere.fill(budget)
    return new Response(null, { status: 302, headers: elsewhere.headers })
  }
}

interface Failure {
  budget: Budget
  error: unknown
  request: Request
}

/** The code is not in memory and the database failed. */
function failure(
  deps: ControlDeps,
  answer: AnswerHeaders,
  { budget, error, request }: Failure,
): Response {
  const { method, headers } = request
  deps.counters.add('failed')
  const request_id = answer.fill(budget)
  deps.log.error('request.failed', { request_id, method, path: '/:code' }, error)
  if (isNavigation(headers)) return withHeaders(visitorPage('failed', headers), answer.headers)
  const { status, message } = REFUSALS.internal
  return Response.json({ error: message(), request_id }, { status, headers: answer.headers })
}
