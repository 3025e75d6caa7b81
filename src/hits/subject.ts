import { HITS_ADDED } from '../db/events.ts'
import { localWrite, subject, write } from '../db/subject.ts'
import { clusterHitAdder } from './cluster-store.ts'
import { recentHits } from './recent.ts'
import { ACCOUNT, seriesScans, seriesWrites } from './series.ts'
import { hitReads, journalCounter } from './store.ts'

/** Counts of hits: of links, of accounts and over time. */
export const hits = subject({
  forget: [
    'DELETE FROM account_hits WHERE account_id = ?1',
    `DELETE FROM hit_days WHERE scope = ${ACCOUNT} AND id = ?1`,
  ],

  reads: hitReads,
  scans: seriesScans,
  writes: {
    ...seriesWrites,

    /** See `journalCounter`. In a cluster, `hitCalls` replaces it by `add`. */
    count: write(journalCounter),

    /** See `clusterHitAdder`. */
    add: write({
      prepare: clusterHitAdder,
      events: () => HITS_ADDED,
    }),

    /** Hits per minute of the last half hour, from memory. */
    recent: localWrite((db) => {
      const recent = recentHits(db)
      return (query: Parameters<typeof recent.perMinute>[0]) => recent.perMinute(query)
    }),

    /** The links with hits since the minute of a time, from memory. */
    linksSince: localWrite((db) => {
      const recent = recentHits(db)
      return ({ now }: { now: number }): number[] => recent.linksSince(now)
    }),
  },
})
