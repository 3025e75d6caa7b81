import { Elysia } from 'elysia'
import type { Origin } from '../../accounts/security-log.ts'
import type { SessionRow } from '../../accounts/sessions.ts'
import type { Account, AccountId, AccountRow } from '../../accounts/store.ts'
import { AppError } from '../../errors.ts'
import { clientIp, clientNetwork } from '../../hot/client-address.ts'
import { type BodyLimits, declaredLength, LARGE_BODY_MAX, SMALL_BODY_MAX } from '../../http/body.ts'
import { clientOf, REQUEST_ID, type ResponseState } from '../../http/context.ts'
import { rateLimited, refuseDuringMaintenance } from '../../http/guard.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import { bulkBytesMax } from '../../links/create.ts'
import type { DashboardDeps } from '../deps.ts'
import { catchFormError, pathOf } from '../responses.ts'
import { EMPTY_FORM, type Form, readForm } from '../ui/form.ts'
import type { Theme } from './cookies.ts'
import { formToken, requireFormToken, requireSameOrigin } from './csrf.ts'

/** Checks before a page runs: session, form, budget and the client's address. */

export interface CurrentUser {
  account: Account & { email: string; isOwner: boolean }
  session: { id: number; createdAt: number; provedAt: number; isLong: boolean }
  /** The hidden field `csrf` of every form. */
  csrf: string
  /** The client, for the security log. */
  origin: Origin
  /** Undefined: the colors of the system. */
  theme: Theme | undefined
  /** Path of the page, with its query unless that is long; undefined for a response to a form. */
  path: string | undefined
}

/** `token`: of the session's cookie. */
export function currentUserOf(
  deps: Pick<DashboardDeps, 'cookies' | 'hasher' | 'random'>,
  { id, createdAt, provedAt, isLong, accountId, plan, email, isOwner }: SessionRow,
  { request, origin, token }: { request: Request; origin: Origin; token: string },
): CurrentUser {
  return {
    account: { id: accountId, plan, email, isOwner: isOwner === 1 },
    session: { id, createdAt, provedAt, isLong: isLong === 1 },
    csrf: formToken(deps, token),
    origin,
    theme: deps.cookies.findTheme(request),
    path: request.method === 'GET' ? shortPathOf(request) : undefined,
  }
}

const PATH_LENGTH_MAX = 200

function shortPathOf(request: Request): string {
  const path = pathOf(request)
  return path.length > PATH_LENGTH_MAX ? path.replace(/\?.*/, '').slice(0, PATH_LENGTH_MAX) : path
}

interface GuardOptions {
  /** Only for the owner of the service. Everybody else gets 404. */
  owner?: boolean
  /**
   * Forms may contain a batch of URLs, or a file to import, which may be larger for owners. One
   * over 64 KiB is charged as a write before it is read.
   */
  bulk?: boolean | 'file'
}

/**
 * For pages that need a session: provides `user`, and `form`, which is empty for GET. Forms without
 * the session's token or from another site are refused before the page runs. Without a session the
 * response redirects to the sign-in page. `isCharged`: the form was charged to the write budget.
 */
export const signedIn = (deps: DashboardDeps, { owner = false, bulk = false }: GuardOptions = {}) =>
  new Elysia({ name: 'dashboard.signedIn', seed: { owner, bulk } }).derive(
    { as: 'scoped' },
    async ({ request, set }) => {
      const origin = originOf(deps, { request, set })
      const token = deps.cookies.find('session', request)
      const session = deps.sessions.find(token)
      // One page request per tick of the event loop, so that many of them do not delay redirects.
      if (session) await pageSlices.next()
      // Before the form is read, which is the most expensive part.
      spendPage(deps, request, session?.accountId)
      if (isForm(request)) await deps.writer.catchUp()
      const early = requireSession(session ?? deps.sessions.find(token), owner)
      const account = { id: early.accountId, plan: early.plan }
      const isCharged = bulk !== false && isLargeForm(request)
      if (isCharged) {
        requireSameOrigin(request, deps.baseUrl)
        deps.unsent.requireRoom(account.id)
        spendWrite(deps, account)
      }
      const isLargest = bulk === 'file' && early.isOwner === 1
      const bytesMax = bulk ? bulkFormBytesMax(deps, account, isLargest) : SMALL_BODY_MAX
      const form = await readGuardedForm(deps, request, token, { owner: account.id, bytesMax })
      // A form may arrive slowly: the session may have ended meanwhile.
      const found = form === EMPTY_FORM ? early : requireSession(deps.sessions.find(token), owner)
      const user = currentUserOf(deps, found, { request, origin, token: token ?? '' })
      return { user, form, isCharged }
    },
  )

/** For pages without a session, like the sign-in: charges the client's address. */
export const anonymously = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.anonymously' }).onBeforeHandle({ as: 'scoped' }, ({ request }) => {
    spendPage(deps, request)
  })

function requireSession(session: SessionRow | undefined, owner: boolean): SessionRow {
  if (!session) throw new AppError('sign_in_needed')
  if (owner && !session.isOwner) throw new AppError('path_not_found')
  return session
}

/** The complete, current account. Throws `sign_in_needed` if it was deleted meanwhile. */
export function requireAccount({ accounts }: DashboardDeps, { account }: CurrentUser): AccountRow {
  const found = accounts.find(account.id)
  if (!found) throw new AppError('sign_in_needed')
  return found
}

/** The parameters of a page's query. */
export type Query = Readonly<Record<string, string | undefined>>

/** The part of Elysia's context that describes the client. */
export interface RequestContext {
  request: Request
  set: { headers: object }
}

export interface ClientOrigin extends Origin {
  /** The IPv4 address or the IPv6 /64 network: the unit that the limiter counts. */
  address: string
}

/** The client of a request. Sets the response's request id. */
export function originOf(deps: DashboardDeps, { request, set }: RequestContext): ClientOrigin {
  const client = clientOf(deps.address, request)
  const { headers } = set as ResponseState
  headers[REQUEST_ID] ??= deps.requestIds.next()
  return {
    address: clientIp(client),
    network: clientNetwork(client),
    requestId: String(headers[REQUEST_ID]),
  }
}

/** Charges a request to its account, or without one to its address. Throws `rate_limited`. */
function spendPage(
  { limiter, address }: DashboardDeps,
  request: Request,
  accountId?: AccountId,
): void {
  const budget = limiter.takePage(accountId, clientOf(address, request))
  if (!budget.allowed) throw rateLimited(budget)
}

/**
 * Charges a change of links to the account's write budget, which its API keys share. Throws
 * `maintenance` or `rate_limited`.
 */
export function spendWrite(deps: DashboardDeps, account: Account): void {
  refuseDuringMaintenance(deps)
  const budget = deps.limiter.takeOf(account, 'write')
  if (!budget.allowed) throw rateLimited(budget)
}

/** Charges a change like `spendWrite`, then runs it. Returns errors like `catchFormError`. */
export function tryWrite<Result>(
  deps: DashboardDeps,
  { account }: CurrentUser,
  change: () => Promise<Result>,
): Promise<{ done: Result } | { error: AppError }> {
  return catchFormError(async () => {
    spendWrite(deps, account)
    return change()
  })
}

async function readGuardedForm(
  { baseUrl, hasher, bodies }: DashboardDeps,
  request: Request,
  cookie: string | undefined,
  limits: BodyLimits,
): Promise<Form> {
  if (!isForm(request)) return EMPTY_FORM
  requireSameOrigin(request, baseUrl)
  const form = await readForm(bodies, request, limits)
  requireFormToken(hasher, cookie, form.raw('csrf'))
  return form
}

/** Enough for an e-mail address and a password. Anybody may send this, on many connections. */
const ANONYMOUS_FORM_BYTES_MAX = 16 * 1024

/** Reads a form without a session. Its token belongs to the cookie `form`. */
export async function readAnonymousForm(deps: DashboardDeps, request: Request): Promise<Form> {
  await deps.writer.catchUp()
  const limits = {
    owner: clientNetwork(clientOf(deps.address, request)),
    bytesMax: ANONYMOUS_FORM_BYTES_MAX,
  }
  const cookie = deps.cookies.find('form', request)
  return readGuardedForm(deps, request, cookie, limits)
}

/** Parsing a form needs several times its size in memory. */
const BULK_FORM_BYTES_MAX = 8 * 1024 * 1024

const bulkFormBytesMax = (
  { plans }: DashboardDeps,
  { plan }: Account,
  isLargest: boolean,
): number =>
  isLargest ? LARGE_BODY_MAX : Math.min(bulkBytesMax(plans[plan].bulkMax), BULK_FORM_BYTES_MAX)

const isForm = ({ method }: Request): boolean => method !== 'GET' && method !== 'HEAD'

/** Whether a form may be over the ordinary limit: its declared length is, or is unknown. */
function isLargeForm(request: Request): boolean {
  if (!isForm(request)) return false
  return (declaredLength(request) ?? Number.POSITIVE_INFINITY) > SMALL_BODY_MAX
}
