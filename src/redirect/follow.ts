import { findAccount } from '../accounts/keys.ts'
import { AppError, type RefusalCode } from '../errors.ts'
import type { GuardDeps } from '../guard.ts'
import type { HitJournal } from '../hits/journal.ts'
import { HeaderLine } from '../http/header-line.ts'
import type { Log } from '../lib/log.ts'
import type { LinkCache } from '../links/cache.ts'
import { toCode } from '../links/code.ts'

export interface RedirectDeps extends GuardDeps {
  cache: LinkCache
  journal: HitJournal
  log: Log
  /** Whether `X-Forwarded-For` can say anything: some proxy is trusted. */
  behindProxy: boolean
}

interface Peers {
  requestIP(request: Request): { address: string } | null
}

export type Follow = (text: string, request: Request, server: Peers | null) => Response

/**
 * HOT PATH. Answers GET /{code}. No schema, no hooks, no await, nothing thrown:
 * bench/load/redirect.ts guards its cost. One Headers object serves all answers, because Response
 * copies it: setting what differs costs half of filling a new one.
 */
export function follower(deps: RedirectDeps): Follow {
  const { cache, journal, limiter, address, requestIds, behindProxy } = deps
  const headersFound = new Headers({ 'Cache-Control': 'no-store' })
  const init = { status: 302, headers: headersFound }
  const line = (name: string) => new HeaderLine(headersFound, name)
  const location = line('Location')
  const serviceCode = line('X-Service-Code')
  const limit = line('X-RateLimit-Limit')
  const remaining = line('X-RateLimit-Remaining')
  const reset = line('X-RateLimit-Reset')
  const requestId = line('X-Request-Id')

  const answer: Follow = (text, request, server) => {
    const { headers } = request
    const key = headers.get('x-api-key')
    const account = key === null ? undefined : findAccount(deps, key)
    const peer = server?.requestIP(request)?.address ?? ''
    address.resolve(peer, behindProxy ? headers.get('x-forwarded-for') : null)
    if (!limiter.take('read', account, address)) {
      return refusal(deps, 'rate_limited', String(limiter.retryAfter))
    }
    const code = toCode(text)
    const destination = code && cache.find(code)
    if (!destination?.location) return refusal(deps, 'code_not_found', text.toUpperCase())
    if (request.method === 'GET') journal.append(destination.id)
    location.set(destination.location)
    serviceCode.set(code as string)
    limit.set(limiter.limit)
    remaining.set(limiter.remaining)
    reset.set(limiter.resetAt)
    requestId.set(requestIds.next())
    return new Response(null, init)
  }

  return (text, request, server) => {
    try {
      return answer(text, request, server)
    } catch (error) {
      return failure(deps, error, request)
    }
  }
}

/** A refusal is a value here, and says what is left of the budget like every answer. */
function refusal(deps: RedirectDeps, code: RefusalCode, detail: string): Response {
  const { limiter, requestIds } = deps
  const { status, message } = new AppError(code, detail)
  const headers = budgetHeaders(deps, requestIds.next())
  if (code === 'rate_limited') headers['Retry-After'] = String(limiter.retryAfter)
  return Response.json({ error: message }, { status, headers })
}

/** The database does not answer, and the code is not in memory. */
function failure(deps: RedirectDeps, cause: unknown, { method }: Request): Response {
  const { status, message } = new AppError('internal')
  const request_id = deps.requestIds.next()
  deps.log.error('request.failed', { request_id, method, path: '/:code' }, cause)
  const headers = budgetHeaders(deps, request_id)
  return Response.json({ error: message, request_id }, { status, headers })
}

function budgetHeaders({ limiter }: RedirectDeps, requestId: string): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limiter.limit),
    'X-RateLimit-Remaining': String(limiter.remaining),
    'X-RateLimit-Reset': String(limiter.resetAt),
    'X-Request-Id': requestId,
  }
}
