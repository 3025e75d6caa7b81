import type { Database } from 'bun:sqlite'
import { scan, subject, write } from '../db/subject.ts'
import { DAY } from '../lib/clock.ts'

const AGE_MAX_MS = 400 * DAY
/** Each may have two lists of 16 KiB. */
const EXPORTED_MAX = 50
/** Links of a batch that are searched for codes: all of them may have moved to another account. */
const SEARCHED_MAX = 100

export interface EventRow {
  id: number
  at: number
  kind: string
  actorKind: string
  actor: string | null
  /** JSON. */
  before: string | null
  after: string | null
  links: number
  /** JSON: codes of the first links that the account still has, at most three. */
  codes: string
}

export interface EventPage {
  id: number
  limit: number
  /** Id of the event after which the page begins; absent for the newest. */
  before?: string | undefined
}

/** Reads at most `SEARCHED_MAX` links of an event, however many it or the account has. */
const rowsOf = (db: Database, where: string, before = 'before') =>
  db.prepare<EventRow, [number, number, number]>(
    `SELECT id, at, kind, actor_kind AS actorKind, actor, ${before} AS before, after, links, (
       SELECT json_group_array(code) FROM (
         SELECT code FROM (
           SELECT event.link_id AS link_id WHERE event.link_id IS NOT NULL
           UNION ALL SELECT * FROM (SELECT link_id FROM link_event_links
             WHERE event_id = event.id ORDER BY link_id LIMIT ${SEARCHED_MAX}))
         CROSS JOIN links ON links.id = link_id AND links.account_id = event.account_id
         LIMIT 3)) AS codes
     FROM link_events AS event WHERE ${where} LIMIT ?3`,
  )

/** One more row than a page has tells whether another one follows. */
const pageReader = (db: Database, where: string, shown?: string) => {
  const rows = rowsOf(db, `id < ?2 AND ${where} ORDER BY id DESC`, shown)
  return ({ id, limit, before }: EventPage) => {
    const found = rows.all(id, Number(before ?? Number.MAX_SAFE_INTEGER), limit + 1)
    const events = found.slice(0, limit)
    return { events, next: found.length > limit ? String(events.at(-1)?.id) : null }
  }
}

/** The history of links and accounts. Other subjects add to it: see db/history.ts. */
export const history = subject({
  reads: (db) => ({
    /** Newest first, with the batches of the link. */
    pageOfLink: pageReader(
      db,
      `id IN (SELECT id FROM link_events WHERE link_id = ?1
         UNION SELECT event_id FROM link_event_links WHERE link_id = ?1
         UNION SELECT event_id FROM (SELECT event_id, last_link FROM link_event_links
           WHERE last_link > link_id AND link_id <= ?1 ORDER BY link_id DESC LIMIT 1)
         WHERE last_link >= ?1)`,
      // The codes of a batch may be those of another account, which had the link before.
      `iif(kind = 'deleted' AND links > 1, NULL, before)`,
    ),
    /** Newest first. */
    pageOfAccount: pageReader(db, 'account_id = ?1'),
  }),

  scans: {
    /** The next events of an account, oldest first. */
    above: scan((db) => {
      const next = rowsOf(db, 'account_id = ?1 AND id > ?2 ORDER BY id')
      return ({ accountId, above }: { accountId: number; above: number }) =>
        next.all(accountId, above, EXPORTED_MAX)
    }),
  },

  writes: {
    /** Removes the oldest events, a bounded number, if they are too old. Returns how many. */
    prune: write((db) => {
      // Ids and times have the same order.
      const remove = db.prepare<null, [number]>(
        `DELETE FROM link_events WHERE id IN (
           SELECT id FROM (SELECT id, at FROM link_events ORDER BY id LIMIT 500) WHERE at < ?)`,
      )
      return ({ now }: { now: number }): number => remove.run(now - AGE_MAX_MS).changes
    }),

    /** Removes a bounded number of events of a closed account. Returns how many. */
    removeSome: write((db) => {
      const remove = db.prepare<null, [number]>(
        `DELETE FROM link_events WHERE id IN (
           SELECT id FROM link_events WHERE account_id = ? LIMIT 500)`,
      )
      return ({ accountId }: { accountId: number }): number => remove.run(accountId).changes
    }),
  },

  forget: ['DELETE FROM link_events WHERE account_id = ?1'],
})
