import type { SecretHasher } from '../../accounts/secrets.ts'
import { hashesEqual } from '../../accounts/secrets.ts'
import { AppError } from '../../errors.ts'

/**
 * Throws `form_expired` unless a form was sent from a page of our own. Browsers say so in
 * `Sec-Fetch-Site`, and where they leave it out (plain http) in `Origin`. Who sends neither is no
 * browser, which could be misled: there the form's token alone decides.
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

/** The hidden field that binds a form to a cookie: of the session, or of the browser before it. */
export const formToken = (hasher: SecretHasher, cookie: string): string =>
  hasher.hash('form', cookie).toString('base64url')

/** Throws `form_expired` for a token that another cookie's form has. */
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
