import { newToken } from '../accounts/sessions.ts'
import { markKnown } from '../accounts/sign-in.ts'
import type { AccountId } from '../accounts/store.ts'
import { KEY_HIGH_IPV4, KEY_HIGH_UNKNOWN } from '../http/client-address.ts'
import type { DashboardDeps } from './deps.ts'
import { type Visitor, visitorOf } from './guard.ts'
import { formToken } from './same-origin.ts'

/** What Elysia's context gives of a request. */
export interface Arrival {
  request: Request
  server: Bun.Server<unknown> | null
}

/** The visitor's IPv4 address, or the /64 of the IPv6 one: as much as the limiter tells apart. */
export function addressOf({ address }: DashboardDeps, { request, server }: Arrival): string {
  const peer = server?.requestIP(request)?.address ?? ''
  address.resolve(peer, request.headers.get('x-forwarded-for'))
  const { keyHigh, keyLow } = address
  if (keyHigh === KEY_HIGH_UNKNOWN) return 'unknown'
  if (keyHigh === KEY_HIGH_IPV4) {
    return [24, 16, 8, 0].map((shift) => (keyLow >>> shift) & 255).join('.')
  }
  const words = [keyHigh >>> 16, keyHigh & 0xffff, keyLow >>> 16, keyLow & 0xffff]
  return `${words.map((word) => word.toString(16)).join(':')}::/64`
}

/**
 * Signs the visitor in: a new session, never the one whose cookie came with the request. `cookies`
 * belong to the answer.
 */
export async function beginVisit(
  deps: DashboardDeps,
  { request, address }: { request: Request; address: string },
  proof: { accountId: AccountId; passwordHash: string },
): Promise<{ visitor: Visitor; cookies: string[] }> {
  const { cookies, hasher, random, sessions } = deps
  const { session, token } = await sessions.start(proof, {
    address,
    agent: request.headers.get('user-agent') ?? '',
    replaces: cookies.find('session', request),
  })
  return {
    visitor: visitorOf(session, formToken(hasher, token)),
    cookies: [
      cookies.session(token),
      cookies.known(markKnown(hasher, random, session.accountId)),
      cookies.end('form'),
    ],
  }
}

/** The token of a stranger's form, and the cookies that a page with one must set. */
export function strangersForm(
  { cookies, hasher, random }: DashboardDeps,
  request: Request,
): { csrf: string; cookies: string[] } {
  const found = cookies.find('form', request)
  if (found) return { csrf: formToken(hasher, found), cookies: [] }
  const made = newToken(random)
  return { csrf: formToken(hasher, made), cookies: [cookies.form(made)] }
}
