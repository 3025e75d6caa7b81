import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import { LINK_COLUMNS, type Link } from './link.ts'

/** The deepest place that is told: `offset` and `limit` together. Pages beyond it are empty. */
export const TOP_MAX = 10_000

export type TopLink = Link & { hitCount: number }

interface TopDeps {
  reader: Caller<TopReads>
  hits: Pick<HitCounts, 'of'>
}

interface TopQuery {
  accountId: AccountId
  limit: number
  offset: number
}

/**
 * One page of the account's links: the most followed first, links of equal hits newest first. The
 * order is that of the counts committed while it was read, slice by slice; `hitCount` is newer.
 */
export async function topLinks({ reader, hits }: TopDeps, query: TopQuery): Promise<TopLink[]> {
  const { accountId, limit, offset } = query
  const keep = Math.min(offset + limit, TOP_MAX)
  if (offset >= keep) return []
  let best: Ranked[] = []
  let below: number | undefined
  do {
    const floor = best.length === keep ? best.at(-1)?.count : undefined
    const slice = await reader.call('rankSlice', { accountId, below, floor, keep })
    best = merged(best, slice.best).slice(0, keep)
    below = slice.next
  } while (below !== undefined)

  const ids = best.slice(offset).map(({ id }) => id)
  const found = await reader.call('linksByIds', { ids })
  const links = new Map(found.map((link) => [link.id, link]))
  const counts = hits.of(ids)
  return ids.flatMap((id) => {
    const link = links.get(id)
    return link ? { ...link, hitCount: counts.get(id) ?? 0 } : []
  })
}

/** The most followed first; of equal counts, the newest. */
function merged(newer: readonly Ranked[], older: readonly Ranked[]): Ranked[] {
  if (older.length === 0) return [...newer]
  return [...newer, ...older].sort((a, b) => b.count - a.count || b.id - a.id)
}

interface Ranked {
  id: number
  /** Hits that are committed. */
  count: number
}

/** The next links of an account, newest first, of which only those above `floor` matter. */
interface RankSlice {
  accountId: AccountId
  /** Ids below this one; every id where it is absent. */
  below?: number | undefined
  /** Counts that are too low to matter: these and lower ones. Absent while every link does. */
  floor?: number | undefined
  /** The most that can matter. */
  keep: number
}

/** `next`: where the next slice begins; undefined after the last. */
interface RankedSlice {
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
  const byIds = db.prepare<Link, [string]>(
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
    linksByIds: ({ ids }: { ids: readonly number[] }): Link[] => byIds.all(JSON.stringify(ids)),
  }
}

export type TopReads = ReturnType<typeof topReads>
