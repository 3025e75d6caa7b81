import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { prepareAddressed } from '../addresses/names.ts'
import { scan } from '../db/subject.ts'
import { LINK_COLUMNS, type Link } from './link.ts'

/** All links of an account, piece by piece, for exports. */

export interface Piece {
  accountId: AccountId
  /** Ids below this one. */
  below: number
}

export interface ExportedRows {
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
