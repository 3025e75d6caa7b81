import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import type { ExportReads } from './export-store.ts'
import type { LinkRow } from './row.ts'

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
  for (;;) {
    // Background: a list that a page waits for goes first.
    const piece = { accountId, below }
    const { links, isLast } = await reader.call('linksBelow', piece, { background: true })
    const counts = hits.of(links.map(({ id }) => id))
    yield links.map((link) => ({ ...link, hitCount: counts.get(link.id) ?? 0 }))
    if (isLast) return
    below = links.at(-1)?.id
  }
}
