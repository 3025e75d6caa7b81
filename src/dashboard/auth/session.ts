import { newToken, type SignInProof } from '../../accounts/sessions.ts'
import { newDeviceToken } from '../../accounts/sign-in.ts'
import type { DashboardDeps } from '../deps.ts'
import { type Visitor, visitorOf } from './guard.ts'
import type { ClientOrigin } from './origin.ts'
import { formToken } from './same-origin.ts'

/**
 * Signs the visitor in: a new session, never the one whose cookie came with the request. `cookies`
 * belong to the answer.
 */
export async function beginVisit(
  deps: DashboardDeps,
  { request, origin }: { request: Request; origin: ClientOrigin },
  proof: SignInProof,
): Promise<{ visitor: Visitor; cookies: string[] }> {
  const { cookies, hasher, random, sessions } = deps
  const { session, token } = await sessions.start(proof, {
    address: origin.address,
    agent: request.headers.get('user-agent') ?? '',
    replaces: cookies.find('session', request),
  })
  deps.security.record('session.started', origin, { accountId: session.accountId })
  return {
    visitor: visitorOf(session, { csrf: formToken(hasher, token), origin }),
    cookies: [
      cookies.session(token),
      cookies.known(newDeviceToken(hasher, random, session.accountId)),
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
