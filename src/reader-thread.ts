import { openReadonly } from './db/open.ts'
import { runCall, serveThread } from './lib/thread.ts'
import { linkLists } from './links/store.ts'

/** The thread for reads of many rows, so that no redirect waits for a search. */
serveThread(({ file }: { file: string }) => {
  const db = openReadonly(file, { cacheKiB: 16_384 })
  const functions = linkLists(db)
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(functions, call))),
    close: () => db.close(),
  }
})
