import { Elysia } from 'elysia'
import { apiKeyOf, findAccount } from '../accounts/keys.ts'
import type { RequestContext, ResponseState } from './context.ts'
import { admit, type GuardDeps } from './guard.ts'
import { OWN_HEADERS } from './operation.ts'

/** The reads that scripts of other sites may make: they need no API key. */
const OPEN = /^https?:\/\/[^/]*\/api\/(?:status|(?:lookup|qr|qr-image)\/[^/?#]+)\/?(?:[?#]|$)/

/** What scripts of an origin may do with a key that lists the origin: what its access is for. */
const CREATION = /^https?:\/\/[^/]*\/api\/(?:shorten|bulk-shorten|reserve)\/?(?:[?#]|$)/

/** Scripts see no other headers than these and a few standard ones. */
const EXPOSED = { 'access-control-expose-headers': [...OWN_HEADERS, 'Retry-After'].join(', ') }

/** Every origin may read the response, but not with cookies. */
const ANY_ORIGIN = { 'access-control-allow-origin': '*', ...EXPOSED }

const preflightOf = (methods: string) => ({
  'access-control-allow-methods': methods,
  'access-control-allow-headers': 'X-API-Key, Authorization, Content-Type',
  'access-control-max-age': '86400',
})

/**
 * Adds the headers of CORS to all responses of public reads, and of creations with a key that lists
 * the origin, refusals included, and answers their preflights. Any other OPTIONS request is refused
 * like a wrong method. Must be used before the routes.
 */
export const crossOriginRequests = (deps: GuardDeps) =>
  new Elysia({ name: 'http.cors' }).onRequest(({ request, set }) => {
    const { method, url, headers } = request
    const context = { request, set: set as ResponseState }
    const isRead = method === 'GET' || method === 'HEAD'
    if ((isRead || isPreflight(request)) && OPEN.test(url)) {
      Object.assign(set.headers, ANY_ORIGIN)
      if (isRead) return
      Object.assign(set.headers, preflightOf('GET, HEAD'))
      chargePreflight(deps, context)
      return new Response(null, { status: 204 })
    }
    const origin = headers.get('origin')
    if (origin === null || !CREATION.test(url)) return
    const allows = { 'access-control-allow-origin': origin, vary: 'Origin', ...EXPOSED }
    if (method === 'POST') {
      const account = findAccount(deps, apiKeyOf(headers))
      if (account?.origins.includes(origin)) Object.assign(set.headers, allows)
    } else if (isPreflight(request)) {
      chargePreflight(deps, context)
      // A preflight has no key: any key that lists the origin lets it pass.
      if (!deps.data.accounts.isOriginOfKey(origin, deps.clock())) return
      Object.assign(set.headers, allows, preflightOf('POST'))
      return new Response(null, { status: 204 })
    }
  })

/** A script can read the refusal of its request only if the preflight succeeds. */
const chargePreflight = (deps: GuardDeps, context: RequestContext) =>
  admit(deps, context, { budget: 'read', duringMaintenance: true })

const isPreflight = ({ method, headers }: Request): boolean =>
  method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
