import type { Database } from 'bun:sqlite'
import type { Plan } from './plans.ts'
import type { AccountId } from './store.ts'

/** An account as the owner of the service sees it. */
export interface AccountOverview {
  id: AccountId
  email: string
  plan: Plan
  isOwner: number
  linkCount: number
  urlBytes: number
  createdAt: number
  disabledAt: number | null
  /** The newest use of a key or a session that is still kept; null for neither. */
  seenAt: number | null
}

interface OverviewQuery {
  /** Part of the e-mail address, in any letter case; empty for every account. */
  search: string
  limit: number
  offset: number
}

/** Runs on the reader thread: a search looks at every account. */
export function overviewReads(db: Database) {
  const isMeant = `deleted_at IS NULL AND (?1 = '' OR instr(lower(email), lower(?1)) > 0)`
  const page = db.prepare<AccountOverview, [string, number, number]>(
    `SELECT id, email, plan, is_owner AS isOwner, link_count AS linkCount,
       url_bytes AS urlBytes,       created_at AS createdAt, disabled_at AS disabledAt,
       nullif(max(
         coalesce((SELECT max(seen_at) FROM sessions WHERE account_id = accounts.id), 0),
         coalesce((SELECT max(last_used_at) FROM api_keys WHERE account_id = accounts.id), 0)
       ), 0) AS seenAt
     FROM accounts WHERE ${isMeant} ORDER BY id DESC LIMIT ?2 OFFSET ?3`,
  )
  const count = db.prepare<{ n: number }, [string]>(
    `SELECT count(*) AS n FROM accounts WHERE ${isMeant}`,
  )
  return {
    /** Newest first, without accounts that are being deleted. `total` is of all pages. */
    accountOverviews({ search, limit, offset }: OverviewQuery): {
      total: number
      items: AccountOverview[]
    } {
      return db.transaction(() => ({
        total: count.get(search)?.n ?? 0,
        items: page.all(search, limit, offset),
      }))()
    },
  }
}

export type OverviewReads = ReturnType<typeof overviewReads>
