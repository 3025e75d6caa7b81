import type { Account, AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import type { Code } from '../lib/code.ts'

/** A code as it is stored. Ids count up and are never given out again. */
export interface LinkRow {
  id: number
  code: Code
  accountId: AccountId
  url: string | null
  createdAt: number
}

/** What a `LinkRow` is read from. */
export const LINK_COLUMNS = 'id, code, account_id AS accountId, url, created_at AS createdAt'

export interface NewLink {
  url: string
  urlKey: Uint8Array
  code: Code
  passcodeHash: Uint8Array
}

/**
 * On whose behalf a link is changed. A request is let in before its body has arrived, so the
 * writer asks once more, as of `now`, whether the account and the key are active.
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
  /** Items that do not fit are refused one by one. Absent: no limit. */
  quota?: Quota
}

/** `reused`: the account had this URL already, and this is the link it had. */
export type CreatedLink = LinkRow & { reused: boolean }
