import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { DataError } from '../db/data-error.ts'
import { inTransaction } from '../db/open.ts'
import type { Log } from '../lib/log.ts'
import { HitJournal } from './journal.ts'
import { adoptJournal, findMark, type HitReads, hitAdder } from './store.ts'

export const journalFile = (dataDir: string): string => join(dataDir, 'hits.journal')

/**
 * Opens the journal of a data folder and counts what an earlier process left in it, in one
 * transaction with the new position. Throws DataError when the file is not this database's.
 */
export function openJournal(db: Database, dataDir: string, log: Log, entries?: number): HitJournal {
  const file = journalFile(dataDir)
  const missing = !Bun.file(file).size
  const journal = HitJournal.open(file, entries)
  const mark = findMark(db)
  if (mark === undefined || missing) {
    if (mark) log.warn('hits.journal_missing', { file, lost: 'hits not yet counted' })
    adoptJournal(db, journal.id)
    return journal
  }
  if (mark.journalId !== journal.id) {
    throw new DataError(
      `${file} belongs to another database. Put the right one in its place, or move it away: the ` +
        'service then starts a new one, and the hits it held are not counted.',
    )
  }
  const left = journal.recover(mark.position)
  inTransaction(db, () => hitAdder(db)(left))
  if (left.linkIds.length > 0) log.info('hits.recovered', { hits: left.linkIds.length })
  journal.resume(left.end)
  return journal
}

/**
 * What answers say: committed counts and the journal's, read so that no hit is missed or told
 * twice.
 */
export class HitCounts {
  readonly #reads: HitReads
  readonly #journal: HitJournal

  constructor(reads: HitReads, journal: HitJournal) {
    this.#reads = reads
    this.#journal = journal
  }

  /** `hit_count` of each link, every redirect served before this call included. */
  of(linkIds: readonly number[]): Map<number, number> {
    const committed = this.#reads.counts(linkIds)
    const totals = this.#journal.countFrom(committed[0]?.position ?? 0, linkIds)
    for (const { id, count } of committed) totals.set(id, (totals.get(id) ?? 0) + count)
    return totals
  }

  /** Every redirect ever served, those of deleted codes included. */
  total(): number {
    const { redirects, position } = this.#reads.totals()
    return redirects + this.#journal.totalFrom(position)
  }
}
