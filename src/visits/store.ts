import type { Database } from 'bun:sqlite'
import { scan, subject, write } from '../db/subject.ts'
import { ACCOUNT, type CountedLinks, LINK, rowsOf, type Scope } from '../hits/series.ts'
import {
  addSums,
  decodeSums,
  emptySums,
  encodeSums,
  keyLimit,
  sumsOfRow,
  type VisitSums,
} from './parts.ts'
import { isWordOf, kindOf, visitValue } from './values.ts'

/** The details of some links on one UTC day, for one write. */
export interface VisitBatch {
  /** Days since 1970 began. */
  day: number
  /** Ids, each with sums as `encodeSums`. */
  links: readonly (readonly [id: number, parts: Uint8Array])[]
}

export interface AddVisits extends VisitBatch {
  /** The host that answered the redirects; empty for a host alone. */
  host: string
  /** Random: the same batch is added once. */
  batch: string
}

export interface VisitQuery {
  counted: CountedLinks
  /** UTC days since 1970 began, `to` exclusive. */
  from: number
  to: number
  /** Words of codes, whose visits are scans. */
  refs?: readonly string[]
}

/** Scans of a link or an account on a day. */
export interface ScanCount {
  id: number
  day: number
  count: number
}

export interface VisitSlice {
  /** Sums, encoded by `encodeSums`. */
  parts: Uint8Array
  scans: ScanCount[]
  /** The first day that was not read; undefined if all were. */
  next: number | undefined
}

/** Time slice of a call. Calls of other accounts wait for at most one. */
const SLICE_MS = 3
/** About 2 ms for an account with the most values. */
const DAYS_AT_ONCE = 5

/** Details of redirects. */
export const visits = subject({
  scans: {
    /** The sums of the first days, as many as fit a time slice, without rows that are damaged. */
    sums: scan((db) => {
      const read = sumReader(db)
      return (query: VisitQuery) => read(query, endOfSlice())
    }),
  },

  writes: {
    /**
     * Adds details of redirects to the rows of their links and accounts. Details of deleted links
     * are dropped. Adds nothing for the last batch of a host once more. Returns the number of
     * damaged rows: each is replaced, because no later batch could be added to it either. In a
     * cluster, a row that is damaged on one host only differs afterwards: `hashRows` notices that.
     */
    add: write(visitAdder),
  },
})

/** Reads sums until `isOver`. */
export function sumReader(db: Database) {
  const rows = db.prepare<{ day: number; parts: Uint8Array }, [Scope, number, number, number]>(
    `SELECT day, parts FROM hit_days
     WHERE scope = ? AND id = ? AND day >= ? AND day < ? AND parts IS NOT NULL`,
  )
  return ({ counted, from, to, refs = [] }: VisitQuery, isOver: () => boolean): VisitSlice => {
    const total = emptySums()
    const scans: ScanCount[] = []
    let day = from
    while (day < to) {
      const end = Math.min(to, day + DAYS_AT_ONCE)
      for (const [scope, id] of rowsOf(counted)) {
        const found = rows.all(scope, id, day, end)
        for (const row of found) {
          const sums = sumsOfRow(row) ?? emptySums()
          addSums(total, sums)
          let count = 0
          for (const [key, n] of sums.counts) {
            if (kindOf(key) === 'scan' && isWordOf(refs, visitValue(key))) count += n
          }
          if (count > 0) scans.push({ id, day: row.day, count })
        }
      }
      day = end
      if (isOver()) break
    }
    return { parts: encodeSums(total), scans, next: day < to ? day : undefined }
  }
}

function endOfSlice(): () => boolean {
  const endsAt = performance.now() + SLICE_MS
  return () => performance.now() >= endsAt
}

function visitAdder(db: Database) {
  const addToRow = rowAdder(db)
  const lastBatch = db.prepare<{ batch: string }, [string]>(
    'SELECT batch FROM visit_batches WHERE host = ?',
  )
  const setBatch = db.prepare<null, [string, string]>(
    `INSERT INTO visit_batches (host, batch) VALUES (?1, ?2)
     ON CONFLICT (host) DO UPDATE SET batch = ?2`,
  )
  // Most links have a row in `hits`, which is in fewer pages.
  const accountOf = db.prepare<{ accountId: number | null }, [number]>(
    `SELECT coalesce((SELECT account_id FROM hits WHERE link_id = ?1),
                     (SELECT account_id FROM links WHERE id = ?1)) AS accountId`,
  )
  return ({ host, batch, day, links }: AddVisits): { damaged: number } => {
    if (lastBatch.get(host)?.batch === batch) return { damaged: 0 }
    setBatch.run(host, batch)
    let damaged = 0
    const byAccount = new Map<number, VisitSums>()
    for (const [linkId, parts] of links) {
      const accountId = accountOf.get(linkId)?.accountId
      if (typeof accountId !== 'number') continue
      if (!addToRow(LINK, linkId, day, parts)) damaged++
      byAccount.set(accountId, decodeSums(parts, byAccount.get(accountId)))
    }
    for (const [accountId, sums] of byAccount) {
      if (!addToRow(ACCOUNT, accountId, day, encodeSums(sums))) damaged++
    }
    return { damaged }
  }
}

/** The returned function returns whether the row was intact. */
function rowAdder(db: Database) {
  const find = db.prepare<{ parts: Uint8Array | null }, [Scope, number, number]>(
    'SELECT parts FROM hit_days WHERE scope = ? AND id = ? AND day = ?',
  )
  const set = db.prepare<null, [Scope, number, number, Uint8Array]>(
    `INSERT INTO hit_days (scope, id, day, count, parts) VALUES (?1, ?2, ?3, 0, ?4)
     ON CONFLICT DO UPDATE SET parts = ?4`,
  )
  return (scope: Scope, id: number, day: number, parts: Uint8Array): boolean => {
    const known = find.get(scope, id, day)?.parts
    // The first ones of the day are stored as they came.
    if (!known) {
      set.run(scope, id, day, parts)
      return true
    }
    const stored = sumsOfRow({ parts: known })
    const total = stored ?? emptySums()
    addSums(total, decodeSums(parts), keyLimit(total.counts, scope === LINK ? 'link' : 'account'))
    set.run(scope, id, day, encodeSums(total))
    return stored !== undefined
  }
}

/** Removes the days of a deleted link: its hits by day, and their details. */
export function dayRemover(db: Database): (linkId: number) => void {
  const remove = db.prepare<null, [number]>(`DELETE FROM hit_days WHERE scope = ${LINK} AND id = ?`)
  return (linkId) => void remove.run(linkId)
}
