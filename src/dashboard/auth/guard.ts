import { Elysia } from 'elysia'
import type { Origin } from '../../accounts/security-log.ts'
import type { SessionRow } from '../../accounts/sessions.ts'
import type { Account, AccountId } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { clientNetwork } from '../../hot/client-address.ts'
import { type BodyLimits, declaredLength, SMALL_BODY_MAX } from '../../http/body.ts'
import { clientOf, type RequestContext } from '../../http/context.ts'
import { rateLimited, refuseDuringMaintenance } from '../../http/guard.ts'
import { pageTurns } from '../../lib/turns.ts'
import { bulkBytesMax } from '../../links/create.ts'
import type { DashboardDeps } from '../deps.ts'
import { EMPTY_FORM, type Form, readForm } from '../ui/form.ts'
import { originOf } from './origin.ts'
import { formToken, requireFormToken, requireSameOrigin } from './same-origin.ts'

/** Who looks at a page. */
export interface Visitor {
  account: Account & { email: string; isOwner: boolean }
  session: { id: number; createdAt: number; provedAt: number }
  /** Stands in every form of the visitor's, as the hidden field `csrf`. */
  csrf: string
  /** Where the request comes from, for the log. */
  origin: Origin
}

export const visitorOf = (
  { id, createdAt, provedAt, accountId, plan, email, isOwner }: SessionRow,
  { csrf, origin }: Pick<Visitor, 'csrf' | 'origin'>,
): Visitor => ({
  account: { id: accountId, plan, email, isOwner: isOwner === 1 },
  session: { id, createdAt, provedAt },
  csrf,
  origin,
})

interface Demands {
  /** Only for the owner of the service: for others there is no such page. */
  owner?: boolean
  /** Forms may hold a batch of URLs. One over 64 KiB is charged as a write before it is read. */
  bulk?: boolean
}

/**
 * For pages of an account: gives `visitor`, its `account`, `session` and `csrf`, and `form`, which
 * is empty for GET. A form without the session's token, or from another site, is refused before the
 * page sees it. Who is not signed in is sent to the sign-in page. `isCharged`: the form has been
 * charged to the write budget.
 */
export const signedIn = (deps: DashboardDeps, { owner = false, bulk = false }: Demands = {}) =>
  new Elysia({ name: 'dashboard.signedIn', seed: { owner, bulk } }).derive(
    { as: 'scoped' },
    async ({ request, server, set }) => {
      const origin = originOf(deps, { request, server, set })
      const token = deps.cookies.find('session', request)
      const session = deps.sessions.find(token)
      // One request a round of the event loop: redirects do not wait for a crowd of them.
      if (session) await pageTurns.next()
      // Before the form is read, because that is the most expensive part.
      spendPage(deps, { request, server }, session?.accountId)
      const early = requireSession(session, owner)
      const { account } = visitorOf(early, { csrf: '', origin })
      const isCharged = bulk && isLargeForm(request)
      if (isCharged) {
        requireSameOrigin(request, deps.baseUrl)
        deps.unsent.requireRoom(account.id)
        spendWrite(deps, account)
      }
      const bytesMax = bulk ? bulkFormBytesMax(deps, account) : SMALL_BODY_MAX
      const limits = { owner: account.id, bytesMax }
      const form = await readOwnForm(deps, request, token, limits)
      // A form may arrive as slowly as its sender likes: the session may have ended meanwhile.
      const found = form === EMPTY_FORM ? early : requireSession(deps.sessions.find(token), owner)
      const visitor = visitorOf(found, { csrf: formToken(deps.hasher, token ?? ''), origin })
      return { ...visitor, visitor, form, isCharged }
    },
  )

/** For pages that anybody may see, like the sign-in: charges them to the caller's address. */
export const anonymously = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.anonymously' }).onBeforeHandle(
    { as: 'scoped' },
    ({ request, server }) => spendPage(deps, { request, server }),
  )

/** Charges a request to its account, or without one to its address. Throws `rate_limited`. */
function spendPage(
  { limiter, address }: DashboardDeps,
  { request, server }: Pick<RequestContext, 'request' | 'server'>,
  accountId?: AccountId,
): void {
  const budget = limiter.takePage(accountId, clientOf(address, { request, server }))
  if (!budget.allowed) throw rateLimited(budget)
}

function requireSession(session: SessionRow | undefined, owner: boolean): SessionRow {
  if (!session) throw new AppError('sign_in_needed')
  if (owner && !session.isOwner) throw new AppError('path_not_found')
  return session
}

async function readOwnForm(
  { baseUrl, hasher, bodies }: DashboardDeps,
  request: Request,
  cookie: string | undefined,
  limits: BodyLimits,
): Promise<Form> {
  if (request.method === 'GET' || request.method === 'HEAD') return EMPTY_FORM
  requireSameOrigin(request, baseUrl)
  const form = await readForm(bodies, request, limits)
  requireFormToken(hasher, cookie, form.raw('csrf'))
  return form
}

/** An address and a password: anybody may send so much, on many connections at once. */
const STRANGERS_FORM_BYTES_MAX = 16 * 1024

/** For forms of somebody who is not signed in: their token belongs to the browser's form cookie. */
export function readStrangersForm(
  deps: DashboardDeps,
  { request, server }: Pick<RequestContext, 'request' | 'server'>,
): Promise<Form> {
  const { address, cookies } = deps
  const owner = clientNetwork(clientOf(address, { request, server }))
  const limits = { owner, bytesMax: STRANGERS_FORM_BYTES_MAX }
  return readOwnForm(deps, request, cookies.find('form', request), limits)
}

/** Parsing a form takes several times its bytes in memory. */
const LARGEST_FORM_BYTES = 8 * 1024 * 1024

const bulkFormBytesMax = ({ plans }: DashboardDeps, { plan }: Account): number =>
  Math.min(bulkBytesMax(plans[plan].bulkMax), LARGEST_FORM_BYTES)

/** Whether a form may be larger than an ordinary one: its length is too large, or unknown. */
function isLargeForm(request: Request): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return false
  return (declaredLength(request) ?? Number.POSITIVE_INFINITY) > SMALL_BODY_MAX
}

/**
 * Charges a change to links to the account's write budget, the same that its API keys have. Throws
 * `maintenance` or `rate_limited`.
 */
export function spendWrite(deps: DashboardDeps, account: Account): void {
  refuseDuringMaintenance(deps)
  const budget = deps.limiter.takeOfAccount('write', account)
  if (!budget.allowed) throw rateLimited(budget)
}
