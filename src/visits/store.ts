import type { Database } from 'bun:sqlite'
import { scan, subject, write } from '../db/subject.ts'
import { ACCOUNT, type CountedLinks, LINK } from '../hits/series.ts'
import {
  addSums,
  decodeSums,
  emptySums,
  encodeSums,
  keyLimit,
  sumsOfRow,
  type VisitSums,
} from './parts.ts'

type Scope = typeof LINK | typeof ACCOUNT

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
}

export interface VisitSlice {
  /** Sums, encoded by `encodeSums`. */
  parts: Uint8Array
  /** The first day that was not read; undefined if all were. */
  next: number | undefined
}

/** Time slice of a call. Calls of other accounts wait for at most one. */
const SLICE_MS = 3
/** About 2 ms for an account with the most values. */
const DAYS_AT_ONCE = 5

/** Details of redirects. */
export const visits = subject({
  forget: [`DELETE FROM visits_by_day WHERE scope = ${ACCOUNT} AND id = ?1`],

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
    add: write({ prepare: visitAdder }),
  },
})

function rowsOf(counted: CountedLinks): [Scope, id: number][] {
  if ('linkIds' in counted) return counted.linkIds.map((id) => [LINK, id])
  return ['linkId' in counted ? [LINK, counted.linkId] : [ACCOUNT, counted.accountId]]
}

/** Reads sums until `isOver`. */
export function sumReader(db: Database) {
  const rows = db.prepare<{ parts: Uint8Array }, [Scope, number, number, number]>(
    'SELECT parts FROM visits_by_day WHERE scope = ? AND id = ? AND day >= ? AND day < ?',
  )
  return ({ counted, from, to }: VisitQuery, isOver: () => boolean): VisitSlice => {
    const total = emptySums()
    let day = from
    while (day < to) {
      const end = Math.min(to, day + DAYS_AT_ONCE)
      for (const [scope, id] of rowsOf(counted)) {
        const found = rows.all(scope, id, day, end)
        for (const row of found) addSums(total, sumsOfRow(row) ?? emptySums())
      }
      day = end
      if (isOver()) break
    }
    return { parts: encodeSums(total), next: day < to ? day : undefined }
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
  const accountOf = db.prepare<{ accountId: number }, [number]>(
    'SELECT account_id AS accountId FROM links WHERE id = ?',
  )
  return ({ host, batch, day, links }: AddVisits): { damaged: number } => {
    if (lastBatch.get(host)?.batch === batch) return { damaged: 0 }
    setBatch.run(host, batch)
    let damaged = 0
    const byAccount = new Map<number, VisitSums>()
    for (const [linkId, parts] of links) {
      const accountId = accountOf.get(linkId)?.accountId
      if (accountId === undefined) continue
      const sums = decodeSums(parts)
      if (!addToRow(LINK, linkId, day, sums)) damaged++
      const ofAccount = byAccount.get(accountId) ?? emptySums()
      addSums(ofAccount, sums)
      byAccount.set(accountId, ofAccount)
    }
    for (const [accountId, sums] of byAccount) {
      if (!addToRow(ACCOUNT, accountId, day, sums)) damaged++
    }
    return { damaged }
  }
}

/** The returned function returns whether the row was intact. */
function rowAdder(db: Database) {
  const find = db.prepare<{ parts: Uint8Array }, [Scope, number, number]>(
    'SELECT parts FROM visits_by_day WHERE scope = ? AND id = ? AND day = ?',
  )
  const set = db.prepare<null, [Scope, number, number, Uint8Array]>(
    `INSERT INTO visits_by_day (scope, id, day, parts) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (scope, id, day) DO UPDATE SET parts = ?4`,
  )
  return (scope: Scope, id: number, day: number, sums: VisitSums): boolean => {
    const row = find.get(scope, id, day)
    const stored = row ? sumsOfRow(row) : emptySums()
    const total = stored ?? emptySums()
    addSums(total, sums, keyLimit(total.counts, scope === LINK ? 'link' : 'account'))
    set.run(scope, id, day, encodeSums(total))
    return stored !== undefined
  }
}

/** Removes the details of a deleted link. */
export function visitRemover(db: Database): (linkId: number) => void {
  const remove = db.prepare<null, [number]>(
    `DELETE FROM visits_by_day WHERE scope = ${LINK} AND id = ?`,
  )
  return (linkId) => void remove.run(linkId)
}
