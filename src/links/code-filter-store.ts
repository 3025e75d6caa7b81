import type { Database } from 'bun:sqlite'
import type { Code } from '../lib/code.ts'
import { CodeFilter } from './code-filter.ts'

export interface FillFilter {
  memory: SharedArrayBuffer
  /** The last code that went in; empty to begin. */
  after: string
  /** Links of one call: bounds how long a list waits behind it. */
  most: number
}

/**
 * Runs on the reader thread. Codes are read in their own order, from their index alone: that is a
 * tenth of the table.
 */
export function codeFilterReads(db: Database) {
  const count = db.prepare<{ links: number }, []>(
    'SELECT coalesce(sum(link_count), 0) AS links FROM accounts',
  )
  const codes = db.prepare<[Code], [string, number]>(
    // A disabled code without a link answers too.
    `SELECT code FROM links WHERE code > ?1
     UNION ALL SELECT code FROM disabled_codes WHERE code > ?1 ORDER BY code LIMIT ?2`,
  )
  return {
    countLinks: (): number => count.get()?.links ?? 0,

    /**
     * Adds the next codes. Returns the code to go on from, null once there are no more: then what
     * the reading took is given back.
     */
    fillFilter({ memory, after, most }: FillFilter): string | null {
      const filter = new CodeFilter(memory)
      const rows = codes.values(after, most) as [Code][]
      for (const [code] of rows) filter.add(code)
      if (rows.length === most) return rows.at(-1)?.[0] ?? null
      db.run('PRAGMA shrink_memory')
      Bun.gc(true)
      return null
    },
  }
}

export type CodeFilterReads = ReturnType<typeof codeFilterReads>
