import { assert } from '../lib/assert.ts'
import type { Code } from './code.ts'
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
  urls: string
  codes: string
  /** Of each link its URL's key, then its passcode's hash. */
  bytes: Uint8Array
}

/** What became of a parcel: `ids` in its order, and each link that is not as it was ordered. */
export interface Receipt {
  ids: number[]
  others: { at: number; link: CreatedLink }[]
}

/** At least one. */
export function packLinks({ accountId, keyId, createdAt, items }: CreateLinks): LinkParcel {
  const bytes = new Uint8Array(items.length * LINK_BYTES)
  for (const [at, { urlKey, passcodeHash }] of items.entries()) {
    assert(urlKey.length === URL_KEY_BYTES, 'a URL key has one length')
    assert(passcodeHash.length === HASH_BYTES, 'a passcode hash has one length')
    bytes.set(urlKey, at * LINK_BYTES)
    bytes.set(passcodeHash, at * LINK_BYTES + URL_KEY_BYTES)
  }
  return {
    ...{ accountId, keyId, createdAt, bytes, count: items.length },
    urls: items.map(({ url }) => url).join(BETWEEN),
    codes: items.map(({ code }) => code).join(BETWEEN),
  }
}

export function unpackLinks(parcel: LinkParcel): CreateLinks {
  const { accountId, keyId, createdAt, count, bytes } = parcel
  const urls = parcel.urls.split(BETWEEN)
  const codes = parcel.codes.split(BETWEEN)
  assert(urls.length === count && codes.length === count, 'a parcel arrives as it was packed')
  const items = urls.map((url, at) => ({
    url,
    code: codes[at] as Code,
    urlKey: bytes.subarray(at * LINK_BYTES, at * LINK_BYTES + URL_KEY_BYTES),
    passcodeHash: bytes.subarray(at * LINK_BYTES + URL_KEY_BYTES, (at + 1) * LINK_BYTES),
  }))
  return { accountId, keyId, createdAt, items }
}

export function packReceipt({ items }: CreateLinks, links: readonly CreatedLink[]): Receipt {
  const others: Receipt['others'] = []
  for (const [at, link] of links.entries()) {
    if (link.reused || link.code !== items[at]?.code) others.push({ at, link })
  }
  return { ids: links.map(({ id }) => id), others }
}

/** The links of a receipt, in the order of what was ordered. */
export function unpackReceipt(
  { accountId, createdAt, items }: CreateLinks,
  { ids, others }: Receipt,
): CreatedLink[] {
  assert(ids.length === items.length, 'a receipt has one id an item')
  const links = items.map(({ code, url }, at): CreatedLink => {
    return { id: ids[at] ?? 0, code, accountId, url, createdAt, reused: false }
  })
  for (const { at, link } of others) links[at] = link
  return links
}
