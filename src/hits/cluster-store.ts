import type { Database } from 'bun:sqlite'
import type { WriterHost } from '../db/subject.ts'
import type { JournalFile } from '../hot/journal-file.ts'
import type { Call, Outcome } from '../lib/thread.ts'
import { recentHits } from './recent.ts'
import { commitRange, countAdder, findJournalPosition, positionSetter } from './store.ts'

/** Hits of one host's journal, as all hosts of a cluster count them. */
interface AddHits {
  host: string
  journalId: string
  /** Positions in that journal. */
  from: number
  end: number
  /** The hits belong to the hour of this time. */
  now: number
  /** `HitCountPairs`, little-endian. */
  counts: Uint8Array
}

/**
 * Counts hits of any host. False, and nothing is counted, unless they follow those counted of this
 * journal.
 */
export function clusterHitAdder(db: Database, { id: ownHost }: WriterHost) {
  const addCounts = countAdder(db, recentHits(db))
  const setOwnPosition = positionSetter(db)
  const setPosition = db.prepare<null, [string, string, number]>(
    `INSERT INTO hit_positions (host, journal_id, position) VALUES (?1, ?2, ?3)
     ON CONFLICT (host, journal_id) DO UPDATE SET position = ?3`,
  )
  return ({ host, journalId, from, end, now, counts }: AddHits): boolean => {
    if (countedOf(db, host, journalId) !== from) return false
    // A copy, because the bytes may begin at an odd address.
    addCounts(new Uint32Array(counts.slice().buffer), now)
    setPosition.run(host, journalId, end)
    if (host === ownHost && findJournalPosition(db)?.journalId === journalId) setOwnPosition(end)
    return true
  }
}

export interface PreparedCall {
  /** Undefined if nothing is to be done. */
  call: Call | undefined
  /** Converts the result for the caller. */
  toResult: (outcome: Outcome) => Outcome
}

/** The form of calls in the log: a flush of hits contains what it counts. */
export function hitCalls(db: Database, journal: Pick<JournalFile, 'read' | 'id'>, host: string) {
  return (call: Call): PreparedCall => {
    if (call.name !== 'hits.count') return { call, toResult: (outcome) => outcome }
    const { end, now } = call.args as { end: number; now: number }
    const from = findJournalPosition(db)?.position ?? end
    if (end <= from) return { call: undefined, toResult: () => ({ value: { end, lost: 0 } }) }
    const { counts: pairs, ...counted } = commitRange(journal, from, end)
    const counts = new Uint8Array(pairs.buffer, pairs.byteOffset, pairs.byteLength)
    const args: AddHits = { host, journalId: journal.id, from, end: counted.end, now, counts }
    return {
      call: { name: 'hits.add', args },
      toResult: (outcome) => {
        if ('error' in outcome) return outcome
        if (!outcome.value) return { error: 'the hits are counted already' }
        return { value: counted }
      },
    }
  }
}

/** Up to which position the cluster has counted the hits of a host's journal. */
export function countedOf(db: Database, host: string, journalId: string): number {
  const row = db
    .query<{ position: number }, [string, string]>(
      'SELECT position FROM hit_positions WHERE host = ? AND journal_id = ?',
    )
    .get(host, journalId)
  return row?.position ?? 0
}

/** For a folder that joins a cluster with counted hits of its own journal. */
export function recordOwnPosition(db: Database, host: string): void {
  db.query(
    `INSERT OR REPLACE INTO hit_positions (host, journal_id, position)
     SELECT ?, journal_id, position FROM hit_totals WHERE id = 1`,
  ).run(host)
}
