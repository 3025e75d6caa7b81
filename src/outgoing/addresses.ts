import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Which addresses a request to the outside may connect to. */

/** All addresses of the public IPv6 network are in it. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/**
 * Whether an address is one of the public network. False for one of an own network, of this machine
 * or of many machines, for an IPv6 address that carries an IPv4 one (mapped, NAT64, 6to4, Teredo),
 * whose way depends on routers, and for a text that is no address.
 */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

/** Inside receivers that the operator has named in `OUTGOING_HOSTS`. */
export class AllowedHosts {
  readonly #names = new Set<string>()
  readonly #ranges = new BlockList()

  /** `entries`: names, IP addresses and CIDR ranges. */
  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address = '', prefix] = entry.split('/')
      const family = isIP(address)
      if (family === 0) this.#names.add(entry.toLowerCase())
      else
        this.#ranges.addSubnet(address, Number(prefix ?? bitsOf(family)), `ipv${family as 4 | 6}`)
    }
  }

  /** `host`: in the form of `canonicalHost`. Names below a named one are not allowed. */
  hasName(host: string): boolean {
    return this.#names.has(host)
  }

  hasAddress(address: string): boolean {
    return this.#ranges.check(address, `ipv${isIP(address) as 4 | 6}`)
  }
}

const bitsOf = (family: number): number => (family === 4 ? 32 : 128)
