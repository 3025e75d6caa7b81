import { constants, Database } from 'bun:sqlite'
import { accessSync, existsSync, fstatSync, readSync, constants as rights } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DataError, RUN_RESTORE } from '../lib/data-error.ts'
import { machineFailure } from '../lib/disk-refusal.ts'
import { openFile } from '../lib/open-file.ts'

/** How long a connection waits for a lock of another program. */
export const BUSY_TIMEOUT_MS = 5000
/** The write-ahead log is cut back to this size after a checkpoint. */
const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
/** A larger cache saves no time: other pages are in the operating system's cache. */
const WRITER_CACHE_KIB = 16_384

/** A reader that opens or closes the database may lock the file for a moment. */
const BUSY_PAUSE_MS = 10
const CHECKPOINT_TRIES = 50

export const databaseFile = (dataDir: string): string => join(dataDir, 'hopcode.db')

/**
 * Throws DataError for a file that SQLite would accept silently: lost, foreign or cut off.
 *
 * Call it only while this process has no connection to the file. Closing a file releases all locks
 * of the process on it (https://sqlite.org/howtocorrupt.html, 2.2). Another program that reads the
 * database would then delete the write-ahead log, with the changes in it.
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

/** A writing connection in WAL mode. A commit returns when it is on the disk. */
export function openWritable(file: string): Database {
  let db: Database | undefined
  try {
    db = new Database(file, { create: true, readwrite: true, strict: true })
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = FULL')
    db.run(`PRAGMA journal_size_limit = ${JOURNAL_SIZE_LIMIT_BYTES}`)
    db.run(`PRAGMA cache_size = -${WRITER_CACHE_KIB}`)
    db.run('PRAGMA temp_store = MEMORY')
    // Keeps the empty log and its shared memory (32 KiB) when the last connection closes. The next
    // start needs both for any read, and could not create them on a full disk.
    db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
    requirePragmas(db, file, {
      busy_timeout: BUSY_TIMEOUT_MS,
      journal_mode: 'wal',
      synchronous: 2,
      journal_size_limit: JOURNAL_SIZE_LIMIT_BYTES,
    })
  } catch (error) {
    db?.close()
    throw explain(error, file)
  }
  return db
}

/** Checkpoints and closes a writing connection: the database file alone is then complete. */
export function closeWritable(db: Database): void {
  try {
    // SQLite does not do this in `close` while statements exist that are not collected yet.
    const checkpoint = db.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)')
    for (let tries = 0; tries < CHECKPOINT_TRIES && checkpoint.get()?.busy; tries++) {
      Bun.sleepSync(BUSY_PAUSE_MS)
    }
  } catch {
    // If the disk refuses, the file and its log together are complete.
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

/** Runs `work` as one transaction that has the write lock from its start. */
export function inTransaction<Result>(db: Database, work: () => Result): Result {
  return db.transaction(work).immediate()
}

/** SQLite ignores a pragma that it cannot apply, so the values are read back. */
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

/** Files that a service creates after the database. */
const COMPANIONS = ['secret.key', 'hits.journal']

/** SQLite would create an empty database and delete the log of the lost one. */
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

/** SQLite ignores a log with another header, and all changes in it. */
function refuseForeignLog(file: string): void {
  const log = `${file}-wal`
  if (!(Bun.file(log).size > 0)) return
  const { header } = readHeader(log, WAL_HEADER_BYTES)
  // After a loss of power, a log that was just created may consist of zeros.
  const isKnown = WAL_MAGIC.includes(header.readUInt32BE(0)) || header.every((byte) => byte === 0)
  if (!isKnown) throw damaged(log, 'it is not the log of an SQLite database')
}

/** First bytes of a database and of its log: https://sqlite.org/fileformat.html, 1.3 and 4.1. */
const HEADER_BYTES = 100
const WAL_HEADER_BYTES = 32
const WAL_MAGIC = [0x377f0682, 0x377f0683]

function refuseForeignFile(file: string): void {
  // SQLite repairs a file that a loss of power tore while it was created.
  if (!existsSync(file) || Bun.file(`${file}-journal`).size > 0) return
  accessSync(file, rights.R_OK | rights.W_OK)
  const { header, length, fileBytes } = readHeader(file, HEADER_BYTES)
  if (length === 0) return
  if (!header.toString('latin1').startsWith('SQLite format 3\0')) throw foreign(file)
  // While there is a log, the file may lack pages: they are in the log.
  if (Bun.file(`${file}-wal`).size > 0) return
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  const pages = header.readUInt32BE(24) === header.readUInt32BE(92) ? header.readUInt32BE(28) : 0
  if (fileBytes < pages * pageBytes) throw damaged(file, 'it is cut short')
}

function readHeader(file: string, bytes: number) {
  const header = Buffer.alloc(bytes)
  using opened = openFile(file, 'r')
  const length = readSync(opened.descriptor, header, 0, bytes, 0)
  return { header, length, fileBytes: fstatSync(opened.descriptor).size }
}

/** A start checks 16 MiB in about 15 ms. Larger files are left to `hopcode check`. */
const CHECKED_BYTES_MAX = 16 * 1024 * 1024

/** Throws DataError if the structure of the database is damaged. Large files are not checked. */
export function refuseDamaged(db: Database): void {
  if (Bun.file(db.filename).size > CHECKED_BYTES_MAX) return
  let found: unknown
  try {
    found = db.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()?.quick_check
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
  // SQLite reports SQLITE_CANTOPEN for other reasons than a failing machine, too.
  const failure = code === 'SQLITE_CANTOPEN' ? undefined : machineFailure(error)
  if (failure) return new DataError(`${file} cannot be opened: ${failure}.`, { cause: error })
  return new DataError(
    `${file} cannot be opened: ${message}. Is it a file that this user may read and write?`,
    { cause: error },
  )
}
