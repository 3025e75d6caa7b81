import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type CollectorSettings, VisitCollector } from '../visits/collector.ts'

serveThread((settings: CollectorSettings) => {
  // Details can wait or be left out, a redirect cannot.
  setThreadPriority('background')
  const collector = new VisitCollector(settings)
  return functionService(collector.functions, () => collector.close())
})
