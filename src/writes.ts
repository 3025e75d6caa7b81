import type { Database } from 'bun:sqlite'
import { rowHashes } from './cluster/rows.ts'
import { subjects } from './data.ts'
import { type WriterHost, writeFunctions } from './db/subject.ts'
import { importWrites } from './import/store.ts'
import { linkWrites } from './links/store.ts'

/**
 * The changes that all hosts of a cluster apply. They run inside a transaction of the caller, on a
 * connection that may write.
 */
export function sharedWrites(db: Database, host: WriterHost) {
  return { ...linkWrites(db), ...importWrites(db), ...writeFunctions(subjects, db, host) }
}

export type SharedWrites = ReturnType<typeof linkWrites> & ReturnType<typeof importWrites>

/** All functions that an entry of the log may call. `host`: this one. */
export const loggedWrites = (db: Database, host: WriterHost) => ({
  ...sharedWrites(db, host),
  ...rowHashes(db),
})
