import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'
import { isSearchable, searcher } from './search.ts'
import { ID_MAX } from './stretches.ts'

interface NewestQuery {
  accountId: AccountId
  /** Not empty. */
  search: string
  limit: number
  offset: number
}

/** The index finds three characters and more; for fewer only so many ids are looked through. */
const INDEXED_FROM = 3
const LOOKED_THROUGH = 65_536

/** Runs on the reader thread. Counts nothing: a page takes some milliseconds. */
export function newestReads(db: Database) {
  const searchOf = searcher(db, { stretch: 1 })
  const newest = db.prepare<{ id: number | null }, [AccountId]>(
    'SELECT max(id) AS id FROM links WHERE account_id = ?',
  )
  const byIds = db.prepare<LinkRow, [string]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))
     ORDER BY id DESC`,
  )
  return {
    /** A page of the matches, newest first; of a text of one or two characters the newest few. */
    newestMatches({ accountId, search, limit, offset }: NewestQuery): LinkRow[] {
      if (!isSearchable(search)) return []
      return db.transaction(() => {
        const { source, unindexed } = searchOf(accountId, search)
        const isIndexed = [...search].length >= INDEXED_FROM
        const after = isIndexed ? 0 : (newest.get(accountId)?.id ?? 0) - LOOKED_THROUGH
        const fresh = unindexed()
        const head = fresh.slice(offset, offset + limit)
        const behind = Math.max(0, offset - fresh.length)
        const span = { after: Math.max(0, after), upTo: ID_MAX }
        const ids = source.page(span, limit - head.length, behind)
        return [...head, ...byIds.all(JSON.stringify(ids))]
      })()
    },
  }
}

export type NewestReads = ReturnType<typeof newestReads>
