import { loader } from '../blocklist/load.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

/** Started for each load of the lists. */
serveThread(() => {
  setThreadPriority('normal')
  return functionService(loader)
})
