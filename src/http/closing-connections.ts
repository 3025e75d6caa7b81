import { Elysia } from 'elysia'

interface ClosingDeps {
  health: { readonly isStopping: boolean }
}

/**
 * Once the service is stopping, each answer says `Connection: close`, and Bun closes the connection
 * behind it: a keep-alive client sends its next request elsewhere instead of into a closed
 * connection. Must be used before the routes. Short links have their own: see redirect/follow.ts.
 */
export const closingConnections = ({ health }: ClosingDeps) =>
  new Elysia({ name: 'http.closing' })
    // Only `set` is named: Elysia would parse the body for a hook that may look at all it has.
    .onAfterHandle({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
    .onError({ as: 'global' }, ({ set }) => {
      if (health.isStopping) set.headers.connection = 'close'
    })
