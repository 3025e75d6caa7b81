import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { prepareAddressed } from '../addresses/names.ts'
import { type ScanCalls, scan } from '../db/subject.ts'
import type { history } from '../history/subject.ts'
import type { Kit } from '../links/kit.ts'
import { LINK_COLUMNS, type Link } from '../links/link.ts'
import { type DetailedLink, withDetails } from '../links/properties.ts'
import { ID_MAX } from './count-index.ts'
import { isFiltered, type LinkFilter } from './link-sources.ts'
import type { LinkPages } from './lists.ts'

/** All links of an account, piece by piece, for exports. */

interface Piece {
  accountId: AccountId
  /** Ids below this one. */
  below: number
}

interface ExportedRows {
  links: Link[]
  /** No link follows. */
  isLast: boolean
}

/** Links of one piece: about 2 ms of the reader thread and of the control thread. */
const LINKS_MAX = 250
const LINKS_PER_STATEMENT = 50
/** A piece ends after this many characters of URLs: it stays in memory until it was sent. */
const URL_LENGTHS_MAX = 256 * 1024

export const exportScans = {
  /** The next links of an account, newest first. */
  below: scan((db) => {
    const read = piecesOf(db, 'id < ? ORDER BY id DESC')
    return ({ accountId, below }: Piece) => read(accountId, below)
  }),

  /** The next links of an account, oldest first. */
  above: scan((db) => {
    const read = piecesOf(db, 'id > ? ORDER BY id')
    return (piece: { accountId: AccountId; above: number }) => read(piece.accountId, piece.above)
  }),
}

function piecesOf(db: Database, range: string) {
  const next = prepareAddressed<Link, [AccountId, number, number]>(
    db,
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? AND ${range} LIMIT ?`,
  )
  return (accountId: AccountId, start: number): ExportedRows => {
    const links: Link[] = []
    let length = 0
    while (links.length < LINKS_MAX && length < URL_LENGTHS_MAX) {
      const found = next.all(accountId, links.at(-1)?.id ?? start, LINKS_PER_STATEMENT)
      links.push(...found)
      for (const { url } of found) length += url?.length ?? 0
      if (found.length < LINKS_PER_STATEMENT) return { links, isLast: true }
    }
    return { links, isLast: false }
  }
}

/** What lists and exports use. */
export type ListKit = Kit & {
  data: {
    lists: ScanCalls<typeof exportScans>
    history: ScanCalls<(typeof history)['scans']>
  }
  pages: Pick<LinkPages, 'findPage'>
}

/**
 * Every link of an account that the filter selects, newest first, in pieces that are read on
 * demand. Contains each link that exists during the whole export once, and without a filter no link
 * that is created meanwhile. Throws `search_timeout`.
 */
export async function* exportLinks(
  deps: ListKit,
  accountId: AccountId,
  filter: LinkFilter,
): AsyncGenerator<DetailedLink[], void, undefined> {
  let below = ID_MAX + 1
  for (;;) {
    const { links, isLast } = await nextPiece(deps, { ...filter, accountId, below })
    yield withDetails(deps, links)
    if (isLast) return
    below = links.at(-1)?.id ?? 0
  }
}

/** The next links of an account after the id `above`, oldest first. */
export async function exportPiece(
  deps: ListKit,
  about: { accountId: AccountId; above: number },
): Promise<{ links: DetailedLink[]; next: number | undefined }> {
  const { links, isLast } = await deps.data.lists.above(about, { background: true })
  return { links: withDetails(deps, links), next: isLast ? undefined : links.at(-1)?.id }
}

async function nextPiece(
  { data, pages }: ListKit,
  query: Piece & LinkFilter,
): Promise<ExportedRows> {
  if (!isFiltered(query)) {
    const { accountId, below } = query
    // A background read, because lists for pages run first.
    return data.lists.below({ accountId, below }, { background: true })
  }
  const { links } = await pages.findPage({ ...query, limit: MATCHES_MAX, offset: 0 })
  return { links, isLast: links.length < MATCHES_MAX }
}

/** Links of one page of matches. */
const MATCHES_MAX = 50
