import { Elysia } from 'elysia'
import { findAccount } from '../accounts/keys.ts'
import { AppError, type RefusalCode } from '../errors.ts'
import type { GuardDeps } from '../guard.ts'
import type { HitJournal } from '../hits/journal.ts'
import { operation } from '../http/operation.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import type { Destination, LinkCache } from '../links/cache.ts'
import { toCode } from '../links/code.ts'

interface RedirectDeps extends GuardDeps {
  cache: LinkCache
  journal: HitJournal
}

/** HOT PATH. No schema, no hooks, no await: bench/load/redirect.ts guards its cost. */
export const redirectRoutes = (deps: RedirectDeps) => {
  const { cache, journal, limiter, address, requestIds } = deps
  return new Elysia({ name: 'redirect' }).get(
    '/:code',
    ({ params, request, server, set }) => {
      const { headers } = request
      const key = headers.get('x-api-key')
      const account = key === null ? undefined : findAccount(deps, key)
      const peer = server?.requestIP(request)?.address ?? ''
      address.resolve(peer, headers.get('x-forwarded-for'))
      if (!limiter.take('read', account, address)) {
        return refusal('rate_limited', String(limiter.retryAfter), limiter, requestIds.next())
      }
      const code = toCode(params.code)
      let destination: Destination | undefined
      try {
        destination = code && cache.find(code)
      } catch (error) {
        // A database that does not answer is a 500, and even that says what is left of the budget.
        Object.assign(set.headers, rateHeaders(limiter))
        throw error
      }
      if (!destination?.location) {
        return refusal('code_not_found', params.code.toUpperCase(), limiter, requestIds.next())
      }
      if (request.method === 'GET') journal.append(destination.id)
      return new Response(null, {
        status: 302,
        headers: {
          Location: destination.location,
          'Cache-Control': 'no-store',
          'X-Service-Code': code as string,
          'X-RateLimit-Limit': String(limiter.limit),
          'X-RateLimit-Remaining': String(limiter.remaining),
          'X-RateLimit-Reset': String(limiter.resetAt),
          'X-Request-Id': requestIds.next(),
        },
      })
    },
    {
      detail: operation({
        id: 'follow',
        summary: 'Follow a short link',
        description: 'Counts one hit. Goes on during maintenance.',
        tag: 'Redirects',
        code: true,
        answers: {
          302: {
            description: 'The destination is at `Location`.',
            headers: ['Location', 'Cache-Control', 'X-Service-Code'],
          },
        },
        refusals: [404],
      }),
    },
  )
}

function rateHeaders({ limit, remaining, resetAt }: RateLimiter): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(resetAt),
  }
}

/** A refusal as a value: nothing is thrown on this path. */
function refusal(code: RefusalCode, detail: string, limiter: RateLimiter, id: string): Response {
  const { status, message } = new AppError(code, detail)
  const headers: Record<string, string> = { ...rateHeaders(limiter), 'X-Request-Id': id }
  if (code === 'rate_limited') headers['Retry-After'] = String(limiter.retryAfter)
  return Response.json({ error: message }, { status, headers })
}
