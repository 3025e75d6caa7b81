import { type BigIntStats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HitJournal } from '../hot/journal.ts'
import { SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

/** Files that the service keeps open, under the same names, as long as it runs. */
const WATCHED = ['hopcode.db', 'hopcode.db-wal', 'hopcode.db-shm', 'hits.journal', 'serving.lock']
const JOURNAL = 'hits.journal'

interface DataWatchOptions {
  dataDir: string
  journal: Pick<HitJournal, 'restoreLength'>
  log: Log
}

type FileIdentity = Pick<BigIntStats, 'dev' | 'ino' | 'size'>

/**
 * Notices within a second when a file of the data folder is deleted, replaced or truncated while
 * the service has it open: later writes to it would be lost at the next start. Compares device,
 * inode and size by path. Never opens the database: closing that descriptor would release SQLite's
 * locks (decision 15).
 */
export class DataWatch {
  readonly #options: DataWatchOptions
  readonly #opened = new Map<string, FileIdentity>()
  #problem: string | undefined
  /** The last check found the journal at another length than at the start. */
  #isCut = false
  #timer: Timer | undefined
  #isClosed = false

  /** Call it when every file is open. */
  constructor(options: DataWatchOptions) {
    this.#options = options
    for (const name of WATCHED) {
      const file = join(options.dataDir, name)
      const found = statSync(file, { bigint: true, throwIfNoEntry: false })
      // If the database is a symbolic link, its write-ahead log is beside the link's target.
      if (found) this.#opened.set(name, found)
    }
    this.#schedule()
  }

  /** Why writes would be lost; undefined while every file is the one that was opened. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Runs every second. Throws nothing. */
  async check(): Promise<void> {
    let problem: string | undefined
    for (const [name, opened] of this.#opened) {
      const file = join(this.#options.dataDir, name)
      const found = await identify(file)
      if (this.#isClosed) return
      // A failing disk is reported by reads and writes.
      if (found === 'unknown') continue
      if (!found) problem ??= `${file} was deleted while the service runs`
      else if (found.dev !== opened.dev || found.ino !== opened.ino) {
        problem ??= `${file} was replaced while the service runs`
      } else if (name === JOURNAL) this.#keepLength(file, found.size, opened.size)
    }
    this.#report(problem)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    this.#timer = setTimeout(async () => {
      await this.check()
      if (!this.#isClosed) this.#schedule()
    }, SECOND).unref()
  }

  #report(problem: string | undefined): void {
    const { log } = this.#options
    if (problem === this.#problem) return
    this.#problem = problem
    if (problem) log.error('data.file_replaced', { problem, effect: 'writes are refused' })
    else log.info('data.file_restored')
  }

  /** An append to a page past the end of the file would end the process with SIGBUS. */
  #keepLength(file: string, found: bigint, opened: bigint): void {
    const { journal, log } = this.#options
    const wasCut = this.#isCut
    this.#isCut = found !== opened
    if (!this.#isCut) return
    try {
      journal.restoreLength(file)
      log.error('hits.journal_cut', {
        file,
        bytes: Number(found),
        effect: 'its length is restored',
      })
    } catch (error) {
      // Retried every second, reported once.
      if (!wasCut) log.error('hits.journal_cut', { file, bytes: Number(found) }, error)
    }
  }
}

/** Undefined: no file has this name. */
const identify = (file: string): Promise<FileIdentity | 'unknown' | undefined> =>
  stat(file, { bigint: true }).catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT' || code === 'ENOTDIR' ? undefined : 'unknown',
  )
