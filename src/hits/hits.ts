import type { Database } from 'bun:sqlite'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { HitJournal } from '../hot/journal.ts'
import { JournalDamaged, JournalFile, type Stretch } from '../hot/journal-file.ts'
import { type Clock, isoTime, wallClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import { type Bucket, type SeriesQuery, type SeriesReads, STEP_MS } from './series.ts'
import { adoptJournal, findMark, type HitReads, type Mark } from './store.ts'

export const journalFile = (dataDir: string): string => join(dataDir, 'hits.journal')

/**
 * Opens the journal of a data folder and goes on with what an earlier process left in it. Writes
 * to the database only for a new journal: a start on a full disk needs no room. A file that is no
 * whole journal, or the journal of another database, is renamed and replaced, so that its uncounted
 * hits never keep redirects from starting. Throws DataError when the file cannot be opened.
 */
export function openJournal(
  db: Database,
  dataDir: string,
  log: Log,
  entries?: number,
  clock: Clock = wallClock,
): HitJournal {
  const file = journalFile(dataDir)
  const mark = findMark(db)
  const isMissing = !existsSync(file)
  const damage = isMissing ? undefined : findDamage(file, mark)
  if (damage) {
    const renamed = `${file}.damaged-${isoTime(clock()).replace(/[:-]/g, '')}`
    renameSync(file, renamed)
    log.error('hits.journal_damaged', { file, renamed, reason: damage, lost: LOST_HITS })
  }
  const journal = HitJournal.open(file, entries)
  if (mark === undefined || isMissing || damage) {
    if (mark && isMissing) log.warn('hits.journal_missing', { file, lost: LOST_HITS })
    adoptJournal(db, journal.id)
    return journal
  }
  const left = recover(file, mark.position)
  if (left.linkIds.length > 0) log.info('hits.recovered', { hits: left.linkIds.length })
  journal.resume(mark.position, left)
  return journal
}

const LOST_HITS = 'hits not yet counted'

/** Why a journal's hits cannot be counted in this database; undefined when they can. */
function findDamage(path: string, mark: Mark | undefined): string | undefined {
  try {
    using file = JournalFile.open(path)
    if (mark && mark.journalId !== file.id) return 'it belongs to another database'
    return undefined
  } catch (error) {
    if (error instanceof JournalDamaged) return error.reason
    throw error
  }
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
