import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import type { QuotaName } from './quota.ts'
import type { CreatedLink, CreateLinks } from './row.ts'
import { URL_KEY_BYTES } from './url.ts'

/**
 * Links to create, and what became of them, as they go from thread to thread: in columns, because
 * one text and one array of bytes take a tenth of the time of a thousand objects.
 */

const HASH_BYTES = 32
const LINK_BYTES = URL_KEY_BYTES + HASH_BYTES
/** In no URL that has passed `Url`, and in no code. */
const BETWEEN = '\n'

export interface LinkParcel {
  accountId: number
  keyId: number | undefined
  createdAt: number
  count: number
  quota: CreateLinks['quota']
  urls: string
  codes: string
  /** Of each link its URL's key, then its passcode's hash. */
  bytes: Uint8Array
}

/** A link, or the quota that has no room for it. */
export type Creation = CreatedLink | QuotaName

/** What became of a parcel: `ids` in its order, and each link that is not as it was ordered. */
export interface Receipt {
  /** 0 where the link was refused. */
  ids: number[]
  others: { at: number; link: Creation }[]
}

/** At least one. */
export function packLinks(order: CreateLinks): LinkParcel {
  const { accountId, keyId, createdAt, items, quota } = order
  const bytes = new Uint8Array(items.length * LINK_BYTES)
  for (const [at, { urlKey, passcodeHash }] of items.entries()) {
    assert(urlKey.length === URL_KEY_BYTES, 'a URL key has one length')
    assert(passcodeHash.length === HASH_BYTES, 'a passcode hash has one length')
    bytes.set(urlKey, at * LINK_BYTES)
    bytes.set(passcodeHash, at * LINK_BYTES + URL_KEY_BYTES)
  }
  return {
    accountId,
    keyId,
    createdAt,
    bytes,
    quota,
    count: items.length,
    urls: items.map(({ url }) => url).join(BETWEEN),
    codes: items.map(({ code }) => code).join(BETWEEN),
  }
}

export function unpackLinks(parcel: LinkParcel): CreateLinks {
  const { accountId, keyId, createdAt, count, bytes, quota } = parcel
  const urls = parcel.urls.split(BETWEEN)
  const codes = parcel.codes.split(BETWEEN)
  assert(urls.length === count && codes.length === count, 'a parcel arrives as it was packed')
  const items = urls.map((url, at) => ({
    url,
    code: codes[at] as Code,
    urlKey: bytes.subarray(at * LINK_BYTES, at * LINK_BYTES + URL_KEY_BYTES),
    passcodeHash: bytes.subarray(at * LINK_BYTES + URL_KEY_BYTES, (at + 1) * LINK_BYTES),
  }))
  return { accountId, keyId, createdAt, items, ...(quota && { quota }) }
}

export function packReceipt({ items }: CreateLinks, links: readonly Creation[]): Receipt {
  const others: Receipt['others'] = []
  for (const [at, link] of links.entries()) {
    const isOther = typeof link === 'string' || link.reused || link.code !== items[at]?.code
    if (isOther) others.push({ at, link })
  }
  return { ids: links.map((link) => (typeof link === 'string' ? 0 : link.id)), others }
}

/** The links of a receipt, in the order of what was ordered. */
export function unpackReceipt(
  { accountId, createdAt, items }: CreateLinks,
  { ids, others }: Receipt,
): Creation[] {
  assert(ids.length === items.length, 'a receipt has one id an item')
  const links = items.map(({ code, url }, at): Creation => {
    return { id: ids[at] ?? 0, code, accountId, url, createdAt, reused: false }
  })
  for (const { at, link } of others) links[at] = link
  return links
}
