import type { Origin } from '../../accounts/security-log.ts'
import { clientIp, clientNetwork } from '../../hot/client-address.ts'
import { clientOf, REQUEST_ID, type ResponseState } from '../../http/context.ts'
import type { GuardDeps } from '../../http/guard.ts'

/** What Elysia's context gives of a request. */
export interface RequestContext {
  request: Request
  server: Bun.Server<unknown> | null
  set: { headers: object }
}

export interface ClientOrigin extends Origin {
  /** The IPv4 address, or the /64 of the IPv6 one: as much as the limiter tells apart. */
  address: string
}

/**
 * Where a request comes from. To be asked at its beginning: the connection of a client that goes
 * away has no address. The response carries the request id.
 */
export function originOf(
  { address, requestIds }: Pick<GuardDeps, 'address' | 'requestIds'>,
  { request, server, set }: RequestContext,
): ClientOrigin {
  const client = clientOf(address, { request, server })
  const { headers } = set as ResponseState
  headers[REQUEST_ID] ??= requestIds.next()
  const requestId = String(headers[REQUEST_ID])
  return { address: clientIp(client), network: clientNetwork(client), requestId }
}
