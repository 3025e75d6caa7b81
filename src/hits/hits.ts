import type { Database } from 'bun:sqlite'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { HitJournal } from '../hot/journal.ts'
import { JournalDamaged, JournalFile } from '../hot/journal-file.ts'
import { type Clock, fileTime, wallClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { adoptJournal, findJournalPosition, type hitReads, type JournalPosition } from './store.ts'

export const journalFile = (dataDir: string): string => join(dataDir, 'hits.journal')

/**
 * Opens the journal of a data folder and continues with the hits that an earlier process left in
 * it. Writes to the database only for a new journal: a start on a full disk needs no space. A
 * damaged journal, or the journal of another database, is renamed and replaced: redirects start
 * without its uncounted hits. Throws DataError when the file cannot be opened.
 */
export function openJournal(
  db: Database,
  dataDir: string,
  log: Log,
  entries?: number,
  clock: Clock = wallClock,
): HitJournal {
  const file = journalFile(dataDir)
  const committed = findJournalPosition(db)
  const isMissing = !existsSync(file)
  const damage = isMissing ? undefined : findDamage(file, committed)
  if (damage) {
    const renamed = `${file}.damaged-${fileTime(clock())}`
    renameSync(file, renamed)
    log.error('hits.journal_damaged', { file, renamed, reason: damage, lost: LOST_HITS })
  }
  const journal = HitJournal.open(file, entries)
  if (committed === undefined || isMissing || damage) {
    if (committed && isMissing) log.warn('hits.journal_missing', { file, lost: LOST_HITS })
    adoptJournal(db, journal.id)
    return journal
  }
  const left = recover(file, committed.position)
  if (left.length > 0) log.info('hits.recovered', { hits: left.length })
  journal.resume(committed.position, left)
  return journal
}

const LOST_HITS = 'hits not yet counted'

/** Why a journal's hits cannot be counted in this database; undefined when they can. */
function findDamage(path: string, committed: JournalPosition | undefined): string | undefined {
  try {
    using file = JournalFile.open(path)
    const isOwn = !committed || committed.journalId === file.id
    return isOwn ? undefined : 'it belongs to another database'
  } catch (error) {
    if (error instanceof JournalDamaged) return error.reason
    throw error
  }
}

function recover(path: string, position: number): Uint32Array {
  using file = JournalFile.open(path)
  return file.recover(position)
}

/**
 * Current totals: committed counts plus pending journal entries, with no hit missed or counted
 * twice.
 */
export class HitCounts {
  readonly #reads: ReturnType<typeof hitReads>
  readonly #journal: HitJournal

  constructor(reads: ReturnType<typeof hitReads>, journal: HitJournal) {
    this.#reads = reads
    this.#journal = journal
  }

  /** `hit_count` of each link, including every redirect served before this call. */
  of(linkIds: readonly number[]): Map<number, number> {
    const committed = this.#reads.counts(linkIds)
    const totals = this.#journal.countFrom(committed[0]?.position ?? 0, linkIds)
    for (const { id, count } of committed) totals.set(id, (totals.get(id) ?? 0) + count)
    return totals
  }

  /** `hit_count` of one link. */
  ofLink(id: number): number {
    return this.of([id]).get(id) ?? 0
  }

  /** Every redirect ever served, including those of deleted codes. */
  total(): number {
    const { redirects, position } = this.#reads.totals()
    return redirects + this.#journal.totalFrom(position)
  }
}
