import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkRow } from './row.ts'
import type { Ranked, TopReads } from './top-store.ts'

/** The deepest place that is told: `offset` and `limit` together. Pages beyond it are empty. */
export const TOP_MAX = 10_000

export type TopLink = LinkRow & { hitCount: number }

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
