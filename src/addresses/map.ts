import type { Database } from 'bun:sqlite'
import type { CodeVersions } from '../hot/code-versions.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { canonicalHost, fromLatin1, isLocalHost } from './address.ts'
import { type Domain, DomainReads } from './domains.ts'

/** A domain as redirects need it. */
export interface RequestDomain {
  id: number
  isPrimary: boolean
  /** Empty for a name that is none of the service. */
  host: string
  codes: 'own' | 'all'
  rootUrl: string | undefined
  notFoundUrl: string | undefined
}

/** The primary domain. */
interface PrimarySettings {
  baseUrl: string
  rootUrl: string | undefined
  notFoundUrl: string | undefined
}

/** Spellings of hosts that are remembered: those of visitors, and a few of attackers. */
const SPELLINGS_MAX = 256

/**
 * HOT PATH. The domains as one connection sees them, kept in memory. Like the blocked hosts, they
 * are read again when the version of all codes has changed (decisions 056 and 060).
 */
export class DomainMap {
  readonly primary: RequestDomain
  /** A name that is none of the service: it answers the short links of `primary`, nothing else. */
  readonly foreign: RequestDomain
  readonly #versions: Pick<CodeVersions, 'all'>
  readonly #reads: DomainReads
  #version: number | undefined
  #hadDomains = false
  #byHost: ReadonlyMap<string, RequestDomain> = new Map()
  #hosts: ReadonlyMap<number, string> = new Map()
  #bySpelling = new Map<string, RequestDomain>()

  /** `versions`: tell when the domains may have changed. */
  constructor(
    db: Database,
    versions: Pick<CodeVersions, 'all'>,
    { baseUrl, rootUrl, notFoundUrl }: PrimarySettings,
  ) {
    this.#versions = versions
    this.#reads = new DomainReads(db)
    const { hostname } = new URL(baseUrl)
    const host = canonicalHost(hostname) ?? hostname
    const about = { host, codes: 'all', rootUrl, notFoundUrl } as const
    this.primary = { id: PRIMARY_ID, isPrimary: true, ...about }
    this.foreign = { ...this.primary, isPrimary: false, host: '' }
  }

  /** No domains are configured. */
  get isEmpty(): boolean {
    const version = this.#versions.all
    if (version !== this.#version) this.#update(version)
    return this.#byHost.size === 0
  }

  /** No domain was ever added, so that every host is the primary one. */
  get isUnused(): boolean {
    return this.isEmpty && !this.#hadDomains
  }

  /**
   * The domain of a `Host` line, whose bytes were read as latin-1. Addresses and names of the local
   * network are the primary one; other names that are not configured are `foreign`, also those of
   * removed domains. Undefined for several lines, which are joined by commas.
   */
  ofHost(line: string): RequestDomain | undefined {
    if (this.isUnused) return this.primary
    const known = this.#bySpelling.get(line)
    if (known) return known
    if (line.includes(',')) return undefined
    const host = canonicalHost(fromLatin1(line))
    const isPrimary = host === this.primary.host || isLocalHost(line, host)
    const found = isPrimary ? this.primary : (this.#byHost.get(host ?? '') ?? this.foreign)
    if (this.#bySpelling.size >= SPELLINGS_MAX) this.#bySpelling.clear()
    this.#bySpelling.set(line, found)
    return found
  }

  /** The same for a request on the control thread, which has refused several lines. */
  ofRequest({ headers }: Request): RequestDomain {
    return this.ofHost(headers.get('host') ?? '') ?? this.primary
  }

  /** All hosts that the service answers for, the primary one first. */
  get hosts(): string[] {
    return this.isEmpty ? [this.primary.host] : [this.primary.host, ...this.#byHost.keys()]
  }

  /** A host in the form of `canonicalHost`, also the primary one. */
  findByHost(host: string): RequestDomain | undefined {
    if (host === this.primary.host) return this.primary
    return this.isEmpty ? undefined : this.#byHost.get(host)
  }

  /**
   * The host of a domain of links; undefined for the primary one, which has a port too. A domain
   * that is not known was added just now, perhaps by another host of a cluster.
   */
  hostOf(id: number): string | undefined {
    if (id === PRIMARY_ID) return undefined
    const isCurrent = this.#versions.all === this.#version
    if (!isCurrent || !this.#hosts.has(id)) this.#update(this.#versions.all)
    return this.#hosts.get(id)
  }

  /** The domain with an id; undefined if there is none. */
  findById(id: number): RequestDomain | undefined {
    if (id === PRIMARY_ID) return this.primary
    const host = this.hostOf(id)
    return host === undefined ? undefined : this.findByHost(host)
  }

  /** If the database fails, the domains of before stay. */
  #update(version: number): void {
    try {
      const all = this.#reads.list()
      this.#hosts = new Map(all.map(({ id, host }) => [id, host]))
      this.#byHost = this.#mapOf(all)
      this.#hadDomains = this.#reads.wereAdded()
      this.#bySpelling = new Map()
      this.#version = version
    } catch {
      // The next request tries again.
    }
  }

  #mapOf(stored: readonly Domain[]): Map<string, RequestDomain> {
    const all = stored.filter(({ host }) => host !== this.primary.host)
    const hosts = new Set([this.primary.host, ...all.map(({ host }) => host)])
    // A page of the service itself may have become one by a new domain or another BASE_URL.
    const outside = (url: string | null | undefined) =>
      url && !hosts.has(canonicalHost(new URL(url).host) ?? '') ? url : undefined
    return new Map(
      all.map(({ id, host, codes, rootUrl, notFoundUrl }) => {
        const lost = outside(notFoundUrl ?? this.primary.notFoundUrl)
        const pages = { rootUrl: outside(rootUrl), notFoundUrl: lost }
        return [host, { id, isPrimary: false, host, codes, ...pages }]
      }),
    )
  }
}
