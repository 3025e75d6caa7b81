import { hashesEqual, type SecretHasher } from '../../accounts/secrets.ts'
import { newToken } from '../../accounts/sessions.ts'
import { AppError } from '../../errors.ts'
import type { DashboardDeps } from '../deps.ts'

/**
 * Throws `form_expired` unless a form was sent from one of our own pages. Browsers report that in
 * `Sec-Fetch-Site`, or over plain http in `Origin`. A client that sends neither is not a browser,
 * and cannot be tricked into sending a form: there, only the form token is checked.
 */
export function requireSameOrigin({ headers }: Request, baseUrl: string): void {
  const site = headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw new AppError('form_expired')
  }
  const origin = headers.get('origin')
  if (origin === null) return
  const host = URL.parse(origin)?.host
  const own = [URL.parse(baseUrl)?.host, headers.get('host')]
  if (!host || !own.includes(host)) throw new AppError('form_expired')
}

/** The hidden field `csrf`. It binds a form to the session cookie, or before sign-in to `form`. */
export const formToken = (hasher: SecretHasher, cookie: string): string =>
  hasher.hash('form', cookie).toString('base64url')

/** Throws `form_expired` for a token that does not belong to this cookie. */
export function requireFormToken(
  hasher: SecretHasher,
  cookie: string | undefined,
  token: string,
): void {
  const expected = cookie === undefined ? undefined : hasher.hash('form', cookie)
  if (!expected || !hashesEqual(expected, Buffer.from(token, 'base64url'))) {
    throw new AppError('form_expired')
  }
}

/** The token of a form on a page without a session, and the cookies that the page must set. */
export function anonymousForm(
  { cookies, hasher, random }: DashboardDeps,
  request: Request,
): { csrf: string; cookies: string[] } {
  const found = cookies.find('form', request)
  if (found) return { csrf: formToken(hasher, found), cookies: [] }
  const created = newToken(random)
  return { csrf: formToken(hasher, created), cookies: [cookies.form(created)] }
}
