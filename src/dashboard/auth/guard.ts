import type { Asked } from '../../accounts/operations/asked.ts'
import type { Origin, SecurityEvent } from '../../accounts/security-log.ts'
import type { SessionRow } from '../../accounts/sessions.ts'
import type {
  Account,
  AccountId,
  AccountRow,
  OwnAccountRow,
  PersonRow,
  Role,
} from '../../accounts/store.ts'
import type { Author } from '../../db/author.ts'
import { AppError } from '../../errors.ts'
import { clientIp, clientNetwork } from '../../hot/client-address.ts'
import { BATCH_BODY_MAX, type BodyLimits, declaredLength, SMALL_BODY_MAX } from '../../http/body.ts'
import { clientOf, newRequestId, REQUEST_ID, type ResponseState } from '../../http/context.ts'
import { rateLimited, refuseDuringMaintenance } from '../../http/guard.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import type { Link } from '../../links/link.ts'
import { requireOwnedLink } from '../../links/update.ts'
import type { DashboardDeps } from '../deps.ts'
import { pathOf, pathWithoutQuery } from '../responses.ts'
import { EMPTY_FORM, type Form, readForm } from '../ui/form.ts'
import { type Access, type AccessTable, requireRole } from './access.ts'
import type { Theme } from './cookies.ts'
import { formToken, requireFormToken, requireSameOrigin } from './csrf.ts'

/** Checks before a page runs: session, form, budget and the client's address. */

/** The parameters of a page's query. */
export type Query = Readonly<Record<string, string | undefined>>

interface CommonContext {
  deps: DashboardDeps
  request: Request
  /** Parts of the path. */
  params: Query
  /** Empty for a form. */
  query: Query
  /** Empty for GET. */
  form: Form
  /** Why the form was refused, whose page is shown again. */
  refusal?: AppError
}

/** A request of a signed-in user. */
export interface PageContext extends CommonContext {
  user: CurrentUser
  /** The form was charged to the write budget. */
  isCharged: boolean
}

/** A request without a session. */
export interface AnonymousContext extends CommonContext {
  origin: ClientOrigin
}

export interface CurrentUser extends ReturnType<AccessTable['of']> {
  person: Pick<PersonRow, 'id' | 'email'> & { isOwner: boolean }
  /** The account that the pages show. */
  account: Account & { name: string }
  /** The other accounts of the person. */
  others: readonly OwnAccountRow[]
  /** What the person may do in the account. */
  role: Role
  session: { id: number; createdAt: number; provedAt: number; isLong: boolean }
  /** The hidden field `csrf` of every form. */
  csrf: string
  /** The client, for the security log. */
  origin: Origin
  /** Undefined: the colors of the system. */
  theme: Theme | undefined
  /** The time zone of all times and days: the account's, else the browser's. An IANA name. */
  zone: string
  hasChosenZone: boolean
  /** Path of the page, with its query unless that is long; undefined for a response to a form. */
  path: string | undefined
}

/** `token`: of the session's cookie. */
export function currentUserOf(
  deps: Pick<DashboardDeps, 'access' | 'data' | 'cookies' | 'hasher' | 'random'>,
  row: SessionRow,
  { request, origin, token }: { request: Request; origin: Origin; token: string },
): CurrentUser {
  const { id, createdAt, provedAt, isLong, accountId, plan, name, timeZone } = row
  const isOwner = row.isOwner === 1
  return {
    ...deps.access.of({ role: row.role, isOwner }),
    person: { id: row.personId, email: row.email, isOwner },
    account: { id: accountId, plan, name, by: { personId: row.personId } },
    others: deps.data.accounts.listAccountsOf(row.personId).filter((one) => one.id !== accountId),
    role: row.role,
    session: { id, createdAt, provedAt, isLong: isLong === 1 },
    csrf: formToken(deps, formKey(token, accountId)),
    origin,
    theme: deps.cookies.findTheme(request),
    zone: timeZone ?? deps.cookies.findZone(request) ?? 'UTC',
    hasChosenZone: timeZone !== null,
    path: request.method === 'GET' ? shortPathOf(request) : undefined,
  }
}

/**
 * Binds forms to a session and an account: a page of another account cannot change this one
 * (decision 069).
 */
const formKey = (token: string, accountId: AccountId): string => `${token} ${accountId}`

const PATH_LENGTH_MAX = 200

function shortPathOf(request: Request): string {
  const path = pathOf(request)
  return path.length > PATH_LENGTH_MAX ? path.replace(/\?.*/, '').slice(0, PATH_LENGTH_MAX) : path
}

export interface GuardOptions {
  /**
   * The form may contain a batch of URLs, or a file to import, which may be larger for owners. One
   * over 64 KiB is charged as a write before it is read.
   */
  bulk?: boolean | 'file'
  /** The form concerns the person or the browser, not the account that its page showed. */
  personal?: boolean
}

/**
 * For pages that need a session. Forms without the session's token or from another site are refused
 * before the page runs, and so is what the person's role in the account does not permit. Without a
 * session the response redirects to the sign-in page.
 */
export async function userContext(
  deps: DashboardDeps,
  { request, set, query, params }: RequestContext,
  { role, bulk = false, personal = false }: Access & GuardOptions,
): Promise<PageContext> {
  const origin = originOf(deps, { request, set })
  const token = deps.cookies.findByName('session', request)
  const session = deps.sessions.findByToken(token)
  // One page request per tick of the event loop, so that many of them do not delay redirects.
  if (session) await pageSlices.next()
  // Before the form is read, which is the most expensive part.
  spendPage(deps, request, session?.accountId)
  if (isForm(request)) await deps.writer.catchUp()
  const early = requireSession(session ?? deps.sessions.findByToken(token), role)
  const account = { id: early.accountId, plan: early.plan }
  const isCharged = bulk !== false && isLargeForm(request)
  if (isCharged) {
    requireSameOrigin(request, deps.baseUrl)
    chargeWrite(deps, account)
  }
  const bytesMax = formBytesMax(early, bulk)
  const accountIds = personal
    ? deps.data.accounts.listAccountsOf(early.personId).map(({ id }) => id)
    : [account.id]
  const formKeys = accountIds.map((id) => formKey(token ?? '', id))
  const form = await readGuardedForm(deps, request, formKeys, { holder: account.id, bytesMax })
  // A form may arrive slowly: the session may have ended meanwhile.
  const found = form === EMPTY_FORM ? early : requireSession(deps.sessions.findByToken(token), role)
  // The form is for the account that its page showed.
  if (!personal && found.accountId !== account.id) throw new AppError('form_expired')
  const user = currentUserOf(deps, found, { request, origin, token: token ?? '' })
  return { deps, user, request, params, query: isForm(request) ? {} : query, form, isCharged }
}

/** Enough for an e-mail address and a password. Anybody may send this, on many connections. */
const ANONYMOUS_FORM_BYTES_MAX = 16 * 1024

/** For pages without a session: charges the client's address. The form's token is in a cookie. */
export async function anonymousContext(
  deps: DashboardDeps,
  { request, set, query, params }: RequestContext,
): Promise<AnonymousContext> {
  spendPage(deps, request)
  const origin = originOf(deps, { request, set })
  if (!isForm(request)) return { deps, origin, request, params, query, form: EMPTY_FORM }
  await deps.writer.catchUp()
  const limits = { holder: origin.network, bytesMax: ANONYMOUS_FORM_BYTES_MAX }
  const cookie = deps.cookies.findByName('form', request)
  const form = await readGuardedForm(deps, request, cookie === undefined ? [] : [cookie], limits)
  return { deps, origin, request, params, query: {}, form }
}

function requireSession(session: SessionRow | undefined, least: Access['role']): SessionRow {
  if (!session) throw new AppError('sign_in_needed')
  if (least !== 'owner') requireRole(session, least)
  else if (!session.isOwner) throw new AppError('path_not_found')
  return session
}

/** The complete, current account. Throws `sign_in_needed` if it was deleted meanwhile. */
export function requireAccount({ deps, user }: Pick<PageContext, 'deps' | 'user'>): AccountRow {
  const found = deps.data.accounts.findById(user.account.id)
  if (!found) throw new AppError('sign_in_needed')
  return found
}

/** The complete, current person. Throws `sign_in_needed` if they were removed meanwhile. */
export function requirePerson({ deps, user }: Pick<PageContext, 'deps' | 'user'>): PersonRow {
  const found = deps.data.accounts.findPerson(user.person.id)
  if (!found) throw new AppError('sign_in_needed')
  return found
}

/** The link of the account that the path names. Throws `code_not_found`. */
export const ownLink = ({ deps, user, params }: PageContext): Link =>
  requireOwnedLink(deps, user.account, params.code ?? '')

type Signed = Pick<PageContext, 'deps' | 'user'>

/** Goes with changes of the account that the pages show. */
export const authorOf = ({ deps, user }: Signed): Author => ({
  accountId: user.account.id,
  by: user.account.by,
  now: deps.clock(),
})

/** Goes with changes by an owner of the service; 0: of what belongs to no account. */
export const ownerOf = ({ deps, user }: Signed, accountId: AccountId = 0): Author => ({
  accountId,
  by: { ownerId: user.person.id },
  now: deps.clock(),
})

/** What an operation of accounts takes. `author`: see `ownerOf`. */
export function asked(context: Signed, author = authorOf(context)): Asked<DashboardDeps['data']> {
  const { deps, user } = context
  const { data, hasher, random } = deps
  const own = user.account.id
  const accountId = author.accountId || own
  const byAccountId = accountId === own ? undefined : own
  return {
    data,
    hasher,
    random,
    author,
    email: user.person.email,
    note: (event, fields = {}) =>
      deps.security.record(event, user.origin, { accountId, byAccountId, fields }),
  }
}

/** Logs what users did to their own account. */
export const logEvent = (
  { deps, user }: PageContext,
  event: SecurityEvent,
  fields: Readonly<Record<string, string | number>> = {},
): void => deps.security.record(event, user.origin, { accountId: user.account.id, fields })

/** The part of Elysia's context that pages need. */
export interface RequestContext {
  request: Request
  set: { headers: object }
  query: Query
  params: Query
}

export interface ClientOrigin extends Origin {
  /** The IPv4 address or the IPv6 /64 network: the unit that the limiter counts. */
  address: string
}

/** The client of a request. Sets the response's request id. */
function originOf(
  deps: DashboardDeps,
  { request, set }: Pick<RequestContext, 'request' | 'set'>,
): ClientOrigin {
  const client = clientOf(deps.address, request)
  const { headers } = set as ResponseState
  headers[REQUEST_ID] ??= newRequestId()
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

/** Charges a change of links, unless its form was charged before it was read. */
export function spendWrite({ deps, user, isCharged }: PageContext): void {
  if (!isCharged) chargeWrite(deps, user.account)
}

/**
 * Charges the account's write budget, which its API keys share. Throws `maintenance` or
 * `rate_limited`.
 */
function chargeWrite(deps: DashboardDeps, account: Pick<Account, 'id' | 'plan'>): void {
  refuseDuringMaintenance(deps)
  const budget = deps.limiter.takeOf(account, 'write')
  if (!budget.allowed) throw rateLimited(budget)
}

async function readGuardedForm(
  { baseUrl, hasher, bodies }: DashboardDeps,
  request: Request,
  /** What the form's token may be bound to; empty if the browser sent no cookie. */
  keys: readonly string[],
  limits: BodyLimits,
): Promise<Form> {
  if (!isForm(request)) return EMPTY_FORM
  requireSameOrigin(request, baseUrl)
  const form = await readForm(bodies, request, limits)
  // A browser drops our cookies, which are for https only, if the page was opened over http.
  if (keys.length === 0 && baseUrl.startsWith('https:')) {
    throw new AppError('cookie_missing', baseUrl + pathWithoutQuery(request))
  }
  requireFormToken(hasher, keys, form.raw('csrf'))
  return form
}

/** A file of 8 MiB with the form around it. */
const FILE_FORM_BYTES_MAX = BATCH_BODY_MAX + SMALL_BODY_MAX
/** The same for owners of the service, who move in with all links of another service. */
const OWNER_FORM_BYTES_MAX = 32 * 1024 * 1024

function formBytesMax({ isOwner }: SessionRow, bulk: boolean | 'file'): number {
  if (!bulk) return SMALL_BODY_MAX
  if (bulk === true) return BATCH_BODY_MAX
  return isOwner ? OWNER_FORM_BYTES_MAX : FILE_FORM_BYTES_MAX
}

const isForm = ({ method }: Request): boolean => method !== 'GET' && method !== 'HEAD'

/** Whether a form may be over the ordinary limit: its declared length is, or is unknown. */
function isLargeForm(request: Request): boolean {
  if (!isForm(request)) return false
  return (declaredLength(request) ?? Number.POSITIVE_INFINITY) > SMALL_BODY_MAX
}
