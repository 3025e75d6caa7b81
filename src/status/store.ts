import type { Database } from 'bun:sqlite'
import type { Plan } from '../accounts/plans.ts'
import { versionOf } from '../db/migrate.ts'

export interface Totals {
  plans: { plan: Plan; accounts: number; links: number }[]
  /** Number of migrations applied to the database. */
  schemaVersion: number
}

/** Runs on the reader thread, because it reads every account. */
export function statusReads(db: Database) {
  const byPlan = db.prepare<Totals['plans'][number], []>(
    `SELECT plan, count(*) AS accounts, coalesce(sum(link_count), 0) AS links
     FROM accounts GROUP BY plan ORDER BY plan`,
  )
  return {
    totals(_: null): Totals {
      return { plans: byPlan.all(), schemaVersion: versionOf(db) }
    },
  }
}

export type StatusReads = ReturnType<typeof statusReads>
