import type { Database } from 'bun:sqlite'
import type { WriterHost } from '../db/subject.ts'
import type { JournalFile, JournalRange } from '../hot/journal-file.ts'
import { assert } from '../lib/assert.ts'
import { wallClock } from '../lib/clock.ts'
import { encodeHours } from './hours.ts'
import { type RecentHits, recentHits } from './recent.ts'
import { ACCOUNT, hourKeeper, hourOf, LINK } from './series.ts'

/** Every entry of the journal before `position` is counted. */
export interface JournalPosition {
  journalId: string
  position: number
}

/**
 * Adds a range of the journal, as hits of the hour of `now`, and moves the position past it. Runs
 * inside a transaction of the caller: both or neither. Hits of deleted links count in the total
 * only.
 */
export function hitAdder(db: Database): (range: JournalRange, now?: number) => void {
  const addCounts = countAdder(db)
  const advance = positionSetter(db)
  return ({ linkIds, end }, now = wallClock()) => {
    addCounts(countsOf(linkIds), now)
    advance(end)
  }
}

/** Sets the position in this folder's journal. */
export function positionSetter(db: Database): (position: number) => void {
  const set = db.prepare<null, [number]>('UPDATE hit_totals SET position = ? WHERE id = 1')
  return (position) => void set.run(position)
}

/** Pairs of a link id and its number of hits, in ascending order of ids. */
type HitCountPairs = Uint32Array

/** Adds hits, as those of the hour of `now`, to links, accounts and the total. */
export function countAdder(
  db: Database,
  recent?: RecentHits,
): (counts: HitCountPairs, now: number) => void {
  const addToTotal = db.prepare<null, [number]>(
    'UPDATE hit_totals SET redirects = redirects + ? WHERE id = 1',
  )
  const keepHours = hourKeeper(db)
  const addToLink = linkCounter(db, keepHours)
  const addToAccount = accountCounter(db, keepHours)

  return (counts, now) => {
    const hour = hourOf(now)
    const byAccount = new Map<number, number>()
    let total = 0
    for (let pair = 0; pair < counts.length; pair += 2) {
      const linkId = counts[pair] as number
      const count = counts[pair + 1] as number
      total += count
      const accountId = addToLink(linkId, hour, count)
      if (accountId === undefined) continue
      recent?.add({ linkId }, count, now)
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + count)
    }
    for (const [accountId, count] of byAccount) {
      addToAccount(accountId, hour, count)
      recent?.add({ accountId }, count, now)
    }
    addToTotal.run(total)
  }
}

/**
 * Counts hits of a link and returns its account; undefined when the link does not exist. A link
 * with a row in `hits` exists, because its deletion removes the row. Separate statements take half
 * as long as RETURNING (decision 001).
 */
function linkCounter(db: Database, keepHours: ReturnType<typeof hourKeeper>) {
  const counted = db.prepare<{ accountId: number; hours: Uint8Array | null }, [number]>(
    'SELECT account_id AS accountId, hours FROM hits WHERE link_id = ?',
  )
  const existing = db.prepare<{ accountId: number }, [number]>(
    'SELECT account_id AS accountId FROM links WHERE id = ?',
  )
  const add = db.prepare<null, [number, Uint8Array, number]>(
    'UPDATE hits SET count = count + ?, hours = ? WHERE link_id = ?',
  )
  const addFirst = db.prepare<null, [number, number, number, Uint8Array]>(
    'INSERT INTO hits (link_id, account_id, count, hours) VALUES (?, ?, ?, ?)',
  )
  return (linkId: number, hour: number, count: number): number | undefined => {
    const row = counted.get(linkId)
    if (row) {
      add.run(count, keepHours(LINK, linkId, row.hours, hour, count), linkId)
      return row.accountId
    }
    const link = existing.get(linkId)
    if (link) addFirst.run(linkId, link.accountId, count, encodeHours([[hour, count]]))
    return link?.accountId
  }
}

function accountCounter(db: Database, keepHours: ReturnType<typeof hourKeeper>) {
  const find = db.prepare<{ hours: Uint8Array | null }, [number]>(
    'SELECT hours FROM account_hits WHERE account_id = ?',
  )
  const add = db.prepare<null, [number, number, Uint8Array]>(
    `INSERT INTO account_hits (account_id, count, hours) VALUES (?1, ?2, ?3)
     ON CONFLICT (account_id) DO UPDATE SET count = count + ?2, hours = ?3`,
  )
  return (accountId: number, hour: number, count: number): void => {
    const stored = find.get(accountId)?.hours ?? null
    add.run(accountId, count, keepHours(ACCOUNT, accountId, stored, hour, count))
  }
}

/** Links of a commit: with the time of each, they bound how long other writes wait behind it. */
const LINKS_MAX = 8192

export interface CountedRange {
  /** The position after the last entry that is counted. */
  end: number
  /** Entries before it that are missing in the file. */
  lost: number
}

/** What one commit counts of the journal's entries from `position` to `end`: at least one. */
export function commitRange(
  journal: Pick<JournalFile, 'read'>,
  position: number,
  end: number,
): CountedRange & { counts: HitCountPairs } {
  const linkIds = journal.read(position, end)
  const lost = end - position - linkIds.length
  const counts = countsOf(linkIds)
  if (lost > 0 || counts.length <= 2 * LINKS_MAX) return { counts, end, lost }
  const seen = new Set<number>()
  const length = linkIds.findIndex((linkId) => seen.add(linkId).size > LINKS_MAX)
  return { counts: countsOf(linkIds.subarray(0, length)), end: position + length, lost }
}

/** Counts the hits of each link. Ascending, like the rows of the table. */
export function countsOf(hits: Uint32Array): HitCountPairs {
  const linkIds = hits.toSorted()
  const counts = new Uint32Array(2 * linkIds.length)
  let filled = 0
  let start = 0
  while (start < linkIds.length) {
    const linkId = linkIds[start] as number
    let end = start + 1
    while (linkIds[end] === linkId) end++
    counts[filled++] = linkId
    counts[filled++] = end - start
    start = end
  }
  return counts.subarray(0, filled)
}

/**
 * Counts the journal's entries from the committed position up to `end`, as hits of the hour of
 * `now`, or fewer if they are of too many links. Returns how far it has counted.
 */
export function journalCounter(db: Database, { journal }: WriterHost) {
  const addCounts = countAdder(db, recentHits(db))
  const advance = positionSetter(db)
  return ({ end, now }: { end: number; now: number }): CountedRange => {
    const position = findJournalPosition(db)?.position ?? end
    if (end <= position) return { end, lost: 0 }
    assert(journal, 'the service has opened its journal')
    const { counts, ...counted } = commitRange(journal, position, end)
    addCounts(counts, now)
    advance(counted.end)
    return counted
  }
}

export function findJournalPosition(db: Database): JournalPosition | undefined {
  const row = db
    .query<JournalPosition, []>(
      'SELECT journal_id AS journalId, position FROM hit_totals WHERE id = 1',
    )
    .get()
  return row ?? undefined
}

/** Links the database to another journal, counted up to `position`. The counts stay. */
export function adoptJournal(db: Database, journalId: string, position = 0): void {
  db.query(
    `INSERT INTO hit_totals (id, journal_id, position, redirects) VALUES (1, ?1, ?2, 0)
     ON CONFLICT (id) DO UPDATE SET journal_id = ?1, position = ?2`,
  ).run(journalId, position)
}

/** Committed counts, each with the position of the same snapshot: entries before it are counted. */
export function hitReads(db: Database) {
  const totals = db.prepare<{ redirects: number; position: number }, []>(
    'SELECT redirects, position FROM hit_totals WHERE id = 1',
  )
  const count = db.prepare<{ id: number; count: number; position: number }, [string]>(
    `SELECT value AS id, coalesce(hits.count, 0) AS count, hit_totals.position AS position
     FROM json_each(?) JOIN hit_totals ON hit_totals.id = 1
     LEFT JOIN hits ON hits.link_id = value`,
  )
  return {
    totals: (): { redirects: number; position: number } =>
      totals.get() ?? { redirects: 0, position: 0 },

    /** Committed counts of some links, all from one snapshot. */
    counts: (linkIds: readonly number[]): { id: number; count: number; position: number }[] =>
      count.all(JSON.stringify(linkIds)),
  }
}
