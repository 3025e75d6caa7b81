import type { Database } from 'bun:sqlite'
import type { AccountRow } from './store.ts'

/** The columns of an account that the owner of the service sees. */
export interface AccountOverview
  extends Pick<
    AccountRow,
    'id' | 'name' | 'plan' | 'isOwner' | 'linkCount' | 'urlBytes' | 'createdAt' | 'disabledAt'
  > {
  /** The last use of a stored key or session; null if there was none. */
  seenAt: number | null
}

interface OverviewQuery {
  /** Part of the name or of a member's address, in any letter case; empty for every account. */
  search: string
  limit: number
  offset: number
}

/** A page of accounts. A search looks at every account. */
export function overviewScan(db: Database) {
  const ofAccount = `memberships JOIN people ON people.id = person_id
    WHERE memberships.account_id = accounts.id`
  const matches = `deleted_at IS NULL AND (?1 = '' OR instr(lower(name), lower(?1)) > 0
    OR EXISTS (SELECT 1 FROM ${ofAccount} AND instr(lower(email), lower(?1)) > 0))`
  const page = db.prepare<AccountOverview, [string, number, number]>(
    `SELECT id, name, plan, link_count AS linkCount,
       url_bytes AS urlBytes, created_at AS createdAt, disabled_at AS disabledAt,
       is_owner AS isOwner,
       nullif(max(
         coalesce((SELECT max(seen_at) FROM sessions WHERE account_id = accounts.id), 0),
         coalesce((SELECT max(last_used_at) FROM api_keys WHERE account_id = accounts.id), 0)
       ), 0) AS seenAt
     FROM accounts WHERE ${matches} ORDER BY id DESC LIMIT ?2 OFFSET ?3`,
  )
  const count = db.prepare<{ n: number }, [string]>(
    `SELECT count(*) AS n FROM accounts WHERE ${matches}`,
  )
  return ({ search, limit, offset }: OverviewQuery): { total: number; items: AccountOverview[] } =>
    db.transaction(() => ({
      total: count.get(search)?.n ?? 0,
      items: page.all(search, limit, offset),
    }))()
}
