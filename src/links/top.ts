import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import { LINK_COLUMNS, type Link } from './link.ts'
import { isFiltered, type LinkFilter } from './link-sources.ts'
import { type LinkLists, SEARCH_DEADLINE_MS, searchTimeout } from './lists.ts'
import type { Ranked, RankedSlice } from './ranked.ts'

/** The last rank: `offset` and `limit` together. Pages after it are empty. */
export const TOP_MAX = 10_000

export type TopLink = Link & { hitCount: number }

interface TopDeps {
  reader: Caller<TopReads & Pick<LinkLists, 'rankMatchesSlice'>>
  hits: Pick<HitCounts, 'of'>
}

interface TopQuery extends LinkFilter {
  accountId: AccountId
  limit: number
  offset: number
}

/**
 * One page of the account's links, or of those that match: most hits first, then newest first. The
 * order is that of the counts that were committed when each slice was read; `hitCount` is newer.
 * Throws `search_timeout`, also when `signal` is aborted.
 */
export async function topLinks(
  { reader, hits }: TopDeps,
  { limit, offset, ...filter }: TopQuery,
  signal?: AbortSignal,
): Promise<TopLink[]> {
  const keep = Math.min(offset + limit, TOP_MAX)
  if (offset >= keep) return []
  let best: Ranked[] = []
  let below: number | undefined
  do {
    const floor = best.length === keep ? best.at(-1)?.count : undefined
    const part = { ...filter, below, floor, keep }
    const slice = isFiltered(filter)
      ? await rankMatches(reader, part, signal)
      : await reader.call('rankSlice', part)
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

async function rankMatches(
  reader: TopDeps['reader'],
  part: RankSlice & LinkFilter,
  signal: AbortSignal | undefined,
): Promise<RankedSlice> {
  const endsAt = performance.now() + SEARCH_DEADLINE_MS
  while (performance.now() < endsAt && !signal?.aborted) {
    const slice = await reader.call('rankMatchesSlice', part, { background: true })
    if (slice) return slice
  }
  throw searchTimeout()
}

/** Most hits first, then newest first. */
function merged(newer: readonly Ranked[], older: readonly Ranked[]): Ranked[] {
  if (older.length === 0) return [...newer]
  return [...newer, ...older].sort((a, b) => b.count - a.count || b.id - a.id)
}

/** The next links of an account, newest first; only those above `floor` count. */
interface RankSlice {
  accountId: AccountId
  /** Ids below this one. Absent: all ids. */
  below?: number | undefined
  /** The result has only links with more hits. Absent: all links. */
  floor?: number | undefined
  /** The most links of the result. */
  keep: number
}

/** Links of one slice: some 2 ms, for which other lists wait. */
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
    /** The links of one slice with the most hits, then those without hits, newest first. */
    rankSlice({ accountId, below = NO_ID_REACHES, floor = -1, keep }: RankSlice): RankedSlice {
      return db.transaction(() => {
        const next = end.get(accountId, below, slice - 1)?.id
        return { best: best.all(accountId, below, next ?? 0, floor, keep), next }
      })()
    },

    /** In no order, without those that were deleted. */
    linksByIds: ({ ids }: { ids: readonly number[] }): Link[] => byIds.all(JSON.stringify(ids)),
  }
}

export type TopReads = ReturnType<typeof topReads>
