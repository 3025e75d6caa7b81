import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'

export interface Ranked {
  id: number
  /** Hits that are committed. */
  count: number
}

/** The next links of an account, newest first, of which only those above `floor` matter. */
export interface RankSlice {
  accountId: AccountId
  /** Ids below this one; every id where it is absent. */
  below?: number | undefined
  /** Counts that are too low to matter: these and lower ones. Absent while every link does. */
  floor?: number | undefined
  /** The most that can matter. */
  keep: number
}

/** `next`: where the next slice begins; undefined after the last. */
export interface RankedSlice {
  best: Ranked[]
  next: number | undefined
}

/** Links of one slice: some 2 ms, so that no list waits for long. */
const SLICE = 16_384
const NO_ID_REACHES = 2 ** 32

/** Runs on the reader thread. Tests pass a small `slice`. */
export function topReads(db: Database, { slice = SLICE } = {}) {
  const end = db.prepare<{ id: number }, [AccountId, number, number]>(
    `SELECT id FROM links WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?`,
  )
  // The index of an account's links and the hits are read side by side, both in the order of ids.
  const best = db.prepare<Ranked, [AccountId, number, number, number, number]>(
    `SELECT links.id, coalesce(hits.count, 0) AS count
     FROM links LEFT JOIN hits ON hits.link_id = links.id
     WHERE links.account_id = ?1 AND links.id < ?2 AND links.id >= ?3
       AND coalesce(hits.count, 0) > ?4
     ORDER BY count DESC, links.id DESC LIMIT ?5`,
  )
  const byIds = db.prepare<LinkRow, [string]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))`,
  )
  return {
    /** The most followed links of one slice, then those without hits, newest first. */
    rankSlice({ accountId, below = NO_ID_REACHES, floor = -1, keep }: RankSlice): RankedSlice {
      return db.transaction(() => {
        const next = end.get(accountId, below, slice - 1)?.id
        return { best: best.all(accountId, below, next ?? 0, floor, keep), next }
      })()
    },

    /** In no order; without those that are gone. */
    linksByIds: ({ ids }: { ids: readonly number[] }): LinkRow[] => byIds.all(JSON.stringify(ids)),
  }
}

export type TopReads = ReturnType<typeof topReads>
