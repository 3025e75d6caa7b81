import { loader } from '../blocklist/load.ts'
import { giveWay } from '../lib/priority.ts'
import { runCall, serveThread } from '../lib/thread.ts'

/** Lives for one loading only. */
serveThread(() => {
  giveWay()
  return {
    answer: (calls) => Promise.all(calls.map((call) => runCall(loader, call))),
    close() {},
  }
})
