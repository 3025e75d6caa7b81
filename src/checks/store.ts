import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { eventRecorder } from '../db/history.ts'
import { type Authored, authoredWrite, subject, write } from '../db/subject.ts'
import { DAY } from '../lib/clock.ts'
import { linkEvent } from '../links/events.ts'
import type { NamedLink } from '../links/link.ts'
import type { Finding } from './verdict.ts'

/**
 * Which destinations are checked when, and what was found. Triggers on `links` forget a finding
 * when the destination changes or its link is deleted.
 */

/** A destination is dead after so many failures in a row, which are a day apart or more. */
const FAILURES_MAX = 3
/** The condition of the index `link_checks_dead`, word by word. */
export const IS_DEAD = `failures >= ${FAILURES_MAX}`
const WEEK = 7 * DAY
/** More are shown as this number. */
const DEAD_COUNTED_MAX = 10_000

export interface DeadDestination {
  linkId: number
  status: string
  failingSince: number
}

/** The result of a check that was due at `dueAt`. Absent: the link is no longer to be checked. */
export interface CheckResult {
  linkId: number
  dueAt: number
  finding?: Finding | undefined
}

/** A link has a time of the week of its own: those of one account or import are spread. */
export function nextSlot(linkId: number, now: number): number {
  const offset = Math.floor(((Math.imul(linkId, 0x9e3779b1) >>> 0) / 2 ** 32) * WEEK)
  return now + WEEK - ((((now - offset) % WEEK) + WEEK) % WEEK)
}

export const checks = subject({
  // A trigger removes the check of a removed link.
  forget: [],

  reads(db) {
    const among = db.prepare<DeadDestination, [string]>(
      `SELECT link_id AS linkId, status, failing_since AS failingSince FROM link_checks
       WHERE link_id IN (SELECT value FROM json_each(?)) AND ${IS_DEAD}`,
    )
    const count = db.prepare<{ n: number }, [AccountId]>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM link_checks
       WHERE account_id = ? AND ${IS_DEAD} LIMIT ${DEAD_COUNTED_MAX})`,
    )
    const unprinted = db.prepare<{ id: number }, [string]>(
      `SELECT value AS id FROM json_each(?)
       WHERE NOT EXISTS (SELECT 1 FROM link_checks WHERE link_id = value AND printed = 1)`,
    )
    return {
      /** Those of some links that nobody has printed. */
      unprinted: (linkIds: readonly number[]): number[] =>
        unprinted.all(JSON.stringify(linkIds)).map(({ id }) => id),

      /** Those of some links whose destinations are dead, by link. */
      findDead: (linkIds: readonly number[]): Map<number, DeadDestination> =>
        new Map(among.all(JSON.stringify(linkIds)).map((one) => [one.linkId, one])),

      countDead: (accountId: AccountId): number => count.get(accountId)?.n ?? 0,
    }
  },

  writes: {
    /** Links whose codes somebody prints: they are checked even if nobody follows them. */
    notePrinted: authoredWrite('editor', (db) => {
      const note = db.prepare<null, [string, AccountId]>(
        `INSERT INTO link_checks (link_id, account_id, printed)
         SELECT id, account_id, 1 FROM links
         WHERE id IN (SELECT value FROM json_each(?1)) AND account_id = ?2
         ON CONFLICT (link_id) DO UPDATE SET printed = 1`,
      )
      return ({ author, linkIds }: Authored & { linkIds: readonly number[] }): void =>
        void note.run(JSON.stringify(linkIds), author.accountId)
    }),

    /** Gives links a first check. Those that have one keep it. */
    schedule: write((db) => {
      const add = db.prepare<null, [number, number]>(
        `INSERT INTO link_checks (link_id, account_id, due_at)
         SELECT id, account_id, ?2 FROM links WHERE id = ?1
         ON CONFLICT (link_id) DO UPDATE SET due_at = coalesce(due_at, ?2)`,
      )
      return ({ linkIds, now }: { linkIds: readonly number[]; now: number }): void => {
        for (const id of linkIds) add.run(id, nextSlot(id, now))
      }
    }),

    /** Returns the links whose destinations have become dead, or answer again. */
    record: write({
      prepare: recordWrite,
      events: (changed, command) =>
        changed.map(({ isDead, ...link }) =>
          linkEvent(isDead ? 'dead' : 'alive', link, { at: command?.now }),
        ),
    }),
  },
})

interface FoundCheck extends NamedLink {
  failures: number
}

function recordWrite(db: Database) {
  // Another time: the destination was changed, or another host has checked it.
  const find = db.prepare<FoundCheck, [number, number]>(
    `SELECT id, code, l.account_id AS accountId, failures
     FROM link_checks JOIN links l ON id = link_id WHERE link_id = ? AND due_at = ?`,
  )
  const set = db.prepare<null, [number, number, string, number, number]>(
    `UPDATE link_checks SET checked_at = ?2, status = ?3, failures = ?4, due_at = ?5,
       failing_since = iif(?4 = 0, NULL, coalesce(failing_since, ?2))
     WHERE link_id = ?1`,
  )
  const addEvent = eventRecorder(db)
  const stop = db.prepare<null, [number]>(
    `UPDATE link_checks SET checked_at = NULL, status = NULL, failures = 0, due_at = NULL,
       failing_since = NULL
     WHERE link_id = ?`,
  )
  return ({ results, now }: { results: readonly CheckResult[]; now: number }) => {
    const changed: (NamedLink & { isDead: boolean })[] = []
    for (const { linkId, dueAt, finding } of results) {
      const found = find.get(linkId, dueAt)
      if (!found) continue
      if (!finding) {
        stop.run(linkId)
        continue
      }
      const { failures: before, ...link } = found
      const { outcome, status } = finding
      const failures = outcome === 'alive' ? 0 : before + (outcome === 'failed' ? 1 : 0)
      const nextAt = failures > 0 ? now + DAY : nextSlot(linkId, now)
      set.run(linkId, now, status, failures, nextAt)
      const isDead = failures >= FAILURES_MAX
      if (isDead === before >= FAILURES_MAX) continue
      changed.push({ ...link, isDead })
      const kind = isDead ? 'dead' : 'alive'
      addEvent({ kind, accountId: link.accountId, links: [linkId], by: { now }, after: status })
    }
    return changed
  }
}
