import { constants, Database } from 'bun:sqlite'
import {
  accessSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  constants as rights,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DataError, RUN_RESTORE } from '../lib/data-error.ts'
import { machineFailure } from '../lib/disk-refusal.ts'

/**
 * How long a connection waits for another process (a command line beside the server) to finish its
 * write.
 */
export const BUSY_TIMEOUT_MS = 5000
/** The write-ahead log is cut back to this size after a checkpoint. */
const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
/** More spares no time: what is not here is in the operating system's cache. */
const WRITER_CACHE_KIB = 16_384

/** A connection that is just being opened or closed may hold the file for a moment. */
const BUSY_PAUSE_MS = 10
const CHECKPOINT_TRIES = 50

export const databaseFile = (dataDir: string): string => join(dataDir, 'hopcode.db')

/**
 * Throws DataError for a file that SQLite would take in silence: a lost, a foreign, a cut-off one.
 *
 * Only while this process has no connection to the file. Whoever opens and closes it beside them
 * gives back the locks of them all (https://sqlite.org/howtocorrupt.html, 2.2): another program
 * that has looked into the database would then take the log away, with what is written there.
 */
export function refuseUnusable(file: string): void {
  try {
    refuseLostFile(file)
    refuseForeignFile(file)
    refuseForeignLog(file)
  } catch (error) {
    throw explain(error, file)
  }
}

/** A connection that may write: WAL, every commit on disk before it returns. */
export function openWritable(file: string): Database {
  let db: Database | undefined
  try {
    // mutate open-beside-connections: s/db =/refuseForeignFile(file); db =/
    db = new Database(file, { create: true, readwrite: true, strict: true })
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    useWriteAheadLog(db)
    // mutate unsynced-commits: s/FULL/NORMAL/
    db.run('PRAGMA synchronous = FULL')
    db.run(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT_BYTES}`)
    db.run(`PRAGMA cache_size = -${WRITER_CACHE_KIB}`)
    db.run('PRAGMA temp_store = MEMORY')
    keepLogFiles(db)
    requirePragmas(db, file, {
      busy_timeout: BUSY_TIMEOUT_MS,
      journal_mode: 'wal',
      // mutate unsynced-commits: s/2/1/
      synchronous: 2,
      journal_size_limit: JOURNAL_SIZE_LIMIT_BYTES,
    })
  } catch (error) {
    db?.close()
    throw explain(error, file)
  }
  return db
}

/**
 * Only who makes a new file changes anything here, and SQLite waits for nobody then: two that begin
 * at once would each hold what the other needs. Where it does wait, that was all the waiting.
 */
function useWriteAheadLog(db: Database): void {
  const deadline = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      db.run('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      const isLocked = (error as { code?: string }).code?.startsWith('SQLITE_BUSY')
      if (!isLocked || performance.now() >= deadline) throw error
      Bun.sleepSync(BUSY_PAUSE_MS)
    }
  }
}

/**
 * Has SQLite leave the empty log and its shared memory (32 KiB) when the last connection closes.
 * The next start needs both to read anything, and could not create them on a full disk.
 */
function keepLogFiles(db: Database): void {
  db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
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
      Bun.sleepSync(BUSY_PAUSE_MS)
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

/** A copy reads each page once: a larger cache would only use memory. */
const COPY_CACHE_KIB = 4096

/**
 * Writes a copy of a database, as of one moment, to `to`, which must be absent or empty. Neither
 * readers nor the writer wait for it.
 */
export function copyDatabase(file: string, to: string): void {
  // With `query_only`, SQLite would refuse VACUUM INTO as a write.
  using db = new Database(file, { readonly: true, strict: true })
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  db.run(`PRAGMA cache_size = -${COPY_CACHE_KIB}`)
  db.query('VACUUM INTO ?').run(to)
}

/** Runs `work` as one transaction that holds the write lock from its first statement on. */
export function inTransaction<Result>(db: Database, work: () => Result): Result {
  // mutate late-lock-of-a-transaction: s/\.immediate//
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

/** What a service leaves beside its database, and only after it. */
const COMPANIONS = ['secret.key', 'hits.journal']

/**
 * SQLite would drop the log of the database that was there, and make an empty one, which looks like
 * a loss of everything.
 */
function refuseLostFile(file: string): void {
  if (Bun.file(file).size > 0 || Bun.file(`${file}-journal`).size > 0) return
  const left = COMPANIONS.filter((name) => existsSync(join(dirname(file), name)))
  if (Bun.file(`${file}-wal`).size > 0) left.push(`${basename(file)}-wal`)
  if (left.length === 0) return
  throw new DataError(
    `${file} is ${existsSync(file) ? 'empty' : 'missing'}, although an earlier service has left ` +
      `${left.join(' and ')} beside it. ${RUN_RESTORE} Or is DATA_DIR wrong?`,
  )
}

/** SQLite passes over a log that it does not know for one, and over every change in it. */
function refuseForeignLog(file: string): void {
  const log = `${file}-wal`
  if (!(Bun.file(log).size > 0)) return
  const header = Buffer.alloc(WAL_HEADER_BYTES)
  const descriptor = openSync(log, 'r')
  try {
    readSync(descriptor, header, 0, WAL_HEADER_BYTES, 0)
  } finally {
    closeSync(descriptor)
  }
  // A loss of power may leave zeros, where the log had only just been begun.
  const isKnown = WAL_MAGIC.includes(header.readUInt32BE(0)) || header.every((byte) => byte === 0)
  if (!isKnown) throw damaged(log, 'it is not the log of an SQLite database')
}

/** First bytes of a database and of its log: https://sqlite.org/fileformat.html, 1.3 and 4.1. */
const HEADER_BYTES = 100
const WAL_HEADER_BYTES = 32
const WAL_MAGIC = [0x377f0682, 0x377f0683]

function refuseForeignFile(file: string): void {
  // A loss of power while the file was being made may have torn it: SQLite undoes that.
  if (!existsSync(file) || Bun.file(`${file}-journal`).size > 0) return
  accessSync(file, rights.R_OK | rights.W_OK)
  const header = Buffer.alloc(HEADER_BYTES)
  const descriptor = openSync(file, 'r')
  try {
    const length = readSync(descriptor, header, 0, HEADER_BYTES, 0)
    if (length === 0) return
    if (!header.toString('latin1').startsWith('SQLite format 3\0')) throw foreign(file)
    // Pages that are in the log alone are missing from the file rightly.
    if (Bun.file(`${file}-wal`).size > 0) return
    const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
    const pages = header.readUInt32BE(24) === header.readUInt32BE(92) ? header.readUInt32BE(28) : 0
    if (fstatSync(descriptor).size < pages * pageBytes) throw damaged(file, 'it is cut short')
  } finally {
    closeSync(descriptor)
  }
}

/** Larger files are for `hopcode check`: a start looks at 16 MiB in about 15 ms. */
const LOOK_OVER_BYTES_MAX = 16 * 1024 * 1024

/** Throws DataError if the database's own structure is broken, where that is quick to see. */
export function refuseDamaged(db: Database): void {
  if (Bun.file(db.filename).size > LOOK_OVER_BYTES_MAX) return
  let found: unknown
  try {
    found = db.transaction(() => {
      // Begins to read: what another process changes from here on is not seen. A table that comes
      // while SQLite prepares the check would make it fail.
      db.query('PRAGMA schema_version').get()
      return db.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()?.quick_check
    })()
  } catch (error) {
    throw explain(error, db.filename)
  }
  if (found !== 'ok') throw damaged(db.filename, `SQLite finds ${String(found).split('\n').at(-1)}`)
}

const damaged = (file: string, why: string) =>
  new DataError(`${file} is damaged: ${why}. ${RUN_RESTORE}`)

const foreign = (file: string) => damaged(file, 'it is not an SQLite database')

function explain(error: unknown, file: string): Error {
  if (error instanceof DataError) return error
  const { code, message } = error as Error & { code?: string }
  if (code === 'SQLITE_NOTADB') return foreign(file)
  if (code?.startsWith('SQLITE_CORRUPT')) return damaged(file, message)
  // SQLite says that it cannot open a file for more reasons than a machine that fails.
  const failure = code === 'SQLITE_CANTOPEN' ? undefined : machineFailure(error)
  if (failure) return new DataError(`${file} cannot be opened: ${failure}.`, { cause: error })
  return new DataError(
    `${file} cannot be opened: ${message}. Is it a file that this user may read and write?`,
    { cause: error },
  )
}
