import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import { REFUSALS } from '../errors.ts'
import type { HitJournal } from '../hot/journal.ts'
import type { GuardDeps } from '../http/guard.ts'
import { HeaderLine } from '../http/header-line.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import type { LinkCache } from '../links/cache.ts'

export interface RedirectDeps extends GuardDeps {
  cache: LinkCache
  journal: HitJournal
  log: Log
  /** Whether any proxy is trusted, so that `X-Forwarded-For` counts. */
  behindProxy: boolean
  outcomes: RedirectOutcomes
  health: { onStop(begin: () => void): void }
}

/** For responses with a body; a redirect has none. */
const NO_SNIFFING = { 'X-Content-Type-Options': 'nosniff' }

/** Responses since the start. Redirects of GET requests are not here: the journal counts them. */
export interface RedirectOutcomes {
  foundByHead: number
  notFound: number
  disabled: number
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
  const location = found.line('Location')
  const serviceCode = found.line('X-Service-Code')
  const init = { status: 302, headers: found.headers }
  const refuse = refuser(deps)
  const failed = new AnswerHeaders(deps, NO_SNIFFING)

  const refuseLimited = () => {
    outcomes.limited++
    return refuse('rate_limited', String(limiter.retryAfter))
  }

  const lookUp = (code: Code, account: Account | undefined) => {
    try {
      return cache.lookUp(code)
    } catch (error) {
      // A failed request is charged too, so that its headers describe its own client's limit.
      limiter.take('read', account, address)
      throw error
    }
  }

  const answer: Follow = (text, request, server) => {
    const { headers } = request
    const key = headers.get('x-api-key')
    const account = key === null ? undefined : findAccount(deps, key)
    const peer = server?.requestIP(request)?.address ?? ''
    address.resolve(peer, behindProxy ? headers.get('x-forwarded-for') : null)
    const code = toCode(text)
    let destination = code && cache.findInMemory(code)
    if (code !== undefined && destination === undefined) {
      if (!limiter.mayLookUp('redirect', account, address)) return refuseLimited()
      destination = lookUp(code, account)
    }
    // After the lookup: redirects have a budget of their own.
    const charge = destination?.location ? 'redirect' : 'read'
    if (!limiter.take(charge, account, address)) return refuseLimited()
    if (!destination?.location) {
      if (destination?.isDisabled) {
        outcomes.disabled++
        return refuse('link_disabled', text.toUpperCase())
      }
      outcomes.notFound++
      return refuse('code_not_found', text.toUpperCase())
    }
    if (request.method === 'GET') journal.append(destination.id)
    else outcomes.foundByHead++
    location.set(destination.location)
    serviceCode.set(code as string)
    found.fill()
    return new Response(null, init)
  }

  return (text, request, server) => {
    try {
      return answer(text, request, server)
    } catch (error) {
      return failure(deps, failed, error, request)
    }
  }
}

/** A refusal is a value here: an Error with its stack would cost more than the response. */
function refuser(deps: RedirectDeps) {
  const json = { 'Content-Type': 'application/json;charset=utf-8', ...NO_SNIFFING }
  const refused = new AnswerHeaders(deps, json)
  const limited = new AnswerHeaders(deps, json)
  const retryAfter = limited.line('Retry-After')
  return (code: 'rate_limited' | 'code_not_found' | 'link_disabled', detail: string): Response => {
    const { status, say } = REFUSALS[code]
    const answer = code === 'rate_limited' ? limited : refused
    if (code === 'rate_limited') retryAfter.set(detail)
    answer.fill()
    const message = say(detail)
    // Escaping takes a third of the response's time. A code or a number needs none.
    const text = /^\w*$/.test(detail) ? `"${message}"` : JSON.stringify(message)
    return new Response(`{"error":${text}}`, {
      status,
      headers: answer.headers,
    })
  }
}

/** The code is not in memory and the database failed. */
function failure(
  deps: RedirectDeps,
  answer: AnswerHeaders,
  cause: unknown,
  { method }: Request,
): Response {
  deps.outcomes.failed++
  const request_id = answer.fill()
  deps.log.error('request.failed', { request_id, method, path: '/:code' }, cause)
  const { status, say } = REFUSALS.internal
  return Response.json({ error: say(), request_id }, { status, headers: answer.headers })
}

/**
 * The headers of one kind of response. All responses share one Headers object, because Response
 * copies it: setting what differs costs half of filling a new one.
 */
class AnswerHeaders {
  readonly headers: Headers
  readonly #deps: RedirectDeps
  readonly #limit: HeaderLine
  readonly #remaining: HeaderLine
  readonly #reset: HeaderLine
  readonly #requestId: HeaderLine

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

  line(name: string): HeaderLine {
    return new HeaderLine(this.headers, name)
  }

  /** Sets the limit headers from the limiter's last decision. Returns the request's id. */
  fill(): string {
    const { limiter, requestIds } = this.#deps
    const id = requestIds.next()
    this.#limit.set(limiter.limit)
    this.#remaining.set(limiter.remaining)
    this.#reset.set(limiter.resetAt)
    this.#requestId.set(id)
    return id
  }
}
