import { Database } from 'bun:sqlite'
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../lib/data-error.ts'
import { diskRefusal } from '../lib/disk-refusal.ts'
import { NO_FOLLOW, refuseLink } from '../lib/symbolic-links.ts'

/**
 * One service per data folder: two would write one journal. The lock is SQLite's own on a file that
 * holds nothing, so the kernel gives it back however the process ends. Commands beside the service
 * do not take it.
 */
export class FolderLock {
  readonly #db: Database

  private constructor(db: Database) {
    this.#db = db
  }

  /** Throws DataError, naming the process that serves the folder already. */
  static claim(dataDir: string): FolderLock {
    const pidFile = join(dataDir, 'serving.pid')
    refuseLink(join(dataDir, 'serving.lock'))
    let db: Database | undefined
    try {
      db = new Database(join(dataDir, 'serving.lock'), { create: true })
      db.run('PRAGMA busy_timeout = 0')
      // Nothing is ever written: a journal file would only need room, which a full disk lacks.
      db.run('PRAGMA journal_mode = MEMORY')
      db.run('BEGIN EXCLUSIVE')
      writePid(pidFile)
    } catch (cause) {
      db?.close()
      throw new DataError(`${dataDir} ${explain(cause, pidFile)}`, { cause })
    }
    return new FolderLock(db)
  }

  release(): void {
    this.#db.run('ROLLBACK')
    this.#db.close()
  }
}

function explain(cause: unknown, pidFile: string): string {
  const { code, message } = cause as Error & { code?: string }
  if (code === 'SQLITE_BUSY') {
    return `is served by process ${readPid(pidFile)} already: stop it, or choose another DATA_DIR.`
  }
  const refusal = diskRefusal(cause)
  if (refusal) return `cannot be locked: ${refusal}.`
  return `cannot be locked: ${message}. May this user write serving.lock and serving.pid there?`
}

/** Written in place: on a full disk the block that the file has is the only one it can get. */
function writePid(file: string): void {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT | NO_FOLLOW, 0o600)
  try {
    const text = `${process.pid}\n`
    writeSync(descriptor, text, 0)
    ftruncateSync(descriptor, text.length)
  } catch (error) {
    // Without room the message of a second service names no process; the lock holds all the same.
    if (!diskRefusal(error)) throw error
    ftruncateSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

function readPid(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim() || 'unknown'
  } catch {
    return 'unknown'
  }
}
