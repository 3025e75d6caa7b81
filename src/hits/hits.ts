import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../db/data-error.ts'
import { inTransaction } from '../db/open.ts'
import { type Clock, wallClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import { HitJournal } from './journal.ts'
import { JournalFile, type Stretch } from './journal-file.ts'
import { type Bucket, type SeriesQuery, type SeriesReads, STEP_MS } from './series.ts'
import { adoptJournal, findMark, type HitReads, hitAdder } from './store.ts'

export const journalFile = (dataDir: string): string => join(dataDir, 'hits.journal')

/**
 * Opens the journal of a data folder and counts what an earlier process left in it, in one
 * transaction with the new position, as hits of the hour that `clock` tells. Throws DataError when
 * the file is not this database's.
 */
export function openJournal(
  db: Database,
  dataDir: string,
  log: Log,
  entries?: number,
  clock: Clock = wallClock,
): HitJournal {
  const file = journalFile(dataDir)
  const missing = !existsSync(file)
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
  const left = recover(file, mark.position)
  inTransaction(db, () => hitAdder(db, clock)(left))
  if (left.linkIds.length > 0) log.info('hits.recovered', { hits: left.linkIds.length })
  journal.resume(left.end)
  return journal
}

function recover(path: string, position: number): Stretch {
  using file = JournalFile.open(path)
  return file.recover(position)
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

interface HitSeriesOptions {
  reader: Caller<SeriesReads>
  counts: HitCounts
  clock: Clock
}

/** Hits of each UTC hour or day. Every array has a bucket for each, those without hits too. */
export class HitSeries {
  readonly #options: HitSeriesOptions

  constructor(options: HitSeriesOptions) {
    this.#options = options
  }

  /**
   * Hits that are not counted yet are in the current bucket: where the series reaches it, the
   * buckets since the link's first hit add up to its `hit_count`.
   */
  async ofLink(linkId: number, query: SeriesQuery): Promise<Bucket[]> {
    const { reader, counts, clock } = this.#options
    const now = clock()
    const { buckets, committed } = await reader.call('linkSeries', { ...query, linkId, now })
    const last = buckets.at(-1)
    const pending = (counts.of([linkId]).get(linkId) ?? 0) - committed
    // Less than was committed: the link is gone since.
    if (last && pending > 0 && now < last.start + STEP_MS[query.step]) last.count += pending
    return buckets
  }

  /** Of all the account's links, those deleted since included. As old as the last flush. */
  async ofAccount(accountId: number, query: SeriesQuery): Promise<Bucket[]> {
    const { reader, clock } = this.#options
    const asked = { ...query, accountId, now: clock() }
    return (await reader.call('accountSeries', asked)).buckets
  }
}
