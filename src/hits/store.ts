import type { Database } from 'bun:sqlite'
import type { JournalFile, Stretch } from '../hot/journal-file.ts'
import { type Clock, wallClock } from '../lib/clock.ts'
import { ACCOUNT, bucketAdder, bucketWrites, hourOf, LINK } from './buckets.ts'

/** How far a journal is counted: every entry before `position` is. */
export interface Mark {
  journalId: string
  position: number
}

/**
 * Adds a range of the journal and moves the position past it: both or neither, inside a transaction
 * of the caller. Hits of deleted links count in the total alone. `clock`: the hour that the hits
 * belong to.
 */
export function hitAdder(db: Database, clock: Clock = wallClock): (stretch: Stretch) => void {
  const add = rangeAdder(db)
  return (stretch) => add(stretch, clock())
}

function rangeAdder(db: Database): (stretch: Stretch, now: number) => void {
  const advance = db.prepare<null, [number, number]>(
    'UPDATE hit_totals SET position = ?, redirects = redirects + ? WHERE id = 1',
  )
  const addToLink = linkCounter(db)
  const addToAccount = db.prepare<null, [number, number]>(
    `INSERT INTO account_hits (account_id, count) VALUES (?1, ?2)
     ON CONFLICT (account_id) DO UPDATE SET count = count + ?2`,
  )
  const addToBuckets = bucketAdder(db)

  return ({ linkIds, end }, now) => {
    const hour = hourOf(now)
    const byAccount = new Map<number, number>()
    eachCount(linkIds, (linkId, count) => {
      const accountId = addToLink(linkId, count)
      if (accountId === undefined) return
      addToBuckets(LINK, linkId, hour, count)
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + count)
    })
    for (const [accountId, count] of byAccount) {
      addToAccount.run(accountId, count)
      addToBuckets(ACCOUNT, accountId, hour, count)
    }
    // mutate position-in-another-transaction: s/.*/queueMicrotask(() => $&)/
    advance.run(end, linkIds.length)
  }
}

/**
 * Counts hits of a link and gives its account; undefined when the link is gone. A link with a row
 * in `hits` exists: its deletion removes the row.
 */
function linkCounter(db: Database): (linkId: number, count: number) => number | undefined {
  const add = db.prepare<{ accountId: number }, [number, number]>(
    'UPDATE hits SET count = count + ?2 WHERE link_id = ?1 RETURNING account_id AS accountId',
  )
  const addFirst = db.prepare<{ accountId: number }, [number, number]>(
    `INSERT INTO hits (link_id, account_id, count) SELECT id, account_id, ?2 FROM links
     WHERE id = ?1 RETURNING account_id AS accountId`,
  )
  return (linkId, count) => (add.get(linkId, count) ?? addFirst.get(linkId, count))?.accountId
}

/** Each link of a stretch once, in the order in which the database keeps them. */
function eachCount(stretch: Uint32Array, take: (linkId: number, count: number) => void): void {
  const linkIds = stretch.toSorted()
  let start = 0
  while (start < linkIds.length) {
    const linkId = linkIds[start] as number
    let end = start + 1
    while (linkIds[end] === linkId) end++
    take(linkId, end - start)
    start = end
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function hitWrites(db: Database, journal: Pick<JournalFile, 'read'>) {
  const add = rangeAdder(db)
  const mark = db.prepare<{ position: number }, []>('SELECT position FROM hit_totals WHERE id = 1')
  const removeAccount = db.prepare<null, [number]>('DELETE FROM account_hits WHERE account_id = ?')
  return {
    /**
     * Counts what the journal holds from the committed position up to `end`, as hits of the hour
     * that `now` is in. Returns how many of them the file has lost.
     */
    countHits({ end, now }: { end: number; now: number }): number {
      const { position } = mark.get() ?? { position: end }
      if (end <= position) return 0
      const linkIds = journal.read(position, end)
      add({ linkIds, end }, now)
      return end - position - linkIds.length
    },

    /** For an account that is deleted, after its links. */
    removeAccountHits({ accountId }: { accountId: number }): void {
      removeAccount.run(accountId)
    },

    ...bucketWrites(db),
  }
}

export type HitWrites = ReturnType<typeof hitWrites>

export function findMark(db: Database): Mark | undefined {
  const row = db
    .query<Mark, []>('SELECT journal_id AS journalId, position FROM hit_totals WHERE id = 1')
    .get()
  return row ?? undefined
}

/** Makes the database speak of another journal, from its beginning. The counts stay. */
export function adoptJournal(db: Database, journalId: string): void {
  db.query(
    `INSERT INTO hit_totals (id, journal_id, position, redirects) VALUES (1, ?1, 0, 0)
     ON CONFLICT (id) DO UPDATE SET journal_id = ?1, position = 0`,
  ).run(journalId)
}

/** Committed totals as one snapshot: `redirects` speaks of everything before `position`. */
export class HitReads {
  readonly #totals
  readonly #count

  constructor(db: Database) {
    this.#totals = db.prepare<{ redirects: number; position: number }, []>(
      'SELECT redirects, position FROM hit_totals WHERE id = 1',
    )
    this.#count = db.prepare<{ id: number; count: number; position: number }, [string]>(
      `SELECT value AS id, coalesce(hits.count, 0) AS count, hit_totals.position AS position
       FROM json_each(?) JOIN hit_totals ON hit_totals.id = 1
       LEFT JOIN hits ON hits.link_id = value`,
    )
  }

  totals(): { redirects: number; position: number } {
    return this.#totals.get() ?? { redirects: 0, position: 0 }
  }

  /** Committed counts of some links, all from one snapshot. */
  counts(linkIds: readonly number[]): { id: number; count: number; position: number }[] {
    return this.#count.all(JSON.stringify(linkIds))
  }
}
