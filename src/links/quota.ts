import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { AppError } from '../errors.ts'
import { formatBytes } from '../lib/bytes.ts'

/** The quota of a plan that a change would exceed: the name of the setting's field. */
export type QuotaName = keyof Quota

/** The links and bytes that an account stores. */
export interface Stored {
  links: number
  urlBytes: number
}

export const NOTHING_STORED: Readonly<Stored> = { links: 0, urlBytes: 0 }

export const addStored = (one: Stored, other: Stored): Stored => ({
  links: one.links + other.links,
  urlBytes: one.urlBytes + other.urlBytes,
})

/** The quota that `stored` exceeds; undefined where it fits. A quota of 0 is no limit. */
export function exceededQuota(stored: Stored, quota: Quota): QuotaName | undefined {
  if (quota.linksMax > 0 && stored.links > quota.linksMax) return 'linksMax'
  if (quota.urlBytesMax > 0 && stored.urlBytes > quota.urlBytesMax) return 'urlBytesMax'
  return undefined
}

/** What fits the quota, in words. */
export const quotaText = (name: QuotaName, quota: Quota): string =>
  name === 'linksMax'
    ? `${quota.linksMax.toLocaleString('en')} links`
    : `${formatBytes(quota.urlBytesMax)} of URLs`

export const quotaError = (name: QuotaName, quota: Quota): AppError =>
  new AppError('quota_exceeded', `your plan stores at most ${quotaText(name, quota)}`)

/** The stored links and bytes of each account. */
export function accountCounts(db: Database) {
  const counts = db.prepare<Stored, [AccountId]>(
    'SELECT link_count AS links, url_bytes AS urlBytes FROM accounts WHERE id = ?',
  )
  const add = db.prepare<null, [number, number, AccountId]>(
    'UPDATE accounts SET link_count = link_count + ?, url_bytes = url_bytes + ? WHERE id = ?',
  )
  const stored = (accountId: AccountId): Stored => counts.get(accountId) ?? NOTHING_STORED
  return {
    stored,

    /** The quota that `added` would exceed. What does not grow always fits. */
    exceededBy(accountId: AccountId, added: Stored, quota: Quota): QuotaName | undefined {
      const before = stored(accountId)
      const links = added.links > 0 ? before.links + added.links : 0
      const urlBytes = added.urlBytes > 0 ? before.urlBytes + added.urlBytes : 0
      return exceededQuota({ links, urlBytes }, quota)
    },

    add(accountId: AccountId, { links, urlBytes }: Stored): void {
      add.run(links, urlBytes, accountId)
    },
  }
}
