import { subjects } from '../data.ts'
import { openReadonly } from '../db/open.ts'
import { scanFunctions } from '../db/subject.ts'
import { type ImportReads, importReads } from '../import/store.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { functionService, serveThread } from '../lib/thread.ts'
import { type ExportReads, exportReads } from '../links/export.ts'
import { type CodeReads, codeReads } from '../links/known-codes.ts'
import { type LinkLists, linkLists } from '../links/lists.ts'
import { type TagReads, tagReads } from '../links/tags.ts'

/** Reads of many rows. */
export type Reads = LinkLists & CodeReads & TagReads & ExportReads & ImportReads

/** Reads many rows on a thread of its own, so that no redirect waits for a search. */
serveThread(({ file }: { file: string }) => {
  setThreadPriority('normal')
  const db = openReadonly(file, { cacheKiB: 16_384 })
  const functions: Reads = {
    ...linkLists(db),
    ...codeReads(db),
    ...tagReads(db),
    ...exportReads(db),
    ...importReads(db),
    ...scanFunctions(subjects, db),
  }
  return functionService(functions, () => db.close())
})
