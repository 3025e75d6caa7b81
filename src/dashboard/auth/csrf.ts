import { hashesEqual, newToken, type SecretHasher } from '../../accounts/secrets.ts'
import { AppError } from '../../errors.ts'
import type { DashboardDeps } from '../deps.ts'

/** Any scheme, DNS name and port have fewer characters. */
const ORIGIN_MAX_LENGTH = 310

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
  // The parser's time is quadratic for a host with escapes.
  const host = origin.length <= ORIGIN_MAX_LENGTH ? URL.parse(origin)?.host : undefined
  const own = [URL.parse(baseUrl)?.host, headers.get('host')]
  if (!host || !own.includes(host)) throw new AppError('form_expired')
}

const TOKEN_BYTES = 32

/**
 * The hidden field `csrf`. It binds a form to the session cookie, or before sign-in to `form`. A
 * random pad precedes the token under that pad, so that no two pages contain the same bytes: the
 * lengths of compressed pages would otherwise reveal the token (BREACH).
 */
export function formToken(
  { hasher, random }: Pick<DashboardDeps, 'hasher' | 'random'>,
  cookie: string,
): string {
  const pad = random(TOKEN_BYTES)
  const masked = mask(hasher.hash('form', cookie), pad)
  return Buffer.concat([pad, masked]).toString('base64url')
}

const mask = (bytes: Uint8Array, pad: Uint8Array): Uint8Array =>
  bytes.map((byte, i) => byte ^ (pad[i] as number))

/** Throws `form_expired` for a token that belongs to none of the cookies. */
export function requireFormToken(
  hasher: SecretHasher,
  cookies: readonly string[],
  token: string,
): void {
  const sent = Buffer.from(token, 'base64url')
  if (sent.length !== 2 * TOKEN_BYTES) throw new AppError('form_expired')
  const unmasked = mask(sent.subarray(TOKEN_BYTES), sent)
  const isFrom = (cookie: string) => hashesEqual(hasher.hash('form', cookie), unmasked)
  if (!cookies.some(isFrom)) throw new AppError('form_expired')
}

/** The token of a form on a page without a session, and the cookies that the page must set. */
export function anonymousForm(
  deps: DashboardDeps,
  request: Request,
): { csrf: string; cookies: string[] } {
  const { cookies, random } = deps
  const found = cookies.findByName('form', request)
  if (found) return { csrf: formToken(deps, found), cookies: [] }
  const created = newToken(random)
  return { csrf: formToken(deps, created), cookies: [cookies.form(created)] }
}
