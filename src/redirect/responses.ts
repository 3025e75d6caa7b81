import { REFUSALS } from '../errors.ts'
import { CachedHeader } from '../http/cached-header.ts'
import type { Budget } from '../limits/budgets.ts'
import { isNavigation, redirectNavigation, visitorPage } from './visitor-page.ts'

export interface ResponseDeps {
  requestIds: { next(): string }
  /** Where browsers are redirected that open an unknown code. */
  notFoundUrl: string | undefined
  /** Runs `begin` when the service is about to stop. */
  health: { onStop(begin: () => void): void }
}

/** For responses with a body; a redirect has none. */
export const NO_SNIFFING = { 'X-Content-Type-Options': 'nosniff' }

/** HOT PATH. Makes the 302 of a link. */
export function redirector(deps: ResponseDeps) {
  const found = new AnswerHeaders(deps, { 'Cache-Control': 'no-store' })
  const locationLine = found.line('Location')
  const serviceCode = found.line('X-Service-Code')
  const init = { status: 302, headers: found.headers }
  return (code: string, location: string, budget: Budget): Response => {
    locationLine.set(location)
    serviceCode.set(code)
    found.fill(budget)
    return new Response(null, init)
  }
}

const PROBLEMS = {
  rate_limited: 'limited',
  code_not_found: 'notFound',
  link_disabled: 'disabled',
  link_expired: 'expired',
} as const

export type Refuse = ReturnType<typeof refuser>

/**
 * A refusal is a value here: an Error with its stack would cost more than the response. A browser
 * that navigates gets a page, all other clients get JSON.
 */
export function refuser(deps: ResponseDeps) {
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
export function withHeaders(page: Response, headers: Headers): Response {
  for (const [name, value] of headers) {
    if (name !== 'content-type') page.headers.set(name, value)
  }
  return page
}

/**
 * The headers of one kind of response. All responses share one Headers object, because Response
 * copies it: setting what differs costs half of filling a new one.
 */
export class AnswerHeaders {
  readonly headers: Headers
  readonly #deps: ResponseDeps
  readonly #limit: CachedHeader
  readonly #remaining: CachedHeader
  readonly #reset: CachedHeader
  readonly #requestId: CachedHeader

  constructor(deps: ResponseDeps, fixed: Record<string, string>) {
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
