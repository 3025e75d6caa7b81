import net from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Upper halves of keys that no IPv6 client has: ff00::/8 is multicast and never the address of one
 * host, so it is refused as malformed.
 */
const KEY_HIGH_IPV4 = 0xffff0001
const KEY_HIGH_UNKNOWN = 0xffff0002
const MULTICAST_BYTE = 0xff

/** Maximum number of proxies that are followed. */
const FORWARDED_MAX = 64

/**
 * A client's address as a key of 64 bits in two halves, 0 to 2^32 - 1 each. IPv6 gives its first 64
 * bits, IPv4 (also as ::ffff:0:0/96) ffff0001 and the address. A peer that is no IP address is
 * ffff0002 and 0.
 */
export interface ClientKey {
  readonly keyHigh: number
  readonly keyLow: number
}

export interface Client extends ClientKey {
  /** A trusted proxy has forwarded the request: its other headers can be believed too. */
  readonly isForwarded: boolean
}

const UNKNOWN: Client = { keyHigh: KEY_HIGH_UNKNOWN, keyLow: 0, isForwarded: false }

/** The other end of a connection: a client, or a trusted proxy. */
export interface Peer {
  readonly client: Client
  readonly isProxy: boolean
  /** See `clientIp`. */
  readonly ip: string
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Addresses of recent connections that are remembered: most visitors have several. */
const PEERS_MAX = 1024

/** Finds the clients of connections, and of requests that a trusted proxy forwards. */
export class ClientAddress {
  readonly #trusted: readonly [Address, number][]
  readonly #peers = new Map<string, Peer>()

  /** `trustedProxies`: IP addresses and CIDR ranges. Throws if one is neither. */
  constructor(trustedProxies: readonly string[]) {
    this.#trusted = trustedProxies.map(parseRange)
  }

  /** HOT PATH. `address`: of a connection, as Bun gives it. An empty one is unknown. */
  parsePeer(address: string): Peer {
    const known = this.#peers.get(address)
    if (known) return known
    if (this.#peers.size === PEERS_MAX) this.#peers.clear()
    const peer = this.#parse(address)
    this.#peers.set(address, peer)
    return peer
  }

  #parse(address: string): Peer {
    const keyLow = this.#trusted.length === 0 ? ipv4Of(address) : undefined
    if (keyLow !== undefined) {
      return peerOf({ keyHigh: KEY_HIGH_IPV4, keyLow, isForwarded: false }, false)
    }
    const parsed = parseAddress(address)
    if (!parsed) return peerOf(UNKNOWN, false)
    const isProxy = this.#isTrusted(parsed)
    return peerOf(clientAt(parsed, isProxy), isProxy)
  }

  /**
   * The client of a request: the peer, or, if that is a trusted proxy, the rightmost address of
   * `X-Forwarded-For` that is none; if all are, the leftmost. Everything left of a malformed entry,
   * or of the 64th from the right, is ignored: the client is then the last proxy read.
   */
  resolve({ client, isProxy }: Peer, headers: { get(name: string): string | null }): Client {
    const forwardedFor = isProxy ? headers.get('x-forwarded-for') : null
    if (forwardedFor === null) return client
    let found = client
    let end = forwardedFor.length
    for (let looked = 0; looked < FORWARDED_MAX && end > 0; looked++) {
      const comma = forwardedFor.lastIndexOf(',', end - 1)
      const address = parseAddress(forwardedFor.slice(comma + 1, end))
      if (!address) return found
      found = clientAt(address, true)
      if (!this.#isTrusted(address)) return found
      end = comma
    }
    return found
  }

  #isTrusted(address: Address): boolean {
    return this.#trusted.some(
      ([network, prefix]) => network.kind() === address.kind() && address.match(network, prefix),
    )
  }
}

const peerOf = (client: Client, isProxy: boolean): Peer => {
  return { client, isProxy, ip: clientIp(client) }
}

function clientAt(address: Address, isForwarded: boolean): Client {
  const bytes = address.toByteArray()
  const isIpv4 = bytes.length === 4
  return {
    keyHigh: isIpv4 ? KEY_HIGH_IPV4 : wordAt(bytes, 0),
    keyLow: wordAt(bytes, isIpv4 ? 0 : 4),
    isForwarded,
  }
}

const wordAt = (bytes: readonly number[], at: number): number =>
  bytes.slice(at, at + 4).reduce((word, byte) => word * 256 + byte, 0)

/** An IPv4 address as a number: `ipaddr.js` allocates 3 KB for one. Undefined for other texts. */
export function ipv4Of(text: string): number | undefined {
  let address = 0
  let dots = 0
  let part = -1
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48
    if (digit === DOT && part >= 0) {
      address = address * 256 + part
      part = -1
      dots++
    } else {
      // A part has no zero at its start.
      if (digit < 0 || digit > 9 || part === 0) return undefined
      part = part < 0 ? digit : part * 10 + digit
      if (part > 255) return undefined
    }
  }
  return dots === 3 && part >= 0 ? address * 256 + part : undefined
}

const DOT = '.'.charCodeAt(0) - 48

export const isIpv4 = ({ keyHigh }: ClientKey): boolean => keyHigh === KEY_HIGH_IPV4

/**
 * The client's IPv4 address, or the /64 of its IPv6 address, as text: `192.0.2.1`,
 * `2001:db8:0:1::/64`. Clients with different keys in the limiter have different texts.
 */
export function clientIp({ keyHigh, keyLow }: ClientKey): string {
  if (keyHigh === KEY_HIGH_UNKNOWN) return 'unknown'
  if (keyHigh === KEY_HIGH_IPV4) {
    return [24, 16, 8, 0].map((shift) => (keyLow >>> shift) & 255).join('.')
  }
  const groups = [keyHigh >>> 16, keyHigh & 0xffff, keyLow >>> 16, keyLow & 0xffff]
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`
}

/**
 * The /24 of IPv4 or the /48 of IPv6 that a `clientIp` belongs to. The log has no more of a client:
 * enough to tell networks apart, too little to identify a person.
 */
export const networkOf = (ip: string): string =>
  ip.replace(/\.\d+$/, '.0/24').replace(/:[^:]*::\/64$/, '::/48')

export const clientNetwork = (client: Client): string => networkOf(clientIp(client))

/**
 * A network and the length of its prefix. A range of IPv4-mapped addresses is an IPv4 range; a
 * wider IPv6 range, even ::/0, contains no IPv4 address.
 */
function parseRange(text: string): [Address, number] {
  const address = text.includes('/') ? undefined : ipaddr.parse(text)
  const [network, prefix] = address
    ? ([address, 8 * address.toByteArray().length] as const)
    : ipaddr.parseCIDR(text)
  const isMapped = network.kind() === 'ipv6' && (network as ipaddr.IPv6).isIPv4MappedAddress()
  return isMapped && prefix >= 96
    ? [(network as ipaddr.IPv6).toIPv4Address(), prefix - 96]
    : [network, prefix]
}

/** `[IPv6]` or IPv4, both perhaps with a port, or IPv6. */
const FORM = /^(?:\[([^\][]{2,64})\](?::\d{1,5})?|(\d[\d.]{6,14})(?::\d{1,5})?|([^\][]{2,64}))$/
/** The address, the zone and white space around it. */
const TEXT_MAX = 200

/**
 * `1.2.3.4`, `1.2.3.4:567`, `::1`, `[::1]` or `[::1]:567`, with white space around it; IPv6 may
 * name its zone (`fe80::1%eth0`). Mapped IPv4 becomes IPv4. Undefined for any other text.
 */
function parseAddress(text: string): Address | undefined {
  const match = text.length <= TEXT_MAX ? FORM.exec(text.replace(/^[ \t]+|[ \t]+$/g, '')) : null
  if (!match) return undefined
  const ipv4 = match[2]
  if (ipv4 !== undefined) return net.isIPv4(ipv4) ? ipaddr.IPv4.parse(ipv4) : undefined
  const ipv6 = (match[1] ?? match[3] ?? '').split('%', 1)[0] as string
  if (!net.isIPv6(ipv6)) return undefined
  // The package takes IPv4-compatible IPv6 (::1.2.3.4) for IPv4-mapped (::ffff:1.2.3.4).
  const address = ipaddr.IPv6.parse(ipv6.replace(/^::(?=\d+\.)/, '0::0:'))
  if (address.isIPv4MappedAddress()) return address.toIPv4Address()
  return address.parts[0] !== undefined && address.parts[0] >> 8 === MULTICAST_BYTE
    ? undefined
    : address
}
