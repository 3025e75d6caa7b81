import type { AppError } from '../errors.ts'
import { html } from '../lib/html.ts'
import { htmlResponse, seeOther } from './responses.ts'
import { notice } from './ui/components.ts'
import { authPage } from './ui/layout.ts'

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  413: 'Too large',
  429: 'Too many requests',
  500: 'Something went wrong',
  503: 'Not now',
}

interface Failure {
  refusal: AppError
  requestId: string
  request: Request
}

/** Whether errors of this path are answered as pages. */
export const isDashboardPath = (path: string): boolean => /^\/app(\/|$)/.test(path)

/** An error as a page. Without a session, redirects to the sign-in page instead. */
export function errorPage({ refusal, requestId, request }: Failure): Response {
  // `invalid_api_key` means here: the account was disabled while its form was being sent.
  if (refusal.code === 'sign_in_needed' || refusal.code === 'invalid_api_key') {
    return toSignIn(request)
  }
  const { status, headers } = refusal
  if (status === 429 && isHtmx(request)) return htmlResponse(html``, { status, headers })
  const hint = html`<p class="hint">
    Give the administrator this request id: <code>${requestId}</code></p>`
  return authPage({
    title: TITLES[status] ?? 'Not possible',
    status,
    headers: { ...headers, 'x-request-id': requestId },
    main: html`
      ${notice(status >= 500 ? 'bad' : 'note', html`<p>${refusal.message}</p>`)}
      ${status === 500 && hint}
      <p><a href="/app">Go to the dashboard</a></p>`,
  })
}

function toSignIn(request: Request): Response {
  // The origin comes from the Host header and may not parse as a URL.
  const path = request.url.replace(/^\w+:\/\/[^/]*/, '')
  const next = request.method === 'GET' ? safeNext(path) : undefined
  const signIn = next ? `/app/sign-in?next=${encodeURIComponent(next)}` : '/app/sign-in'
  if (!isHtmx(request)) return seeOther(signIn)
  // htmx would put the target of a plain redirect into a part of this page.
  return htmlResponse(html``, { status: 401, headers: { 'hx-redirect': signIn } })
}

/** Requests of htmx. Its error handler in dashboard.js shows `Retry-After` to the user. */
const isHtmx = ({ headers }: Request): boolean => headers.get('hx-request') === 'true'

/** The page to open after signing in: only pages of the dashboard are accepted. */
export function safeNext(next: string | undefined): string | undefined {
  return next !== undefined && /^\/app\/[\w/-]*(\?[\w=&%.~+!'()*-]*)?$/.test(next)
    ? next
    : undefined
}
