import type { Account, AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { AppError } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import { formatBytes } from '../lib/bytes.ts'
import type { Code } from '../lib/code.ts'

/**
 * A link as every part of the service sees it: the row, the writer's messages and results, the
 * cache and the views. A new column is added here, in `COLUMNS` and in `db/schema.ts`.
 */
export interface Link {
  /** Ids count up and are never given out again. */
  id: number
  code: Code
  accountId: AccountId
  /** Null while the code is reserved. */
  url: string | null
  createdAt: number
}

export type CountedLink = Link & { hitCount: number }

const COLUMNS: Readonly<Record<keyof Link, string>> = {
  id: 'id',
  code: 'code',
  accountId: 'account_id',
  url: 'url',
  createdAt: 'created_at',
}

const asNames = (columns: Readonly<Record<string, string>>): string =>
  Object.entries(columns)
    .map(([name, column]) => `${column} AS ${name}`)
    .join(', ')

/** Selects a `Link`. */
export const LINK_COLUMNS = asNames(COLUMNS)

/** Columns of a link that are not part of `Link`. */
interface LinkSecrets {
  /** See `urlKey`; null while the code is reserved. */
  urlKey: Uint8Array | null
  passcodeHash: Uint8Array
}

const { id: _, ...WRITTEN } = COLUMNS
/** The columns of an INSERT, by the names of their values. */
export const INSERTED_COLUMNS: Readonly<
  Record<keyof Omit<Link, 'id'> | keyof LinkSecrets, string>
> = { ...WRITTEN, urlKey: 'url_key', passcodeHash: 'passcode_hash' }

/** Selects a link with the hash of its passcode. */
export type SecretLink = Link & Pick<LinkSecrets, 'passcodeHash'>
export const SECRET_LINK_COLUMNS = asNames({ ...COLUMNS, passcodeHash: 'passcode_hash' })

/** A link to create. Its account and time are those of the whole command. */
export type NewLink = Omit<Link, 'id' | 'accountId' | 'createdAt'> & LinkSecrets

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
  /** As in `Author`; `createdAt` is its `now`. */
  keyId?: number | undefined
  createdAt: number
  items: readonly NewLink[]
  /** Items that do not fit are refused one by one. */
  quota: Quota
}

/** The quota of a plan that a change would exceed: the name of the setting's field. */
export type QuotaName = keyof Quota

/** The links and bytes that an account stores. */
export interface Stored {
  links: number
  urlBytes: number
}

/** The quota that `stored` exceeds; undefined where it fits. A quota of 0 is no limit. */
export function exceededQuota(stored: Stored, quota: Quota): QuotaName | undefined {
  if (quota.linksMax > 0 && stored.links > quota.linksMax) return 'linksMax'
  if (quota.urlBytesMax > 0 && stored.urlBytes > quota.urlBytesMax) return 'urlBytesMax'
  return undefined
}

export function quotaError(name: QuotaName, quota: Quota): AppError {
  const most =
    name === 'linksMax'
      ? `${quota.linksMax.toLocaleString('en')} links`
      : `${formatBytes(quota.urlBytesMax)} of URLs`
  return new AppError('quota_exceeded', `your plan stores at most ${most}`)
}

/** The public URLs of a code. */
export class PublicUrls {
  readonly #baseUrl: string
  readonly #cdnUrl: string

  constructor({ baseUrl, cdnUrl }: { baseUrl: string; cdnUrl: string }) {
    this.#baseUrl = baseUrl
    this.#cdnUrl = cdnUrl
  }

  short = (code: Code): string => `${this.#baseUrl}/${code}`
  qr = (code: Code): string => `${this.#baseUrl}/qr/${code}`
  qrStorage = (code: Code): string => `${this.#cdnUrl}/qr/${code}.png`
}

const URL_KEY_BYTES = 16
const HASH_BYTES = 32
const SECRET_BYTES = URL_KEY_BYTES + HASH_BYTES

/**
 * `CreateLinks` as it goes to the writer thread: the links as JSON, their keys and hashes as one
 * array of bytes. A batch of 1,000 links costs 2 µs of CPU per link this way; as plain objects,
 * whose structured clone is slow, 8 µs.
 */
export interface CreateMessage extends Omit<CreateLinks, 'items'> {
  links: string
  /** URL key and passcode hash of each link. */
  secrets: Uint8Array
}

/** Every link has a URL key: a code without a URL is reserved, not created. */
export function encodeCreate({ items, ...command }: CreateLinks): CreateMessage {
  const secrets = new Uint8Array(items.length * SECRET_BYTES)
  const links = items.map(({ urlKey, passcodeHash, ...link }, i) => {
    assert(urlKey?.length === URL_KEY_BYTES, 'a URL key has one length')
    assert(passcodeHash.length === HASH_BYTES, 'a passcode hash has one length')
    secrets.set(urlKey, i * SECRET_BYTES)
    secrets.set(passcodeHash, i * SECRET_BYTES + URL_KEY_BYTES)
    return link
  })
  return { ...command, links: JSON.stringify(links), secrets }
}

export function decodeCreate({ links, secrets, ...command }: CreateMessage): CreateLinks {
  const found = JSON.parse(links) as Omit<NewLink, keyof LinkSecrets>[]
  const items = found.map((link, i): NewLink => {
    const start = i * SECRET_BYTES
    return {
      ...link,
      urlKey: secrets.subarray(start, start + URL_KEY_BYTES),
      passcodeHash: secrets.subarray(start + URL_KEY_BYTES, start + SECRET_BYTES),
    }
  })
  return { ...command, items }
}
