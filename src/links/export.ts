import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { Caller } from '../lib/thread.ts'
import { LINK_COLUMNS, type Link } from './link.ts'

interface ExportDeps {
  reader: Caller<ExportReads>
  hits: Pick<HitCounts, 'of'>
}

export type ExportedLink = Link & { hitCount: number }

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

interface Piece {
  accountId: AccountId
  /** Ids below this one; every id where it is absent. */
  below?: number | undefined
}

interface ExportedRows {
  links: Link[]
  /** No further link follows. */
  isLast: boolean
}

const NO_ID_REACHES = 2 ** 32
/** Links of one piece: about 2 ms of the reader thread, and as much of the one that asks. */
const LINKS_MAX = 500
const LINKS_PER_STATEMENT = 50
/** A piece ends past so many characters of URLs: it is in memory while its reader does not read. */
const URL_LENGTHS_MAX = 256 * 1024

/** Runs on the reader thread. */
export function exportReads(db: Database) {
  const next = db.prepare<Link, [AccountId, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  )
  return {
    /** The next links of an account, newest first. */
    linksBelow({ accountId, below = NO_ID_REACHES }: Piece): ExportedRows {
      const links: Link[] = []
      let length = 0
      while (links.length < LINKS_MAX && length < URL_LENGTHS_MAX) {
        const lowest = links.at(-1)?.id ?? below
        const found = next.all(accountId, lowest, LINKS_PER_STATEMENT)
        links.push(...found)
        for (const { url } of found) length += url?.length ?? 0
        if (found.length < LINKS_PER_STATEMENT) return { links, isLast: true }
      }
      return { links, isLast: false }
    },
  }
}

export type ExportReads = ReturnType<typeof exportReads>
