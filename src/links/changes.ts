import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'

/** A link's URL was changed or the link deleted; see drizzle/0004_link_changes.sql. */
export interface LinkChange {
  accountId: AccountId
  id: number
  isDeleted: boolean
}

/**
 * Gives, at every call, what happened to links that were there before, since the call before; or
 * undefined when so much happened that the log holds the newest part alone. Call it inside the
 * transaction whose reads its answer is about.
 */
export function changeFollower(db: Database): () => LinkChange[] | undefined {
  const after = db.prepare<
    { seq: number; accountId: AccountId; id: number; isDeleted: number },
    [number]
  >(
    `SELECT seq, account_id AS accountId, link_id AS id, is_deleted AS isDeleted
     FROM link_changes WHERE seq > ? ORDER BY seq`,
  )
  let known = 0
  return () => {
    const changes = after.all(known)
    const [first] = changes
    const isWhole = first === undefined || first.seq === known + 1
    known = changes.at(-1)?.seq ?? known
    if (!isWhole) return undefined
    return changes.map(({ accountId, id, isDeleted }) => ({
      ...{ accountId, id, isDeleted: isDeleted === 1 },
    }))
  }
}
