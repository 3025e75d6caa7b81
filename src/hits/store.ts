import type { Database } from 'bun:sqlite'
import type { HitJournal, Stretch } from './journal.ts'

/** How far a journal is counted: every entry before `position` is. */
export interface Mark {
  journalId: string
  position: number
}

/**
 * Adds a stretch of the journal and moves the position past it: both or neither, inside a
 * transaction of the caller. Hits of deleted links count in the total alone.
 */
export function hitAdder(db: Database): (stretch: Stretch) => void {
  const add = db.prepare<null, [number, number]>(
    `INSERT INTO hits (link_id, count)
     SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM links WHERE id = ?1)
     ON CONFLICT (link_id) DO UPDATE SET count = count + ?2`,
  )
  const advance = db.prepare<null, [number, number]>(
    'UPDATE hit_totals SET position = ?, redirects = redirects + ? WHERE id = 1',
  )
  return ({ linkIds, end }) => {
    for (const [linkId, count] of sumById(linkIds)) add.run(linkId, count)
    advance.run(end, linkIds.length)
  }
}

/** Runs on the writer thread, inside the transaction of its batch. `journal`: its own mapping. */
export function hitWrites(db: Database, journal: Pick<HitJournal, 'read'>) {
  const add = hitAdder(db)
  const mark = db.prepare<{ position: number }, []>('SELECT position FROM hit_totals WHERE id = 1')
  return {
    /** Counts what the journal holds from the committed position up to `end`. */
    countHits({ end }: { end: number }): void {
      const { position } = mark.get() ?? { position: end }
      if (end > position) add({ linkIds: journal.read(position, end), end })
    },
  }
}

export type HitWrites = ReturnType<typeof hitWrites>

export function sumById(linkIds: Uint32Array): Map<number, number> {
  const sums = new Map<number, number>()
  for (const linkId of linkIds) sums.set(linkId, (sums.get(linkId) ?? 0) + 1)
  return sums
}

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
