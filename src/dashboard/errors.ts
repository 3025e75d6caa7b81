import type { AppError } from '../errors.ts'
import { html } from '../lib/html.ts'
import { goTo, htmlAnswer } from './answers.ts'
import { notice } from './ui/components.ts'
import { doorPage } from './ui/layout.ts'

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

/** Whether a path is the dashboard's own, and its errors are pages. */
export const isDashboardPath = (path: string): boolean => /^\/app(\/|$)/.test(path)

/** A refusal or a failure as a page. Who is not signed in is sent to the page for it instead. */
export function errorPage({ refusal, requestId, request }: Failure): Response {
  // Here, the second one means that the account was disabled while its form was on the way.
  if (refusal.code === 'sign_in_needed' || refusal.code === 'invalid_api_key') {
    return toSignIn(request)
  }
  const { status, headers } = refusal
  if (status === 429 && isPartAsked(request)) return htmlAnswer(html``, { status, headers })
  const number = html`<p class="hint">
    Tell who runs the service the number of this request: <code>${requestId}</code></p>`
  return doorPage({
    title: TITLES[status] ?? 'Not possible',
    status,
    headers: { ...headers, 'x-request-id': requestId },
    main: html`
      ${notice(status >= 500 ? 'bad' : 'note', html`<p>${refusal.message}</p>`)}
      ${status === 500 && number}
      <p><a href="/app">Go to the dashboard</a></p>`,
  })
}

function toSignIn(request: Request): Response {
  // Begins with what the Host header said, which need not parse.
  const asked = request.url.replace(/^\w+:\/\/[^/]*/, '')
  const wanted = request.method === 'GET' ? safeNext(asked) : undefined
  const path = wanted ? `/app/sign-in?next=${encodeURIComponent(wanted)}` : '/app/sign-in'
  if (!isPartAsked(request)) return goTo(path)
  // A redirect would put the sign-in page into a part of this one.
  return htmlAnswer(html``, { status: 401, headers: { 'hx-redirect': path } })
}

/** htmx asks: its script says what a refusal with `Retry-After` means. */
const isPartAsked = ({ headers }: Request): boolean => headers.get('hx-request') === 'true'

/** Where to go after signing in: a page of the dashboard, never somewhere else. */
export function safeNext(next: string | undefined): string | undefined {
  return next !== undefined && /^\/app\/[\w/-]*(\?[\w=&%.~+-]*)?$/.test(next) ? next : undefined
}
