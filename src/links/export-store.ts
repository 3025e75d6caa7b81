import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'

interface Piece {
  accountId: AccountId
  /** Ids below this one; every id where it is absent. */
  below?: number | undefined
  limit: number
}

const NO_ID_REACHES = 2 ** 32

/** Runs on the reader thread. */
export function exportReads(db: Database) {
  const next = db.prepare<LinkRow, [AccountId, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  )
  return {
    /** The next links of an account, newest first; fewer than `limit` at its end. */
    linksBelow: ({ accountId, below = NO_ID_REACHES, limit }: Piece): LinkRow[] =>
      next.all(accountId, below, limit),
  }
}

export type ExportReads = ReturnType<typeof exportReads>
