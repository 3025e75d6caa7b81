import { Elysia } from 'elysia'
import type { SessionRow } from '../accounts/session-store.ts'
import type { Account } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { type Arrival, refuseDuringMaintenance } from '../guard.ts'
import { type BodyLimits, SMALL_BODY_MAX } from '../http/body.ts'
import { clientNetwork } from '../http/client-network.ts'
import { bulkBytesMax } from '../links/bulk-body.ts'
import type { DashboardDeps } from './deps.ts'
import { EMPTY_FORM, type Form, readForm } from './form.ts'
import { formToken, requireFormToken, requireSameOrigin } from './same-origin.ts'

/** Who looks at a page. */
export interface Visitor {
  account: Account & { email: string; isOwner: boolean }
  session: { id: number; createdAt: number }
  /** Stands in every form of the visitor's, as the hidden field `csrf`. */
  csrf: string
}

export const visitorOf = (
  { id, createdAt, accountId, plan, email, isOwner }: SessionRow,
  csrf: string,
): Visitor => ({
  account: { id: accountId, plan, email, isOwner: isOwner === 1 },
  session: { id, createdAt },
  csrf,
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
    async ({ request }) => {
      const token = deps.cookies.find('session', request)
      const early = requireSession(deps, token, owner)
      const { account } = visitorOf(early, '')
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
      const found = form === EMPTY_FORM ? early : requireSession(deps, token, owner)
      const visitor = visitorOf(found, formToken(deps.hasher, token ?? ''))
      return { ...visitor, visitor, form, isCharged }
    },
  )

function requireSession(
  { sessions }: DashboardDeps,
  token: string | undefined,
  owner: boolean,
): SessionRow {
  const found = sessions.find(token)
  if (!found) throw new AppError('sign_in_needed')
  if (owner && !found.isOwner) throw new AppError('path_not_found')
  return found
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
  { request, server }: Pick<Arrival, 'request' | 'server'>,
): Promise<Form> {
  const { address, cookies } = deps
  const peer = server?.requestIP(request)?.address ?? ''
  address.resolve(peer, request.headers.get('x-forwarded-for'))
  const limits = { owner: clientNetwork(address), bytesMax: STRANGERS_FORM_BYTES_MAX }
  return readOwnForm(deps, request, cookies.find('form', request), limits)
}

/** Parsing a form takes several times its bytes in memory. */
const LARGEST_FORM_BYTES = 8 * 1024 * 1024

const bulkFormBytesMax = ({ plans }: DashboardDeps, { plan }: Account): number =>
  Math.min(bulkBytesMax(plans[plan].bulkMax), LARGEST_FORM_BYTES)

/** Whether a form may be larger than an ordinary one: its length is too large, or unknown. */
function isLargeForm({ method, headers }: Request): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  const declared = headers.get('content-length')
  return declared === null || Number(declared) > SMALL_BODY_MAX
}

/**
 * Charges a change to links to the account's write budget, the same that its API keys have. Throws
 * `maintenance` or `rate_limited`.
 */
export function spendWrite(deps: DashboardDeps, account: Account): void {
  refuseDuringMaintenance(deps)
  const { limiter, address } = deps
  if (limiter.take('write', account, address)) return
  const seconds = String(limiter.retryAfter)
  throw new AppError('rate_limited', seconds, { headers: { 'retry-after': seconds } })
}
