import { loader } from '../blocklist/load.ts'
import { giveWay } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'

/** Runs for one load of the lists. */
serveThread(() => {
  giveWay()
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(loader, call))),
    close() {},
  }
})
