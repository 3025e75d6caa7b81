import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import { REFUSALS } from '../errors.ts'
import type { HitJournal } from '../hot/journal.ts'
import type { GuardDeps } from '../http/guard.ts'
import { CachedHeader } from '../http/headers.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import type { Budget } from '../limits/budgets.ts'
import type { LinkCache } from '../links/cache.ts'
import type { RuleCache } from '../links/rules.ts'
import { stateOf, withQuery } from './rules.ts'
import { isNavigation, redirectNavigation, visitorPage } from './visitor-page.ts'

export interface RedirectDeps extends GuardDeps {
  cache: LinkCache
  rules: RuleCache
  journal: HitJournal
  log: Log
  /** Whether any proxy is trusted, so that `X-Forwarded-For` counts. */
  behindProxy: boolean
  outcomes: RedirectOutcomes
  /** Where browsers are redirected that open an unknown code. */
  notFoundUrl: string | undefined
  health: { onStop(begin: () => void): void }
}

/** For responses with a body; a redirect has none. */
const NO_SNIFFING = { 'X-Content-Type-Options': 'nosniff' }

/** Responses since the start. Redirects of GET requests are not here: the journal counts them. */
export interface RedirectOutcomes {
  foundByHead: number
  notFound: number
  disabled: number
  /** Answered with 410, or with 302 to the URL for this case. */
  expired: number
  limited: number
  failed: number
}

interface Peers {
  requestIP(request: Request): { address: string } | null
}

export type Follow = (text: string, request: Request, server: Peers | null) => Response

/**
 * HOT PATH. Answers GET /{code}. No schema, no hooks, no await, no exceptions, no needless object:
 * bench/load/redirect.ts guards its cost.
 */
export function follower(deps: RedirectDeps): Follow {
  const { cache, journal, limiter, address, behindProxy, outcomes } = deps
  const found = new AnswerHeaders(deps, { 'Cache-Control': 'no-store' })
  const locationLine = found.line('Location')
  const serviceCode = found.line('X-Service-Code')
  const init = { status: 302, headers: found.headers }
  const refuse = refuser(deps)
  const applyRules = ruler(deps, refuse)
  const failed = new AnswerHeaders(deps, NO_SNIFFING)

  const refuseLimited = (budget: Budget, headers: Headers) => {
    outcomes.limited++
    return refuse('rate_limited', String(budget.retryAfter), { budget, headers })
  }

  return (text, request, server) => {
    const { headers } = request
    const peer = server?.requestIP(request)?.address ?? ''
    const client = address.resolve(peer, behindProxy ? headers.get('x-forwarded-for') : null)
    let account: Account | undefined
    let budget: Budget | undefined
    try {
      const key = headers.get('x-api-key')
      account = key === null ? undefined : findAccount(deps, key)
      const code = toCode(text)
      let destination = code && cache.findInMemory(code)
      if (code !== undefined && destination === undefined) {
        // A caller without reads left causes no look-up for a code that is certainly unknown.
        const isLookedUp = limiter.hasReads(account, client) || cache.mayExist(code)
        if (isLookedUp) destination = cache.lookUp(code)
      }
      // Known first: a link that is found has a budget of its own.
      budget = limiter.take(destination?.location ? 'redirect' : 'read', account, client)
      if (!budget.allowed) return refuseLimited(budget, headers)
      if (!destination?.location) {
        if (destination?.isDisabled) {
          outcomes.disabled++
          return refuse('link_disabled', text.toUpperCase(), { budget, headers })
        }
        outcomes.notFound++
        return refuse('code_not_found', text.toUpperCase(), { budget, headers })
      }
      let { location } = destination
      if (destination.hasRules) {
        const ruled = applyRules(code as Code, { ...destination, location }, { request, budget })
        if (ruled instanceof Response) return ruled
        location = ruled
      }
      if (request.method === 'GET') journal.append(destination.id)
      else outcomes.foundByHead++
      locationLine.set(location)
      serviceCode.set(code as string)
      found.fill(budget)
      return new Response(null, init)
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

/** For a link with rules: the location to redirect to, which is a hit, or another response. */
function ruler(deps: RedirectDeps, refuse: Refuse) {
  const { rules, outcomes, clock } = deps
  const elsewhere = new AnswerHeaders(deps, { 'Cache-Control': 'no-store' })
  const location = elsewhere.line('Location')
  return (
    code: Code,
    destination: { id: number; location: string },
    { request, budget }: RequestInfo,
  ): string | Response => {
    const found = rules.find(code, destination.id)
    const state = stateOf(found, clock())
    if (state === 'active') {
      if (request.method === 'GET') found.hits++
      return found.forwardQuery
        ? withQuery(destination.location, request.url)
        : destination.location
    }
    if (state === 'off') {
      outcomes.notFound++
      return refuse('code_not_found', code, { budget, headers: request.headers })
    }
    outcomes.expired++
    if (found.expiredLocation === null) {
      return refuse('link_expired', code, { budget, headers: request.headers })
    }
    location.set(found.expiredLocation)
    elsewhere.fill(budget)
    return new Response(null, { status: 302, headers: elsewhere.headers })
  }
}

const PROBLEMS = {
  rate_limited: 'limited',
  code_not_found: 'notFound',
  link_disabled: 'disabled',
  link_expired: 'expired',
} as const

type Refuse = ReturnType<typeof refuser>

/**
 * A refusal is a value here: an Error with its stack would cost more than the response. A browser
 * that navigates gets a page, all other clients get JSON.
 */
function refuser(deps: RedirectDeps) {
  const json = { 'Content-Type': 'application/json;charset=utf-8', ...NO_SNIFFING }
  const refused = new AnswerHeaders(deps, json)
  const limited = new AnswerHeaders(deps, json)
  const retryAfter = limited.line('Retry-After')
  return (
    code: keyof typeof PROBLEMS,
    detail: string,
    { budget, headers }: { budget: Budget; headers: Headers },
  ): Response => {
    const { status, message } = REFUSALS[code]
    const answer = code === 'rate_limited' ? limited : refused
    if (code === 'rate_limited') retryAfter.set(detail)
    answer.fill(budget)
    if (isNavigation(headers)) {
      const { notFoundUrl } = deps
      const isRedirected = code === 'code_not_found' && notFoundUrl !== undefined
      const page = isRedirected
        ? redirectNavigation(notFoundUrl)
        : visitorPage(PROBLEMS[code], headers)
      return withHeaders(page, answer.headers)
    }
    const error = message(detail)
    // Escaping takes a third of the answer's time; around a code or a number, nothing needs it.
    const text = /^\w*$/.test(detail) ? `"${error}"` : JSON.stringify(error)
    return new Response(`{"error":${text}}`, {
      status,
      headers: answer.headers,
    })
  }
}

/** Adds the headers of every response, which are not about the body. */
function withHeaders(page: Response, headers: Headers): Response {
  for (const [name, value] of headers) {
    if (name !== 'content-type') page.headers.set(name, value)
  }
  return page
}

interface Failure {
  budget: Budget
  error: unknown
  request: Request
}

/** The code is not in memory and the database failed. */
function failure(
  deps: RedirectDeps,
  answer: AnswerHeaders,
  { budget, error, request }: Failure,
): Response {
  const { method, headers } = request
  deps.outcomes.failed++
  const request_id = answer.fill(budget)
  deps.log.error('request.failed', { request_id, method, path: '/:code' }, error)
  if (isNavigation(headers)) return withHeaders(visitorPage('failed', headers), answer.headers)
  const { status, message } = REFUSALS.internal
  return Response.json({ error: message(), request_id }, { status, headers: answer.headers })
}

/**
 * The headers of one kind of response. All responses share one Headers object, because Response
 * copies it: setting what differs costs half of filling a new one.
 */
class AnswerHeaders {
  readonly headers: Headers
  readonly #deps: RedirectDeps
  readonly #limit: CachedHeader
  readonly #remaining: CachedHeader
  readonly #reset: CachedHeader
  readonly #requestId: CachedHeader

  constructor(deps: RedirectDeps, fixed: Record<string, string>) {
    this.headers = new Headers(fixed)
    this.#deps = deps
    this.#limit = this.line('X-RateLimit-Limit')
    this.#remaining = this.line('X-RateLimit-Remaining')
    this.#reset = this.line('X-RateLimit-Reset')
    this.#requestId = this.line('X-Request-Id')
    // Set once for all later responses, so that no redirect has to check for it.
    deps.health.onStop(() => this.headers.set('Connection', 'close'))
  }

  line(name: string): CachedHeader {
    return new CachedHeader(this.headers, name)
  }

  /** Sets the headers of one response. Returns the request's id. */
  fill({ limit, remaining, resetAt }: Budget): string {
    const id = this.#deps.requestIds.next()
    this.#limit.set(limit)
    this.#remaining.set(remaining)
    this.#reset.set(resetAt)
    this.#requestId.set(id)
    return id
  }
}
