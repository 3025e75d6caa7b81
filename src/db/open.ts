import { Database } from 'bun:sqlite'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from './data-error.ts'

/**
 * How long a connection waits for another process (a command line beside the server) to finish its
 * write.
 */
const BUSY_TIMEOUT_MS = 5000
/** The write-ahead log is cut back to this size after a checkpoint. */
const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024

/** A connection that is just being closed may hold the log for a moment. */
const CHECKPOINT_TRIES = 50
const CHECKPOINT_PAUSE_MS = 10

export const databaseFile = (dataDir: string): string => join(dataDir, 'hopcode.db')

/** A connection that may write: WAL, every commit on disk before it returns. */
export function openWritable(file: string): Database {
  refuseForeignFile(file)
  const db = new Database(file, { create: true, readwrite: true, strict: true })
  try {
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = FULL')
    db.run(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT_BYTES}`)
    db.run('PRAGMA cache_size = -32768')
    db.run('PRAGMA temp_store = MEMORY')
    requirePragmas(db, file, {
      busy_timeout: BUSY_TIMEOUT_MS,
      journal_mode: 'wal',
      synchronous: 2,
      journal_size_limit: JOURNAL_SIZE_LIMIT_BYTES,
    })
  } catch (error) {
    db.close()
    throw explain(error, file)
  }
  return db
}

/**
 * Closes a writing connection with all it wrote in the database file itself, so that a copy of it
 * is whole.
 */
export function closeWritable(db: Database): void {
  try {
    // Statements that are not collected yet keep SQLite from doing this as it closes.
    const checkpoint = db.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)')
    for (let tries = 0; tries < CHECKPOINT_TRIES && checkpoint.get()?.busy; tries++) {
      Bun.sleepSync(CHECKPOINT_PAUSE_MS)
    }
  } catch {
    // A disk that refuses leaves the log beside the file: together they are whole.
  }
  db.close()
}

/** A connection that only reads. The database must exist. */
export function openReadonly(file: string, { cacheKiB }: { cacheKiB: number }): Database {
  const db = new Database(file, { readonly: true, strict: true })
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  db.run(`PRAGMA cache_size = -${cacheKiB}`)
  db.run('PRAGMA query_only = ON')
  requirePragmas(db, file, { busy_timeout: BUSY_TIMEOUT_MS, journal_mode: 'wal', query_only: 1 })
  return db
}

/** Runs `work` as one transaction that holds the write lock from its first statement on. */
export function inTransaction<Result>(db: Database, work: () => Result): Result {
  return db.transaction(work).immediate()
}

/** SQLite takes a pragma it cannot honour in silence: what was asked is read back. */
function requirePragmas(
  db: Database,
  file: string,
  expected: Record<string, string | number>,
): void {
  for (const [name, value] of Object.entries(expected)) {
    const [found] = Object.values(db.query(`PRAGMA ${name}`).get() ?? {})
    if (found !== value) {
      throw new DataError(`${file}: PRAGMA ${name} is ${found}, not ${value}; is the disk local?`)
    }
  }
}

function refuseForeignFile(file: string): void {
  const header = Buffer.alloc(16)
  let descriptor: number
  try {
    descriptor = openSync(file, 'r')
  } catch {
    return
  }
  const length = readSync(descriptor, header, 0, 16, 0)
  closeSync(descriptor)
  if (length > 0 && header.toString('latin1') !== 'SQLite format 3\0') {
    throw new DataError(
      `${file} is damaged: it is not an SQLite database. Put a backup in its place.`,
    )
  }
}

function explain(error: unknown, file: string): Error {
  if (error instanceof DataError) return error
  return new DataError(`${file} cannot be opened: ${(error as Error).message}`, { cause: error })
}
