import { subjects } from '../data.ts'
import { openReadonly } from '../db/open.ts'
import { scanFunctions } from '../db/subject.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'

/** Reads many rows on a thread of its own, so that no redirect waits for a search. */
serveThread(({ file }: { file: string }) => {
  setThreadPriority('normal')
  const db = openReadonly(file, { cacheKiB: 16_384 })
  return functionService(scanFunctions(subjects, db), () => db.close())
})
