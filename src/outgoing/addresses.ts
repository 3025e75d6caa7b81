import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Which addresses a request to the outside may connect to. */

/** All addresses of the public IPv6 network are in it. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/**
 * Whether an address is one of the public network. False for those of an own network, of this
 * machine, of many machines, and for IPv6 addresses that carry an IPv4 one (mapped, NAT64, 6to4,
 * Teredo): which IPv4 network they reach depends on a router. False for a text that is no address.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

type Range = ReturnType<typeof ipaddr.parseCIDR>

/** Inside receivers that the operator has named in `OUTGOING_HOSTS`. */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>
  readonly #ranges: readonly Range[]

  /** `entries`: names, IP addresses and CIDR ranges. */
  constructor(entries: readonly string[]) {
    const isRange = (entry: string) => isIP(entry.replace(/\/.*/, '')) !== 0
    this.#names = new Set(entries.filter((entry) => !isRange(entry)).map((name) => nameOf(name)))
    this.#ranges = entries.filter(isRange).map(rangeOf)
  }

  /** `host`: a name in the form of `URL.hostname`. Names below a named one are not allowed. */
  hasName(host: string): boolean {
    return this.#names.has(nameOf(host))
  }

  /** `address`: an IP address. An IPv4-mapped one is what it maps. */
  hasAddress(address: string): boolean {
    const found = ipaddr.process(address)
    return this.#ranges.some(([range, bits]) => {
      return range.kind() === found.kind() && found.match(range, bits)
    })
  }
}

const nameOf = (name: string): string => name.toLowerCase().replace(/\.$/, '')

function rangeOf(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
