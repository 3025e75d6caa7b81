import { PRIMARY_ID } from '../hot/destination-cache.ts'
import {
  type Address,
  addressText,
  canonicalHost,
  type NamedAddress,
  NO_DOMAIN,
  parseAddress,
} from './address.ts'
import type { DomainMap, RequestDomain } from './map.ts'
import type { Addressed, DisplayedLink } from './names.ts'

/** Addresses as texts: the only place that prints the host of one. */

/** A host of bounded length, because the time of parsing one is quadratic, and what follows it. */
const ADDRESS = /^(?:(https?:)?\/\/)?([^/?#\\\s]{1,260}(?:[/?#].*)?)$/is

/** The domains of short links: see `DomainMap`. */
export type OwnHosts = Pick<DomainMap, 'primary' | 'findByHost' | 'findById' | 'hostOf'>

interface PublicUrlsOptions {
  baseUrl: string
  cdnUrl: string
  domains: OwnHosts
}

/** A path on one of the hosts of short URLs, with its first slash. */
interface OwnAddress {
  domain: RequestDomain
  path: string
}

export class PublicUrls {
  readonly #baseUrl: string
  readonly #cdnUrl: string
  readonly #host: string
  readonly #scheme: string
  /** That of `BASE_URL` with its colon, which the other domains have too; empty without one. */
  readonly #port: string
  readonly #domains: OwnHosts

  constructor({ baseUrl, cdnUrl, domains }: PublicUrlsOptions) {
    this.#baseUrl = baseUrl
    const { host, protocol, port } = new URL(baseUrl)
    this.#host = host
    this.#scheme = protocol
    this.#port = port && `:${port}`
    this.#cdnUrl = cdnUrl
    this.#domains = domains
  }

  /** The short URL of the contract: with the code. */
  short = ({ code, domainId }: Addressed): string => `${this.#originOf(domainId)}/${code}`
  /** The address that people see: the displayed alias, else the code as it was typed. */
  display = (link: DisplayedLink): string =>
    link.alias === null ? this.withCode(link) : this.alias(link.alias)
  /** The short URL with the code as it was typed. */
  withCode = ({ code, typedCode, domainId }: Omit<DisplayedLink, 'alias'>): string =>
    `${this.#originOf(domainId)}/${typedCode ?? code}`
  /** The short URL with an alias. */
  alias = ({ domainId, path }: Address): string =>
    `${this.#originOf(domainId)}/${path.split('/').map(encodeURIComponent).join('/')}`
  qr = ({ code }: Pick<Addressed, 'code'>): string => `${this.#baseUrl}/qr/${code}`
  qrStorage = ({ code }: Pick<Addressed, 'code'>): string => `${this.#cdnUrl}/qr/${code}.png`

  /** The primary domain; its host is that of `BASE_URL` without a port. */
  get primary(): RequestDomain {
    return this.#domains.primary
  }

  /** The domain with a host, also that of the primary one; null or an empty text names that too. */
  idOf = (host: string | null): number =>
    host ? (this.#domains.findByHost(host)?.id ?? NO_DOMAIN) : PRIMARY_ID

  /** The host of a domain as requests and files name it: null for the primary one. */
  namedHost = (domainId: number): string | null => this.#domains.hostOf(domainId) ?? null

  /** The host of a domain as people see it, with the port of its short URLs. */
  shownHost = (domainId: number): string => {
    const host = this.#domains.hostOf(domainId)
    return host === undefined ? this.#host : host + this.#port
  }

  addressOf = ({ host, path }: NamedAddress): Address => ({ domainId: this.idOf(host), path })

  /** The address in a text of `textOf`. */
  parse = (text: string): Address => this.addressOf(parseAddress(text))

  /** An address as requests and files name it. */
  textOf = ({ domainId, path }: Address): string =>
    addressText({ host: this.namedHost(domainId), path })

  /** The domain with an id, as redirects need it. */
  findDomain = (domainId: number): RequestDomain | undefined => this.#domains.findById(domainId)

  /**
   * The domain and the path of a text that begins with a host of short URLs, with or without
   * scheme; without query and fragment. Undefined for any other text.
   */
  addressIn(text: string): OwnAddress | undefined {
    const [, scheme = this.#scheme, rest] = ADDRESS.exec(text) ?? []
    const url = rest === undefined ? undefined : URL.parse(`${scheme}//${rest}`)
    if (!url) return undefined
    const domain = this.#domains.findByHost(canonicalHost(url.host) ?? '')
    // The primary host with another port may be another service.
    if (!domain || (domain.isPrimary && url.host !== this.#host)) return undefined
    return { domain, path: url.pathname }
  }

  #originOf(domainId: number): string {
    const host = this.#domains.hostOf(domainId)
    return host === undefined ? this.#baseUrl : `${this.#scheme}//${host}${this.#port}`
  }
}
