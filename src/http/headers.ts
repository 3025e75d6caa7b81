import { Elysia } from 'elysia'

/**
 * Headers of every response; those of redirects are in redirect/responses.ts. A shared cache may
 * store a response without `Cache-Control` and send it to other callers, even one that depends on
 * the API key (RFC 9111, section 3). Responses that may be stored replace the default (decision
 * 036).
 */
export const DEFAULT_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

/**
 * `DEFAULT_HEADERS`, and those of the public address.
 *
 * `Strict-Transport-Security` makes browsers use https for this host for a year, so only a service
 * whose `BASE_URL` is https sends it: with pages, which take passwords, and with the API, which
 * takes keys. It does not cover subdomains, because they may belong to other services.
 */
export const publicHeaders = (baseUrl: string): Record<string, string> => ({
  ...DEFAULT_HEADERS,
  ...(baseUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=31536000' }),
})

/** Bun's server adds `Date` to all responses but those to HEAD. Must be used before the routes. */
export const datedHeads = () =>
  new Elysia({ name: 'http.dates' }).onRequest(({ request, set }) => {
    if (request.method === 'HEAD') set.headers.date = new Date().toUTCString()
  })

interface ClosingDeps {
  health: { readonly isStopping: boolean }
}

/**
 * While the service is stopping, and where the request says so, which may be by a redirect thread,
 * each response has `Connection: close`, and Bun then closes the connection: a keep-alive client
 * sends its next request elsewhere instead of into a closed connection. Must be used before the
 * routes. Redirects do the same in redirect/follow.ts.
 */
export const closingConnections = ({ health }: ClosingDeps) =>
  new Elysia({ name: 'http.closing' })
    .onRequest(({ request, set }) => {
      if (/\bclose\b/i.test(request.headers.get('connection') ?? ''))
        set.headers.connection = 'close'
    })
    // A hook with other parameters than `set` would make Elysia parse the body.
    .onAfterHandle({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
    .onError({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
