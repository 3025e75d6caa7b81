import type { Database } from 'bun:sqlite'
import type { Caller } from '../lib/thread.ts'
import { LINK_COLUMNS, type Link } from './link.ts'
import type { AccountFilter } from './link-sources.ts'
import { rankReads } from './ranked.ts'
import { type Rankings, TOP_MAX } from './rankings.ts'

interface TopDeps {
  reader: Caller<Pick<TopReads, 'linksByIds'>>
  rankings: Rankings
}

interface TopQuery extends AccountFilter {
  limit: number
  offset: number
}

/**
 * One page of the account's links, or of those that match: most hits first, then newest first, up
 * to the rank `TOP_MAX`. Throws `search_timeout`, also when `signal` is aborted.
 */
export async function topLinks(
  { reader, rankings }: TopDeps,
  { limit, offset, ...query }: TopQuery,
  signal?: AbortSignal,
): Promise<Link[]> {
  const end = Math.min(offset + limit, TOP_MAX)
  if (offset >= end) return []
  const readPage = async () => {
    const ranked = await rankings.find(query, end, signal)
    const ids = ranked.slice(offset, end).map(({ id }) => id)
    return { ids, found: await reader.call('linksByIds', { ids }) }
  }
  let { ids, found } = await readPage()
  if (found.length < ids.length) {
    rankings.drop(query)
    ;({ ids, found } = await readPage())
  }
  const links = new Map(found.map((link) => [link.id, link]))
  return ids.flatMap((id) => links.get(id) ?? [])
}

/** Runs on the reader thread. */
export function topReads(db: Database, sizes: Parameters<typeof rankReads>[1] = {}) {
  const byIds = db.prepare<Link, [string]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))`,
  )
  return {
    ...rankReads(db, sizes),

    /** In no order, without those that were deleted. */
    linksByIds: ({ ids }: { ids: readonly number[] }): Link[] => byIds.all(JSON.stringify(ids)),
  }
}

export type TopReads = ReturnType<typeof topReads>
