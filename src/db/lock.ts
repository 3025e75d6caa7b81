import { Database } from 'bun:sqlite'
import { constants, ftruncateSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from '../lib/data-error.ts'
import { diskRefusal } from '../lib/disk-refusal.ts'
import { openFile } from '../lib/open-file.ts'
import { NO_FOLLOW, refuseLink } from '../lib/symbolic-links.ts'

/** A command holds the lock for less, unless it restores a backup or waits for PostgreSQL. */
const COMMAND_MS = 2000
const RETRY_MS = 20

/**
 * Allows one process to write to a data folder: the service, or a command while no service runs. It
 * is SQLite's lock on an empty file, so the kernel releases it however the process ends.
 */
export class FolderLock implements Disposable {
  readonly #db: Database

  private constructor(db: Database) {
    this.#db = db
  }

  /** Throws DataError, which names the process that holds the lock. */
  static claim(dataDir: string): FolderLock {
    const lock = FolderLock.tryClaim(dataDir)
    if (lock) return lock
    throw new DataError(
      `${dataDir} is served by process ${readHolder(dataDir)} already: stop it, or choose ` +
        'another DATA_DIR.',
    )
  }

  /** Waits for a command that runs without the service. Throws DataError. */
  static async claimAfterCommand(dataDir: string): Promise<FolderLock> {
    const deadline = performance.now() + COMMAND_MS
    while (performance.now() < deadline) {
      const lock = FolderLock.tryClaim(dataDir)
      if (lock) return lock
      await Bun.sleep(RETRY_MS)
    }
    return FolderLock.claim(dataDir)
  }

  /** Undefined while another process holds the lock. Throws DataError if the disk refuses. */
  static tryClaim(dataDir: string): FolderLock | undefined {
    const pidFile = join(dataDir, 'serving.pid')
    refuseLink(join(dataDir, 'serving.lock'))
    let db: Database | undefined
    try {
      db = new Database(join(dataDir, 'serving.lock'), { create: true })
      db.run('PRAGMA busy_timeout = 0')
      // Nothing is ever written, and a full disk has no room for a journal file.
      db.run('PRAGMA journal_mode = MEMORY')
      db.run('BEGIN EXCLUSIVE')
      writePid(pidFile)
    } catch (cause) {
      db?.close()
      if ((cause as { code?: string }).code === 'SQLITE_BUSY') return undefined
      throw new DataError(`${dataDir} ${explain(cause)}`, { cause })
    }
    return new FolderLock(db)
  }

  release(): void {
    this.#db.run('ROLLBACK')
    this.#db.close()
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

function explain(cause: unknown): string {
  const refusal = diskRefusal(cause)
  if (refusal) return `cannot be locked: ${refusal}.`
  const { message } = cause as Error
  return `cannot be locked: ${message}. May this user write serving.lock and serving.pid there?`
}

/** Overwrites the file: on a full disk its block is the only one that is available. */
function writePid(path: string): void {
  using file = openFile(path, constants.O_WRONLY | constants.O_CREAT | NO_FOLLOW, 0o600)
  const { descriptor } = file
  try {
    const text = `${process.pid}\n`
    writeSync(descriptor, text, 0)
    ftruncateSync(descriptor, text.length)
  } catch (error) {
    // The lock works without it; the message of a second service then names no process.
    if (!diskRefusal(error)) throw error
    ftruncateSync(descriptor)
  }
}

/** The id of the process that has claimed the lock last. */
export function readHolder(dataDir: string): string {
  try {
    return readFileSync(join(dataDir, 'serving.pid'), 'utf8').trim() || 'unknown'
  } catch {
    return 'unknown'
  }
}
