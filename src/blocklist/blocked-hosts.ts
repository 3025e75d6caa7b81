import type { DomainMap } from '../addresses/map.ts'
import { canonicalHost, covers, hostOf, type PackedHosts } from './match.ts'
import type { OwnAddress } from './own-address.ts'
import type { StoredHosts } from './stored-hosts.ts'

/** Which hosts are refused as destinations, for any thread. */
export interface BlockedLists {
  /** URLs of our own hosts (`BASE_URL`, `CDN_URL`), which are blocked with any port and scheme. */
  ownHosts: readonly string[]
  /** One entry for each file. Hosts that are exempt from a list are not blocked by it. */
  lists: readonly { blocked: PackedHosts; exempt: PackedHosts }[]
}

/** What a thread knows besides the lists. */
interface Sources {
  ownAddress: Pick<OwnAddress, 'isOwn'>
  stored: Pick<StoredHosts, 'cover'>
  /** Each domain of short links is a host of our own too. */
  domains: Pick<DomainMap, 'findByHost'>
}

export class BlockedHosts {
  readonly #ownHosts: ReadonlySet<string>
  readonly #lists: BlockedLists['lists']
  readonly #sources: Sources

  constructor({ ownHosts, lists }: BlockedLists, sources: Sources) {
    this.#ownHosts = new Set(ownHosts.map(hostOf))
    this.#lists = lists
    this.#sources = sources
  }

  /**
   * Whether the host of a URL, or a domain above it, is blocked. `href` and `host` are those of a
   * `URL`.
   */
  isBlocked(url: Pick<URL, 'href' | 'host'>): boolean {
    const { host } = splitHost(url)
    if (this.isOwn(url)) return true
    // An exemption of a file is no exemption from the owner's own decision.
    if (this.#sources.stored.cover(host)) return true
    return this.#lists.some(({ blocked, exempt }) => covers(blocked, host) && !covers(exempt, host))
  }

  /** Whether the URL is one of this service itself: a link to it could loop. */
  isOwn(url: Pick<URL, 'href' | 'host'>): boolean {
    const { host, port } = splitHost(url)
    const protocol = url.href.slice(0, url.href.indexOf(':') + 1)
    return this.#isOurs(host) || this.#sources.ownAddress.isOwn(host, { port, protocol })
  }

  /**
   * Whether it is exactly one of our hosts: the operator may have other sites below them. Names
   * below `localhost` are all loopback.
   */
  #isOurs(host: string): boolean {
    if (this.#ownHosts.has(host) || this.#sources.domains.findByHost(host)) return true
    return host.endsWith('.localhost') && this.#ownHosts.has('localhost')
  }
}

function splitHost({ host: hostAndPort }: Pick<URL, 'host'>): { host: string; port: string } {
  const port = /:(\d+)$/.exec(hostAndPort)?.[1] ?? ''
  const hostname = port === '' ? hostAndPort : hostAndPort.slice(0, -port.length - 1)
  return { host: canonicalHost(hostname), port }
}
