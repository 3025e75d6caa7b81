/**
 * Appends hits to the journal of a folder from several threads and counts them, until it is killed:
 * bun journal-process.ts <folder>. Thread n follows link n + 1.
 */
import { join } from 'node:path'
import { migrate } from '../../../src/db/migrate.ts'
import { inTransaction, openWritable } from '../../../src/db/open.ts'
import { journalFile, openJournal } from '../../../src/hits/hits.ts'
import { journalCounter } from '../../../src/hits/store.ts'
import type { HitJournal } from '../../../src/hot/journal.ts'
import { JournalFile } from '../../../src/hot/journal-file.ts'
import { createLog } from '../../../src/lib/log.ts'
import { startAppending } from '../../support/journal-threads.ts'

export const THREADS = 4
/** The threads append less than this between two kills: no hit is in memory only. */
const ENTRIES = 4 * 1024 * 1024
const RANGE_MAX = 8192

export const progressFile = (folder: string, thread: number) => join(folder, `progress-${thread}`)

/** The database and journal of the folder, as a start of the service opens them. */
export function openHits(folder: string) {
  const db = openWritable(join(folder, 'hopcode.db'))
  migrate(db)
  // A kill takes nothing that the kernel has.
  db.run('PRAGMA synchronous = OFF')
  for (let id = 1; id <= THREADS; id++) {
    db.query(
      `INSERT OR IGNORE INTO links (id, code, account_id, passcode_hash, created_at)
       VALUES (?, ?, 1, x'00', 0)`,
    ).run(id, `CODE0${id}`)
  }
  const journal = openJournal(db, folder, createLog({ level: 'silent' }), ENTRIES)
  const file = JournalFile.open(journalFile(folder))
  const count = journalCounter(db, { id: '', journal: file })
  return {
    db,
    journal,
    /** Counts up to 8,192 hits. */
    flush() {
      const end = Math.min(journal.head, journal.tail + RANGE_MAX)
      inTransaction(db, () => count({ end, now: 0 }))
      journal.release(end)
    },
  }
}

async function appendUntilKilled(folder: string): Promise<void> {
  const { journal, flush } = openHits(folder)
  await startAppending(Array.from({ length: THREADS }, (_, n) => workOf(folder, journal, n)))
  console.log('started')
  while (journal.overflow === 0) {
    flush()
    await Bun.sleep(0)
  }
  process.exit(3)
}

const workOf = (folder: string, journal: HitJournal, thread: number) => ({
  shared: journal.attach(),
  first: 1 + thread,
  links: 1,
  hits: 2 ** 31 - 1,
  progressFile: progressFile(folder, thread),
})

if (import.meta.main && Bun.isMainThread) await appendUntilKilled(process.argv[2] ?? '')
