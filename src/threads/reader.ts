import { type OverviewReads, overviewReads } from '../accounts/overview-store.ts'
import { openReadonly } from '../db/open.ts'
import { type SeriesReads, seriesReads } from '../hits/series.ts'
import { giveWay } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'
import { type ExportReads, exportReads } from '../links/export.ts'
import { type LinkLists, linkLists } from '../links/lists.ts'
import { type TopReads, topReads } from '../links/top.ts'
import { type StatusReads, statusReads } from '../status/store.ts'

/** Reads of many rows. */
export type Reads = LinkLists & StatusReads & SeriesReads & TopReads & ExportReads & OverviewReads

/** Reads of many rows run on their own thread, so that no redirect waits for a search. */
serveThread(({ file }: { file: string }) => {
  giveWay()
  const db = openReadonly(file, { cacheKiB: 16_384 })
  const functions: Reads = {
    ...linkLists(db),
    ...statusReads(db),
    ...seriesReads(db),
    ...topReads(db),
    ...exportReads(db),
    ...overviewReads(db),
  }
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close: () => db.close(),
  }
})
