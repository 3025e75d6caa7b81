import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { ID_MAX } from './count-index.ts'

/** Links in the order of their hits. */

export interface Ranked {
  id: number
  /** Committed hits. */
  count: number
}

export const mostHitsFirst = (a: Ranked, b: Ranked): number => b.count - a.count || b.id - a.id

/** The next links of an account, newest first; only those above `floor` count. */
export interface RankSlice {
  accountId: AccountId
  /** Ids below this one. Absent: all ids. */
  below?: number | undefined
  /** The result has only links with more hits. Absent: all links. */
  floor?: number | undefined
  /** The most links of the result. */
  keep: number
}

/** `next`: the id below which the next slice begins; undefined after the last. */
export interface RankedSlice {
  /** Most hits first, then newest first. */
  best: Ranked[]
  next: number | undefined
}

/** Links of one slice: other lists wait for about 5 ms. */
const SLICE = 16_384
/** Ids of one slice of an account that has many of them: about 3 ms. */
const SLICE_IDS = 32_768
/** Such an account has at least one of so many ids between its oldest and its newest link. */
const IDS_PER_LINK = 4

/** Runs on the reader thread. Tests pass small slices. */
export function rankReads(db: Database, { slice = SLICE, sliceIds = SLICE_IDS } = {}) {
  const end = db.prepare<{ id: number }, [AccountId, number, number]>(
    `SELECT id FROM links WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?`,
  )
  const span = db.prepare<{ links: number; oldest: number; newest: number }, [AccountId]>(
    `SELECT link_count AS links,
       (SELECT coalesce(min(id), 0) FROM links WHERE account_id = ?1) AS oldest,
       (SELECT coalesce(max(id), 0) FROM links WHERE account_id = ?1) AS newest
     FROM accounts WHERE id = ?1`,
  )
  // The index of an account's links and the hits are read side by side, both in the order of ids.
  const ofLinks = db.prepare<Ranked, [AccountId, number, number, number, number]>(
    `SELECT links.id, coalesce(hits.count, 0) AS count
     FROM links LEFT JOIN hits ON hits.link_id = links.id
     WHERE links.account_id = ?1 AND links.id < ?2 AND links.id >= ?3
       AND coalesce(hits.count, 0) > ?4
     ORDER BY count DESC, links.id DESC LIMIT ?5`,
  )
  // Ten times as fast where most of the hits are of the account's links.
  const ofHits = db.prepare<Ranked, [AccountId, number, number, number, number]>(
    `SELECT link_id AS id, count FROM hits
     WHERE link_id < ?2 AND link_id >= ?3 AND count > ?4 AND account_id = ?1
     ORDER BY count DESC, link_id DESC LIMIT ?5`,
  )
  const oldestIfDense = (accountId: AccountId): number | undefined => {
    const { links, oldest, newest } = span.get(accountId) ?? { links: 0, oldest: 0, newest: 0 }
    return newest - oldest < links * IDS_PER_LINK ? oldest : undefined
  }
  return {
    /** The links of one slice with the most hits, then those without hits, newest first. */
    rankSlice({ accountId, below = ID_MAX + 1, floor = -1, keep }: RankSlice): RankedSlice {
      return db.transaction(() => {
        // Only links with hits are wanted.
        const oldest = floor < 0 ? undefined : oldestIfDense(accountId)
        if (oldest !== undefined) {
          const from = Math.max(oldest, below - sliceIds)
          const best = ofHits.all(accountId, below, from, floor, keep)
          return { best, next: from > oldest ? from : undefined }
        }
        const next = end.get(accountId, below, slice - 1)?.id
        return { best: ofLinks.all(accountId, below, next ?? 0, floor, keep), next }
      })()
    },
  }
}

export type RankReads = ReturnType<typeof rankReads>
