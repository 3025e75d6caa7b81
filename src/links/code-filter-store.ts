import type { Database } from 'bun:sqlite'
import type { Code } from './code.ts'
import { CodeFilter } from './code-filter.ts'

export interface FillFilter {
  memory: SharedArrayBuffer
  /** The id of the last link that went in; 0 to begin. */
  after: number
  /** Links of one call: bounds how long a list waits behind it. */
  most: number
}

/** Runs on the reader thread: it reads every code once. */
export function codeFilterReads(db: Database) {
  const count = db.prepare<{ links: number }, []>(
    'SELECT coalesce(sum(link_count), 0) AS links FROM accounts',
  )
  const codes = db.prepare<[number, Code], [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  return {
    countLinks: (): number => count.get()?.links ?? 0,

    /** Adds the next codes. Returns the id to go on from, null once there are no more. */
    fillFilter({ memory, after, most }: FillFilter): number | null {
      const filter = new CodeFilter(memory)
      const rows = codes.values(after, most) as [number, Code][]
      for (const [, code] of rows) filter.add(code)
      return rows.length < most ? null : (rows.at(-1)?.[0] ?? null)
    },
  }
}

export type CodeFilterReads = ReturnType<typeof codeFilterReads>
