import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { readabilityChecks } from '../qr/readability.ts'

serveThread(() => {
  // A check takes up to a second, and redirects must not wait for it.
  setThreadPriority('background')
  return functionService(readabilityChecks)
})
