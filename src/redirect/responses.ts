import type { RequestDomain } from '../addresses/map.ts'
import { REFUSALS } from '../errors.ts'
import { newRequestId, type RequestHeaders } from '../http/context.ts'
import type { Budget } from '../limits/budgets.ts'
import type { LinkRules } from '../links/destination.ts'
import {
  type Brand,
  isNavigation,
  type LinkPreview,
  type OffReason,
  redirectNavigation,
  VARY,
  VisitorPages,
  type VisitorProblem,
} from './visitor-page.ts'

export interface ResponseDeps {
  brand: Brand
  /** Every response of a service that is stopping has `Connection: close`. */
  health: { readonly isStopping: boolean }
}

/** A response to a request for a short link; a redirect thread sends it as text. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

const json = (status: number, view: object): Answer => ({
  status,
  headers: {
    'Content-Type': 'application/json;charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    // The code may be created, or the link resumed, at any time.
    'Cache-Control': 'no-store',
  },
  body: JSON.stringify(view),
})

/**
 * A request that would use up a hit although no one sees the destination: of a browser that fetches
 * links in advance, or of an app that shows a preview of a link that was sent.
 */
export type HeldBack = 'prefetch' | 'preview'

type Refusal = Exclude<VisitorProblem, 'internal'>

/** Why a password was not accepted. `retryAfter`: seconds. */
export interface PasswordRefusal {
  code: 'wrong_password' | 'too_many_attempts' | 'busy'
  retryAfter?: string | undefined
}

/** The request to which a refusal responds, and its budget after it. */
interface Refused {
  budget: Budget
  headers: RequestHeaders
  /** Only for the page of a browser. */
  reason?: OffReason | undefined
  domain: RequestDomain
}

/** Creates the responses to requests for short links, for all threads. */
export class Answers {
  readonly #deps: ResponseDeps
  readonly #pages: VisitorPages
  readonly #pagesOfOthers: VisitorPages

  constructor(deps: ResponseDeps) {
    this.#deps = deps
    this.#pages = new VisitorPages(deps.brand)
    // The files of pages are on the primary domain only.
    this.#pagesOfOthers = new VisitorPages({ ...deps.brand, logo: undefined, font: undefined })
  }

  /** HOT PATH. The 302 of a link; without `code`, to the destination after its expiry. */
  redirect(location: string, budget: Budget, rules: LinkRules, code?: string): Answer {
    const headers: Record<string, string> = { Location: location, 'Cache-Control': 'no-store' }
    if (code !== undefined) headers['X-Service-Code'] = code
    if (rules.no_index) headers['X-Robots-Tag'] = 'noindex'
    this.#describe(headers, budget)
    return { status: 302, headers, body: '' }
  }

  /**
   * A refusal is a value here: an Error with its stack would cost more than the response. A browser
   * that navigates gets a page, all other clients get JSON.
   */
  refuse(code: Refusal, detail: string, refused: Refused): Answer {
    const { budget } = refused
    const { status, message } = REFUSALS[code]
    const answer = this.#page(code, refused) ?? json(status, { error: message(detail) })
    answer.headers.Vary = VARY
    if (code === 'rate_limited') answer.headers['Retry-After'] = detail
    this.#describe(answer.headers, budget)
    return answer
  }

  /**
   * The form to a browser, and to an app that shows a preview; 401 or the refusal to a program. A
   * browser that does not navigate would ask with a dialog of its own if it were challenged.
   */
  askPassword(
    code: string,
    refusal: PasswordRefusal | undefined,
    { budget, headers, domain, isPreview }: Refused & { isPreview: boolean },
  ): Answer {
    const { code: problem, retryAfter = '' } = refusal ?? { code: 'password_required' as const }
    const { status, message } = REFUSALS[problem]
    const isPage = isPreview || isNavigation(headers)
    const detail = problem === 'too_many_attempts' ? retryAfter : code
    const answer = isPage
      ? this.#pagesOf(domain).passwordForm(problem, headers, retryAfter)
      : json(status, { error: message(detail) })
    if (status === 401 && !isPage && !isOfBrowser(headers)) {
      answer.headers['WWW-Authenticate'] = `Basic realm="${code}", charset="UTF-8"`
    }
    if (retryAfter !== '') answer.headers['Retry-After'] = retryAfter
    answer.headers.Vary = `${VARY}, Authorization, Cookie, User-Agent`
    this.#describe(answer.headers, budget)
    return answer
  }

  /** A response without the destination to a request that does not follow the link. */
  holdBack(why: HeldBack, { budget, headers, domain }: Refused): Answer {
    const requestId = newRequestId()
    const answer =
      why === 'preview' ? this.#pagesOf(domain).preview(headers) : failure('prefetched', requestId)
    answer.headers.Vary = 'Accept-Language, Purpose, Sec-Purpose, User-Agent'
    this.#describe(answer.headers, budget, requestId)
    return answer
  }

  /** What a link leads to: a page for a browser, `view` for a program. */
  preview(link: LinkPreview, view: object, { budget, headers, domain }: Refused): Answer {
    const answer = isNavigation(headers)
      ? this.#pagesOf(domain).destination(link, headers)
      : json(200, view)
    Object.assign(answer.headers, { 'X-Robots-Tag': 'noindex', Vary: VARY })
    this.#describe(answer.headers, budget)
    return answer
  }

  /** The database fails, and the destination is not in memory. Returns the request's id too. */
  fail({ budget, headers, domain }: Refused): { answer: Answer; requestId: string } {
    const requestId = newRequestId()
    const answer = isNavigation(headers)
      ? this.#pagesOf(domain).refusal('internal', headers)
      : internalError(requestId)
    answer.headers.Vary = VARY
    this.#describe(answer.headers, budget, requestId)
    return { answer, requestId }
  }

  #pagesOf({ isPrimary }: RequestDomain): VisitorPages {
    return isPrimary ? this.#pages : this.#pagesOfOthers
  }

  #page(code: Refusal, { headers, reason, domain }: Refused): Answer | undefined {
    if (!isNavigation(headers)) return undefined
    const { notFoundUrl } = domain
    const isUnknown = code === 'code_not_found' && reason === undefined
    if (isUnknown && notFoundUrl !== undefined) return redirectNavigation(notFoundUrl)
    return this.#pagesOf(domain).refusal(code, headers, reason)
  }

  /** Adds the headers of every response. */
  #describe(
    headers: Record<string, string>,
    { limit, remaining, resetAt }: Budget,
    id = newRequestId(),
  ): void {
    headers['X-RateLimit-Limit'] = String(limit)
    headers['X-RateLimit-Remaining'] = String(remaining)
    headers['X-RateLimit-Reset'] = String(resetAt)
    headers['X-Request-Id'] = id
    if (this.#deps.health.isStopping) headers.Connection = 'close'
  }
}

/** The response after an exception, which is a bug. */
export const internalError = (requestId: string): Answer => failure('internal', requestId)

function failure(code: 'internal' | 'prefetched', requestId: string): Answer {
  const { status, message } = REFUSALS[code]
  const answer = json(status, { error: message(), request_id: requestId })
  answer.headers['X-Request-Id'] = requestId
  return answer
}

export const toResponse = ({ status, headers, body }: Answer): Response =>
  new Response(body === '' ? null : body, { status, headers })

/** Programs on Node.js send `Sec-Fetch-Mode: cors` and none of the others. */
export const isOfBrowser = (headers: RequestHeaders): boolean =>
  headers.get('sec-fetch-mode') === 'navigate' ||
  ['sec-fetch-dest', 'sec-fetch-site', 'sec-fetch-user'].some((name) => headers.get(name) !== null)

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  302: 'Found',
  308: 'Permanent Redirect',
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  410: 'Gone',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

/** HOT PATH. The bytes of a response on a connection, as text. `date`: for the header `Date`. */
export function toText({ status, headers, body }: Answer, date: string): string {
  let text = `HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n`
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`
  const length = body === '' ? 0 : Buffer.byteLength(body)
  return `${text}Date: ${date}\r\nContent-Length: ${length}\r\n\r\n${body}`
}
