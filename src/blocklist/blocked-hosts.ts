import { canonicalHost, covers, hostOf, type PackedHosts } from './match.ts'
import type { OwnAddress } from './own-address.ts'

/** Which hosts are refused as destinations, for any thread. */
export interface BlockedLists {
  /** URLs of our own hosts (`BASE_URL`, `CDN_URL`), which are blocked with any port and scheme. */
  ownHosts: readonly string[]
  /** One entry for each file. Hosts that are exempt from a list are not blocked by it. */
  lists: readonly { blocked: PackedHosts; exempt: PackedHosts }[]
}

export class BlockedHosts {
  readonly #ownHosts: ReadonlySet<string>
  readonly #lists: BlockedLists['lists']
  readonly #ownAddress: Pick<OwnAddress, 'isOwn'>

  constructor({ ownHosts, lists }: BlockedLists, ownAddress: Pick<OwnAddress, 'isOwn'>) {
    this.#ownHosts = new Set(ownHosts.map(hostOf))
    this.#lists = lists
    this.#ownAddress = ownAddress
  }

  /**
   * Whether the host of a URL, or a domain above it, is blocked. `href` and `host` are those of a
   * `URL`.
   */
  isBlocked({ href, host: hostAndPort }: Pick<URL, 'href' | 'host'>): boolean {
    const port = /:(\d+)$/.exec(hostAndPort)?.[1] ?? ''
    const hostname = port === '' ? hostAndPort : hostAndPort.slice(0, -port.length - 1)
    const host = canonicalHost(hostname)
    const protocol = href.slice(0, href.indexOf(':') + 1)
    if (this.#isOurs(host) || this.#ownAddress.isOwn(host, { port, protocol })) return true
    return this.#lists.some(({ blocked, exempt }) => covers(blocked, host) && !covers(exempt, host))
  }

  /**
   * Whether it is exactly one of our hosts: the operator may have other sites below them. Names
   * below `localhost` are all loopback.
   */
  #isOurs(host: string): boolean {
    if (this.#ownHosts.has(host)) return true
    return host.endsWith('.localhost') && this.#ownHosts.has('localhost')
  }
}
