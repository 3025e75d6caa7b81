import { loader } from '../blocklist/load.ts'
import { giveWay } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

/** Lives for one loading only. */
serveThread(() => {
  giveWay()
  return functionService(loader)
})
