import { versionOf } from '../db/migrate.ts'
import { scan, subject } from '../db/subject.ts'
import type { Plan } from './plans.ts'

export interface Totals {
  plans: { plan: Plan; accounts: number; links: number }[]
  /** Number of migrations applied to the database. */
  schemaVersion: number
}

/** Numbers of the whole service. */
export const totals = subject({
  scans: {
    /** Reads every account. */
    read: scan((db) => {
      const byPlan = db.prepare<Totals['plans'][number], []>(
        `SELECT plan, count(*) AS accounts, coalesce(sum(link_count), 0) AS links
         FROM accounts GROUP BY plan ORDER BY plan`,
      )
      return (): Totals => ({ plans: byPlan.all(), schemaVersion: versionOf(db) })
    }),
  },
})
