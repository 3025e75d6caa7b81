import { Elysia } from 'elysia'

/**
 * Headers of every response. The code of redirects sets only the first of them.
 *
 * `Strict-Transport-Security` makes browsers use https for this host for a year, so only a service
 * whose `BASE_URL` is https sends it: with pages, which take passwords, and with the API, which
 * takes keys. It does not cover subdomains, because they may belong to other services.
 */
export const securityHeaders = (baseUrl: string): Record<string, string> => ({
  'x-content-type-options': 'nosniff',
  ...(baseUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=31536000' }),
})

interface ClosingDeps {
  health: { readonly isStopping: boolean }
}

/**
 * While the service is stopping, each response has `Connection: close`, and Bun then closes the
 * connection: a keep-alive client sends its next request elsewhere instead of into a closed
 * connection. Must be used before the routes. Redirects do the same in redirect/follow.ts.
 */
export const closingConnections = ({ health }: ClosingDeps) =>
  new Elysia({ name: 'http.closing' })
    // A hook with other parameters than `set` would make Elysia parse the body.
    .onAfterHandle({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
    .onError({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
