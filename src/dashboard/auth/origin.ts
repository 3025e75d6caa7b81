import type { Origin } from '../../accounts/security-log.ts'
import { KEY_HIGH_IPV4, KEY_HIGH_UNKNOWN } from '../../hot/client-address.ts'
import { clientNetwork } from '../../hot/client-network.ts'
import { type Headed, REQUEST_ID } from '../../http/errors.ts'
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
  { address: client, requestIds }: Pick<GuardDeps, 'address' | 'requestIds'>,
  { request, server, set }: RequestContext,
): ClientOrigin {
  const peer = server?.requestIP(request)?.address ?? ''
  client.resolve(peer, request.headers.get('x-forwarded-for'))
  const { headers } = set as Headed
  headers[REQUEST_ID] ??= requestIds.next()
  const requestId = String(headers[REQUEST_ID])
  return { address: addressOf(client), network: clientNetwork(client), requestId }
}

function addressOf({ keyHigh, keyLow }: { keyHigh: number; keyLow: number }): string {
  if (keyHigh === KEY_HIGH_UNKNOWN) return 'unknown'
  if (keyHigh === KEY_HIGH_IPV4) {
    return [24, 16, 8, 0].map((shift) => (keyLow >>> shift) & 255).join('.')
  }
  const words = [keyHigh >>> 16, keyHigh & 0xffff, keyLow >>> 16, keyLow & 0xffff]
  return `${words.map((word) => word.toString(16)).join(':')}::/64`
}
