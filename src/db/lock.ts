import { Database } from 'bun:sqlite'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DataError } from './data-error.ts'

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
    let db: Database | undefined
    try {
      db = new Database(join(dataDir, 'serving.lock'), { create: true })
      db.run('PRAGMA busy_timeout = 0')
      db.run('BEGIN EXCLUSIVE')
      writeFileSync(pidFile, `${process.pid}\n`)
    } catch (cause) {
      db?.close()
      const { code, message } = cause as Error & { code?: string }
      const reason =
        code === 'SQLITE_BUSY'
          ? `is served by process ${readPid(pidFile)} already: stop it, or choose another DATA_DIR.`
          : `cannot be locked: ${message}. May this user write serving.lock and serving.pid there?`
      throw new DataError(`${dataDir} ${reason}`, { cause })
    }
    return new FolderLock(db)
  }

  release(): void {
    this.#db.run('ROLLBACK')
    this.#db.close()
  }
}

function readPid(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return 'unknown'
  }
}
