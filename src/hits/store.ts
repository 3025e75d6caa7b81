import type { Database } from 'bun:sqlite'
import { type Clock, wallClock } from '../lib/clock.ts'
import { populatePages } from '../lib/mapped-pages.ts'
import type { JournalFile, Stretch } from './journal-file.ts'
import {
  ACCOUNT_COUNTS,
  countRemover,
  hourOf,
  LINK_COUNTS,
  MarkedIds,
  marker,
  markWrites,
  rewind,
} from './marks.ts'

/** How far a journal is counted: every entry before `position` is. */
export interface Mark {
  journalId: string
  position: number
}

/** Links, and accounts, whose marks of the current hour are remembered: 8 bytes each. */
const MARKED_LINKS_MAX = 2 ** 20
const MARKED_ACCOUNTS_MAX = 2 ** 14
/** A clock that is set back by less is waited for: its hits go on in the last hour. */
const HOURS_BACK_MAX = 24

type AddStretch = (stretch: Stretch, now: number) => void

/**
 * Adds a stretch of the journal and moves the position past it: both or neither, inside a
 * transaction of the caller. Hits of deleted links count in the total alone. `clock`: the hour that
 * the hits belong to.
 */
export function hitAdder(db: Database, clock: Clock = wallClock): (stretch: Stretch) => void {
  const add = stretchAdder(db)
  return (stretch) => add(stretch, clock())
}

function stretchAdder(db: Database): AddStretch {
  const totals = db.prepare<{ position: number; hour: number }, []>(
    'SELECT position, hour FROM hit_totals WHERE id = 1',
  )
  const advance = db.prepare<null, [number, number, number]>(
    'UPDATE hit_totals SET position = ?, hour = ?, redirects = redirects + ? WHERE id = 1',
  )
  const links = linkCounter(db)
  const accounts = accountCounter(db)
  const byAccount = new Map<number, number>()
  let counted = { end: Number.NaN, hour: Number.NaN }

  return ({ linkIds, end }, now) => {
    const before = totals.get() ?? { position: end, hour: 0 }
    const hour = nextHour(before.hour, hourOf(now))
    if (hour < before.hour) rewind(db, hour)
    // Another position than the last one's end: that transaction was undone, marks and all.
    if (before.position !== counted.end || hour !== counted.hour) {
      links.forget()
      accounts.forget()
    }
    counted = { end: Number.NaN, hour: Number.NaN }
    byAccount.clear()
    eachCount(linkIds, (linkId, count) => {
      const accountId = links.add(linkId, count, hour)
      if (accountId > 0) byAccount.set(accountId, (byAccount.get(accountId) ?? 0) + count)
    })
    for (const [accountId, count] of byAccount) accounts.add(accountId, count, hour)
    advance.run(end, hour, linkIds.length)
    counted = { end, hour }
  }
}

/** Hours never go back, but for a clock that was far ahead and is set right. */
const nextHour = (last: number, now: number) =>
  now < last - HOURS_BACK_MAX ? now : Math.max(last, now)

/** Counts hits of links. A link with a row in `hits` exists: its deletion removes the row. */
function linkCounter(db: Database) {
  const marked = new MarkedIds(MARKED_LINKS_MAX)
  const mark = marker(db, LINK_COUNTS)
  const bump = db.prepare<null, [number, number]>(
    'UPDATE hits SET count = count + ?2 WHERE link_id = ?1',
  )
  const find = db.prepare<{ accountId: number; count: number }, [number]>(
    'SELECT account_id AS accountId, count FROM hits WHERE link_id = ?',
  )
  const create = db.prepare<{ accountId: number; count: number }, [number]>(
    `INSERT INTO hits (link_id, account_id, count) SELECT id, account_id, 0 FROM links WHERE id = ?
     RETURNING account_id AS accountId, count`,
  )
  return {
    forget: () => marked.clear(),

    /** The link's account, or 0 when the link is gone. */
    add(linkId: number, count: number, hour: number): number {
      let accountId = marked.find(linkId)
      if (accountId === 0) {
        const row = find.get(linkId) ?? create.get(linkId)
        if (!row) return 0
        mark(linkId, hour, row.count)
        accountId = row.accountId
        marked.set(linkId, accountId)
      }
      return bump.run(linkId, count).changes > 0 ? accountId : 0
    },
  }
}

function accountCounter(db: Database) {
  const marked = new MarkedIds(MARKED_ACCOUNTS_MAX)
  const mark = marker(db, ACCOUNT_COUNTS)
  const find = db.prepare<{ count: number }, [number]>(
    'SELECT count FROM account_hits WHERE account_id = ?',
  )
  const bump = db.prepare<null, [number, number]>(
    `INSERT INTO account_hits (account_id, count) VALUES (?1, ?2)
     ON CONFLICT (account_id) DO UPDATE SET count = count + ?2`,
  )
  return {
    forget: () => marked.clear(),

    add(accountId: number, count: number, hour: number): void {
      if (marked.find(accountId) === 0) {
        mark(accountId, hour, find.get(accountId)?.count ?? 0)
        marked.set(accountId, 1)
      }
      bump.run(accountId, count)
    },
  }
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
  const add = stretchAdder(db)
  const mark = db.prepare<{ position: number }, []>('SELECT position FROM hit_totals WHERE id = 1')
  const removeAccount = countRemover(db, ACCOUNT_COUNTS)
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

    /** Of the journal as the HTTP thread maps it: so that an append never waits for the disk. */
    populatePages,

    /** For an account that is deleted, after its links. */
    removeAccountHits({ accountId }: { accountId: number }): void {
      removeAccount(accountId)
    },

    ...markWrites(db),
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
