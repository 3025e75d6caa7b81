import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import type { ExportReads } from './export-store.ts'
import type { LinkRow } from './row.ts'

/** Links of one piece: about 2 ms of the reader thread, and as much of this one. */
const PIECE = 500

interface ExportDeps {
  reader: Caller<ExportReads>
  hits: Pick<HitCounts, 'of'>
}

export type ExportedLink = LinkRow & { hitCount: number }

/**
 * Every link of an account, newest first, piece by piece: the next one is read when it is asked
 * for. Each link that is there from beginning to end is given once; one that is made meanwhile is
 * not.
 */
export async function* exportLinks(
  { reader, hits }: ExportDeps,
  accountId: AccountId,
): AsyncGenerator<ExportedLink[], void, undefined> {
  let below: number | undefined
  do {
    // Behind whoever waits for a page.
    const piece = { accountId, below, limit: PIECE }
    const links = await reader.call('linksBelow', piece, { background: true })
    const counts = hits.of(links.map(({ id }) => id))
    yield links.map((link) => ({ ...link, hitCount: counts.get(link.id) ?? 0 }))
    below = links.length === PIECE ? links.at(-1)?.id : undefined
  } while (below !== undefined)
}
