import { canonicalHost, DNS_NAME_MAX } from '../addresses/address.ts'
import { LISTED_DOMAINS_MAX, SeveralDomains } from './source.ts'

export interface DomainOptions {
  /** Rows of other domains are left out. With several, the first one wins a path. */
  domains?: readonly string[] | undefined
  /**
   * Domains of the service that the account may use, the primary one first. Their rows keep their
   * domain; rows of any other one get the primary.
   */
  hosts?: readonly string[] | undefined
  /** Whether a person chooses among several domains if one of them is none of the service. */
  asksDomains?: boolean | undefined
}

/** The domains of the rows of an import: which are imported, and which domain their links get. */
export class RowDomains {
  readonly #options: DomainOptions
  readonly #hosts: ReadonlySet<string | undefined>
  /** Rows by domain; those without one are under an empty name. */
  readonly #rows = new Map<string, number>()
  #onlyOwn = false

  constructor(options: DomainOptions) {
    this.#options = options
    this.#hosts = new Set(options.hosts)
  }

  add(domain = ''): void {
    this.#rows.set(domain, (this.#rows.get(domain) ?? 0) + 1)
  }

  /** Whether the rows of a domain of the service, or without one, are the only ones imported. */
  get onlyOwn(): boolean {
    return this.#onlyOwn
  }

  isChosen(domain: string | undefined): boolean {
    if (domain === undefined) return true
    const { domains } = this.#options
    if (!domains) return !this.#onlyOwn || this.isOwn(domain)
    return domains.includes(domain) || domains.includes(this.hostOf(domain) ?? domain)
  }

  isOwn(domain: string | undefined): boolean {
    return domain === undefined || this.#hosts.has(canonicalHost(domain))
  }

  /** The domain that a link gets; undefined for the primary one. */
  hostOf(domain: string | undefined): string | undefined {
    const host = domain === undefined ? undefined : canonicalHost(domain)
    return this.#hosts.has(host) && host !== this.#options.hosts?.[0] ? host : undefined
  }

  /** Of two rows with the same path, the one with the lower rank keeps it. */
  rank(domain = ''): number {
    return this.#options.domains?.indexOf(this.hostOf(domain) ?? domain) ?? -1
  }

  /** Decides, once all rows were added. Throws SeveralDomains if a person has to. */
  decide(): void {
    const named = [...this.#rows.keys()].filter((domain) => domain !== '')
    if (named.length <= 1 || this.#options.domains) return
    const own = named.filter((domain) => this.isOwn(domain))
    const isClear = this.#options.asksDomains ? own.length === named.length : own.length > 0
    if (!isClear) throw new SeveralDomains(this.#found(named))
    this.#onlyOwn = true
  }

  #found(named: readonly string[]) {
    const rowsOf = (domain: string) => this.#rows.get(domain) ?? 0
    const most = named.toSorted((one, other) => rowsOf(other) - rowsOf(one))
    const listed = most.slice(0, LISTED_DOMAINS_MAX).map((domain) => ({
      domain: domain.slice(0, DNS_NAME_MAX),
      rows: rowsOf(domain),
      isOwn: this.isOwn(domain),
    }))
    return { listed, others: named.length - listed.length, without: rowsOf('') }
  }
}
