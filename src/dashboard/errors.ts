import { type AppError, REFUSALS } from '../errors.ts'
import { methodsOf, type Route } from '../http/guard.ts'
import { html } from '../lib/html.ts'
import { type CurrentUser, currentUserOf } from './auth/guard.ts'
import type { DashboardDeps } from './deps.ts'
import { htmlResponse, isHtmx, pathOf, seeOther } from './responses.ts'
import { linkButton, notice } from './ui/components.ts'
import { authPage, page } from './ui/layout.ts'

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Page not found',
  413: 'Too large',
  429: 'Too many requests',
  500: 'Something went wrong',
  503: 'Temporarily unavailable',
}

interface Failure {
  path: string
  refusal: AppError
  requestId: string
  request: Request
}

/** Whether only forms are sent to a path. A refused one leaves it in the address bar. */
function isForm(routes: readonly Route[], path: string): boolean {
  const exact = routes.filter((route) => route.path === path).map(({ method }) => method)
  // A path of words may look like one of a page with a code.
  const methods = exact.length > 0 ? exact : methodsOf(routes, path)
  return methods.includes('POST') && !methods.includes('GET')
}

/** The path of the page that has the form: the first page above it. */
function pageOfForm(routes: readonly Route[], path: string): string {
  const above = path.slice(0, path.lastIndexOf('/'))
  const isPage = methodsOf(routes, above).includes('GET') && !isForm(routes, above)
  return isPage ? above : pageOfForm(routes, above)
}

/** Whether errors of this path are answered as pages. */
export const isDashboardPath = (path: string): boolean => /^\/app(\/|$)/.test(path)

/** An error as a page. Without a session, redirects to the sign-in page instead. */
export function errorPage(
  deps: DashboardDeps,
  failure: Failure,
  { routes }: { routes: readonly Route[] },
): Response {
  const { path, refusal, requestId, request } = failure
  if (request.method === 'GET' && [404, 405].includes(refusal.status) && isForm(routes, path)) {
    return seeOther(pageOfForm(routes, path))
  }
  if (refusal.code === 'sign_in_needed') return toSignIn(request)
  const { status, headers } = refusal
  // The error handler in dashboard.js shows `Retry-After`.
  if (status === 429 && isHtmx(request)) return htmlResponse(html``, { status, headers })
  const hint = html`<p class="hint">
    Give the administrator this request id: <code>${requestId}</code></p>`
  const { message } = refusal.code === 'path_not_found' ? REFUSALS.page_not_found : refusal
  const title = TITLES[status] ?? 'Not possible'
  const shown = typeof message === 'string' ? message : message()
  const text = notice(status >= 500 ? 'bad' : 'note', html`<p>${shown}</p>`)
  const response = { status, headers: { ...headers, 'x-request-id': requestId } }
  const user = findUser(deps, failure)
  if (user) {
    const back = html`<div class="row">${linkButton('Go to your links', '/app/links')}</div>`
    return page({ user }, { ...response, title, main: [text, back] })
  }
  const back = html`<p><a href="/app">Go to the dashboard</a></p>`
  return authPage(
    { deps, request },
    { ...response, title, main: [text, status === 500 && hint, back] },
  )
}

/** The page keeps its navigation if the request was wrong, not if the service cannot serve it. */
function findUser(deps: DashboardDeps, failure: Failure): CurrentUser | undefined {
  const { refusal, requestId, request } = failure
  if (![403, 404, 413, 415].includes(refusal.status)) return undefined
  const token = deps.cookies.findByName('session', request)
  if (token === undefined) return undefined
  try {
    const session = deps.sessions.findByToken(token)
    const origin = { network: '', requestId }
    return session && currentUserOf(deps, session, { request, origin, token })
  } catch {
    // A failing database must not turn a refusal into a 500.
    return undefined
  }
}

function toSignIn(request: Request): Response {
  const next = request.method === 'GET' ? safeNext(pathOf(request)) : undefined
  const signIn = next ? `/app/sign-in?next=${encodeURIComponent(next)}` : '/app/sign-in'
  if (!isHtmx(request)) return seeOther(signIn)
  // htmx would put the target of a plain redirect into a part of this page.
  return htmlResponse(html``, { status: 401, headers: { 'hx-redirect': signIn } })
}

/** The page to open after signing in: only pages of the dashboard are accepted. */
export function safeNext(next: string | undefined): string | undefined {
  return next !== undefined && /^\/app\/[\w/-]*(\?[\w=&%.~+!'()*-]*)?$/.test(next)
    ? next
    : undefined
}
