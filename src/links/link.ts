import type { Account, AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { canonicalHost } from '../domains/host.ts'
import type { RequestDomain } from '../domains/map.ts'
import type { AppError } from '../errors.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'
import { ADDRESS_COLUMNS, type AliasName, type AliasScope, nameOf, parseName } from './aliases.ts'

/**
 * A link as every part of the service sees it: the row, the writer's messages and results, the
 * cache and the views. A new column is added here, in `LINK_COLUMNS` and in `db/schema.ts`.
 */
export interface Link {
  /** Ids count up and are never given out again. */
  id: number
  code: Code
  accountId: AccountId
  /** Null while the code is reserved. */
  url: string | null
  createdAt: number
  /** The host of its domain; null for the primary one. */
  domain: string | null
  /** The alias that people see in place of the code: see `ADDRESS_COLUMNS`. */
  alias: AliasName | null
}

/** What the short URL of a link depends on. */
export type Addressed = Pick<Link, 'code' | 'domain'>

export type CountedLink = Link & { hitCount: number }

/** Selects a `Link`. */
export const LINK_COLUMNS = `id, code, account_id AS accountId, url, created_at AS createdAt,
  ${ADDRESS_COLUMNS}`

/** Columns of a link that are not part of `Link`. */
export interface LinkSecrets {
  /** See `urlKey`; null while the code is reserved. */
  urlKey: Uint8Array | null
  passcodeHash: Uint8Array
}

export type SecretLink = Link & Pick<LinkSecrets, 'passcodeHash'>

/** A link to create. Its account and time are those of the whole command. */
export type NewLink = Pick<Link, 'code' | 'url'> & LinkSecrets

/** `reused`: the account had a link for this URL already, and this is it. */
export type CreatedLink = Link & { reused: boolean }

/**
 * The account and key of a request that changes links. A request is authenticated before its body
 * has arrived, so the writer checks again, as of `now`, that both are active.
 */
export interface Author {
  accountId: AccountId
  /** Absent in the dashboard. */
  keyId?: number | undefined
  now: number
}

export const authorOf = ({ id, keyId }: Account, now: number): Author => ({
  accountId: id,
  keyId,
  now,
})

export interface CreateLinks {
  accountId: AccountId
  /** The `keyId` of the `Author`; `createdAt` is its `now`. */
  keyId?: number | undefined
  createdAt: number
  items: readonly NewLink[]
  /** Items that do not fit are refused one by one. */
  quota: Quota
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
export const PASSCODE_LENGTH = 24

/** 24 of A–Z and 0–9: 124 random bits, so a fast hash is enough to store it. */
export const newPasscode = (random: RandomBytes): string =>
  randomString(random, ALPHABET, PASSCODE_LENGTH)

/** A URL that was parsed once. A `URL` has `href` and `host` too. */
export interface ParsedUrl {
  /** The URL as it was sent: what is stored and shown. */
  text: string
  /** WHATWG's serialisation, in ASCII. Two URLs with one `href` are the same URL. */
  href: string
  /** The host in `href`: with the port, unless it is the scheme's own. */
  host: string
}

/** Decides whether a URL is refused as a destination. */
export interface UrlFilter {
  isBlocked(url: Pick<ParsedUrl, 'href' | 'host'>): boolean
}

/** The error with which a new destination is refused, if it is: `url_blocked` or `own_host`. */
export interface NewUrlFilter {
  refusalOf(url: Pick<ParsedUrl, 'href' | 'host'>): AppError | undefined
}

/** A URL that has passed `Url`, for example a stored one. Throws TypeError for any other text. */
export function parseKnownUrl(text: string): ParsedUrl {
  const { href, host } = new URL(text)
  return { text, href, host }
}

/**
 * `Location` of a redirect: the URL as it was sent if a header can carry it and every client finds
 * the host in it that the blocklist was asked about, else its `href`. Browsers read a `\` in the
 * path as `/`.
 */
export function locationOf({ text, href }: Pick<ParsedUrl, 'text' | 'href'>): string {
  const isAsSent = /^[\x21-\x7e]+$/.test(text) && authorityOf(text) === authorityOf(href)
  if (!isAsSent) return encodeExcluded(href)
  return encodeExcluded(text.replace(/^[^?#]*/, (path) => path.replaceAll('\\', '/')))
}

/** The authority as RFC 3986 delimits it, without letter case and the default port. */
function authorityOf(url: string): string {
  const [, scheme, authority = ''] = /^(https?):\/\/([^/?#]*)/i.exec(url) ?? []
  return authority.toLowerCase().replace(scheme?.length === 4 ? /:80$/ : /:443$/, '')
}

/**
 * Percent-encodes the printable characters that RFC 3986 excludes from URLs. Some clients refuse a
 * `Location` with one of them; the URL parser leaves several in a query or fragment.
 */
export const encodeExcluded = (text: string): string =>
  text.replace(/["<>\\^`{|}]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** A host of bounded length, because the time of parsing one is quadratic, and what follows it. */
const ADDRESS = /^(?:(https?:)?\/\/)?([^/?#\\\s]{1,260}(?:[/?#].*)?)$/is

/** The hosts of short URLs, without domains beside the primary one: see `DomainMap`. */
export interface OwnHosts {
  primary: Pick<RequestDomain, 'host'>
  findByHost(host: string): RequestDomain | undefined
}

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

const PRIMARY: AliasScope = { id: PRIMARY_ID, codes: 'all' }
const NOWHERE: AliasScope = { id: -1, codes: 'own' }

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
  short = ({ code, domain }: Addressed): string => `${this.#originOf(domain)}/${code}`
  /** The address that people see: the displayed alias, else the code. */
  display = (link: Addressed & Pick<Link, 'alias'>): string =>
    link.alias === null ? this.short(link) : this.alias(link, link.alias)
  /** `name`: an alias of the link. */
  alias = (_: Addressed, name: AliasName): string => {
    const { domain, path } = parseName(name)
    return `${this.#originOf(domain)}/${path.split('/').map(encodeURIComponent).join('/')}`
  }
  qr = ({ code }: Pick<Link, 'code'>): string => `${this.#baseUrl}/qr/${code}`
  qrStorage = ({ code }: Pick<Link, 'code'>): string => `${this.#cdnUrl}/qr/${code}.png`

  /** That of `BASE_URL`, without a port. */
  get primaryHost(): string {
    return this.#domains.primary.host
  }

  /** The host of a domain as it is stored: null for the primary one, named or not. */
  domainOf = <Host extends string | null | undefined>(host: Host): Host | null =>
    host === this.#domains.primary.host ? null : host

  /** Where the aliases of a domain are looked up; those of an unknown one nowhere. */
  scopeOf = (domain: string | null): AliasScope => {
    return domain === null ? PRIMARY : (this.#domains.findByHost(domain) ?? NOWHERE)
  }

  /** The host of a domain, also of the primary one, with the port of its short URLs. */
  hostOf = (domain: string | null): string => (domain === null ? this.#host : domain + this.#port)

  /** An alias as it is stored: the host of the primary domain is not part of its name. */
  nameOf(name: AliasName): AliasName {
    const { domain, path } = parseName(name)
    return nameOf({ domain: this.domainOf(domain), path })
  }

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
    if (!domain || (domain.id === 0 && url.host !== this.#host)) return undefined
    return { domain, path: url.pathname }
  }

  #originOf(domain: string | null): string {
    return domain === null ? this.#baseUrl : `${this.#scheme}//${this.hostOf(domain)}`
  }
}

export const URL_KEY_BYTES = 16
const HASH_BYTES = 32
const SECRET_BYTES = URL_KEY_BYTES + HASH_BYTES

/** The URL key and the passcode hash of each link, as one array for a message to a thread. */
export function packSecrets(links: readonly LinkSecrets[]): Uint8Array {
  const packed = new Uint8Array(links.length * SECRET_BYTES)
  for (const [i, { urlKey, passcodeHash }] of links.entries()) {
    assert(!urlKey || urlKey.length === URL_KEY_BYTES, 'a URL key has one length')
    assert(passcodeHash.length === HASH_BYTES, 'a passcode hash has one length')
    packed.set(urlKey ?? [], i * SECRET_BYTES)
    packed.set(passcodeHash, i * SECRET_BYTES + URL_KEY_BYTES)
  }
  return packed
}

/** Secrets of link `i`, counted from 0. A link without a URL has no key. */
export function unpackSecrets(
  packed: Uint8Array,
  i: number,
  { url }: Pick<Link, 'url'>,
): LinkSecrets {
  const start = i * SECRET_BYTES
  return {
    urlKey: url === null ? null : packed.subarray(start, start + URL_KEY_BYTES),
    passcodeHash: packed.subarray(start + URL_KEY_BYTES, start + SECRET_BYTES),
  }
}

/**
 * `CreateLinks` as it goes to the writer thread: the links as JSON, their keys and hashes packed. A
 * batch of 1,000 links costs 2 µs of CPU per link this way; as plain objects, whose structured
 * clone is slow, 8 µs.
 */
export interface CreateMessage extends Omit<CreateLinks, 'items'> {
  links: string
  secrets: Uint8Array
}

export function encodeCreate({ items, ...command }: CreateLinks): CreateMessage {
  const links = items.map(({ urlKey: _, passcodeHash: __, ...link }) => link)
  return { ...command, links: JSON.stringify(links), secrets: packSecrets(items) }
}

export function decodeCreate({ links, secrets, ...command }: CreateMessage): CreateLinks {
  const found = JSON.parse(links) as Omit<NewLink, keyof LinkSecrets>[]
  const items = found.map((link, i) => ({ ...link, ...unpackSecrets(secrets, i, link) }))
  return { ...command, items }
}
