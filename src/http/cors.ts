import { Elysia } from 'elysia'
import type { ResponseState } from './context.ts'
import { admit, type GuardDeps } from './guard.ts'
import { OWN_HEADERS } from './operation.ts'

/** The reads that scripts of other sites may make: they need no API key. */
const OPEN = /^https?:\/\/[^/]*\/api\/(?:status|(?:lookup|qr|qr-image)\/[^/?#]+)\/?(?:[?#]|$)/

/** Every origin may read the response, but not with cookies. */
const ANY_ORIGIN = {
  'access-control-allow-origin': '*',
  // Scripts see no other headers than these and a few standard ones.
  'access-control-expose-headers': [...OWN_HEADERS, 'Retry-After'].join(', '),
}

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'X-API-Key, Authorization, Content-Type',
  'access-control-max-age': '86400',
}

/**
 * Adds the headers of CORS to all responses of these reads, refusals included, and answers their
 * preflights. Any other OPTIONS request is refused like a wrong method. Must be used before the
 * routes.
 */
export const crossOriginReads = (deps: GuardDeps) =>
  new Elysia({ name: 'http.cors' }).onRequest(({ request, set }) => {
    const { method, url } = request
    const isRead = method === 'GET' || method === 'HEAD'
    if ((!isRead && !isPreflight(request)) || !OPEN.test(url)) return
    Object.assign(set.headers, ANY_ORIGIN)
    if (isRead) return
    Object.assign(set.headers, PREFLIGHT)
    // A script can read the refusal of its request only if the preflight succeeds.
    const context = { request, set: set as ResponseState }
    admit(deps, context, { budget: 'read', duringMaintenance: true })
    return new Response(null, { status: 204 })
  })

const isPreflight = ({ method, headers }: Request): boolean =>
  method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
