import { Elysia } from 'elysia'
import { type GuardDeps, publicly } from './guard.ts'
import { OWN_HEADERS } from './operation.ts'

/** Pages of any origin may read the response, but not with cookies. */
const ANY_ORIGIN = {
  'access-control-allow-origin': '*',
  // Scripts see no other header than these and a few standard ones.
  'access-control-expose-headers': [...OWN_HEADERS, 'Retry-After'].join(', '),
}

const METHODS = 'GET, HEAD'

const PREFLIGHT = {
  ...ANY_ORIGIN,
  allow: `${METHODS}, OPTIONS`,
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': 'X-API-Key, Content-Type',
  'access-control-max-age': '86400',
}

/**
 * For public reads that scripts of other sites may make: adds the headers of CORS to all responses
 * of the routes that follow, and answers the preflights of `paths`. Must be used before the guard,
 * so that refusals have the headers too.
 */
export function crossOriginReads(deps: GuardDeps, paths: readonly string[]) {
  // A browser shows a refusal to the script only if the preflight before it succeeded.
  const preflights = new Elysia({ name: 'http.preflights', seed: paths }).use(
    publicly(deps, { budget: 'read', duringMaintenance: true }),
  )
  for (const path of paths) {
    preflights.options(path, () => new Response(null, { status: 204, headers: PREFLIGHT }))
  }
  return new Elysia({ name: 'http.cors', seed: paths })
    .use(preflights)
    .derive({ as: 'scoped' }, ({ set }) => {
      Object.assign(set.headers, ANY_ORIGIN)
    })
}
