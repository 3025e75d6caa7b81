import type { AccountId } from '../accounts/store.ts'
import { ADDRESS_COLUMNS, type DisplayedLink } from '../addresses/names.ts'
import type { Quota } from '../config.ts'
import type { Author } from '../db/author.ts'
import type { AppError } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import { type RandomBytes, randomString } from '../lib/random.ts'

/**
 * A link as every part of the service sees it: the row, the writer's messages and results, the
 * cache and the views. A new column is added here, in `LINK_COLUMNS` and in `db/schema.ts`.
 */
export interface Link extends DisplayedLink {
  /** Ids count up and are never given out again. */
  id: number
  accountId: AccountId
  /** Null while the code is reserved. */
  url: string | null
  createdAt: number
}

export type CountedLink = Link & { hitCount: number }

/** What identifies a link and its account. */
export type NamedLink = Pick<Link, 'id' | 'code' | 'accountId'>

/** Selects a `NamedLink`. */
export const NAMED_LINK = 'id, code, account_id AS accountId'

/** Selects a `Link` with `prepareAddressed`. */
export const LINK_COLUMNS = `${NAMED_LINK}, url, created_at AS createdAt, ${ADDRESS_COLUMNS}`

/** Columns of a link that are not part of `Link`. */
export interface LinkSecrets {
  /** See `urlKey`; null while the code is reserved. */
  urlKey: Uint8Array | null
  passcodeHash: Uint8Array
}

export type SecretLink = Link & Pick<LinkSecrets, 'passcodeHash'>

/**
 * A link to create. Its account and time are those of the whole command. `typedCode`: never beside
 * a generated code.
 */
export type NewLink = Pick<Link, 'code' | 'url'> & Partial<Pick<Link, 'typedCode'>> & LinkSecrets

/**
 * `reused`: the account had a link for this URL already, and this is it. `restored`: its deletion
 * was scheduled, and is canceled.
 */
export type CreatedLink = Link & { reused: boolean; restored?: true | undefined }

export interface CreateLinks {
  /** Its `now` is when the links are created. */
  author: Author
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
 * path as `/` (decision 037).
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
