import type { Database } from 'bun:sqlite'
import { BUSY_TIMEOUT_MS } from './open.ts'

/**
 * Pages in the write-ahead log at which it is checkpointed: 55 MiB. A bulk of 1,000 links among a
 * million writes 2,200 pages, nearly all of the two indexes in random order, and a page that
 * several bulks changed is written back once. With one more bulk the log is still below
 * `journal_size_limit`, and a start after a crash reads it in about 20 ms.
 */
const PAGES_MAX = 14_000
/** A log of this length or shorter is not checkpointed while there are no writes. */
const PAGES_AT_REST = 1000
/** If a reader blocks the checkpoint, the next attempt follows after this many more pages. */
const PAGES_MORE = 4096
/** Maximum wait of a checkpoint for readers of a full log. Lists read for 3 ms at a time. */
const READERS_WAIT_MS = 50
const REST_MS = 100

const LIMITS = {
  pagesMax: PAGES_MAX,
  pagesAtRest: PAGES_AT_REST,
  pagesMore: PAGES_MORE,
  restMs: REST_MS,
}

interface LogState {
  /** Pages in the log, and how many of them are in the database file too. */
  log: number
  checkpointed: number
}

/**
 * Checkpoints the write-ahead log between commits, after their responses are sent: at PAGES_MAX, or
 * REST_MS after the last commit. Replaces SQLite's automatic checkpoints, which run inside a
 * commit, and which let the log grow without end while readers overlap: a log is written from its
 * beginning again only when no reader uses it. At PAGES_MAX this class waits for that moment.
 */
export class Checkpoints {
  readonly #db: Database
  readonly #state
  readonly #run
  readonly #runAndWait
  readonly #limits: typeof LIMITS
  #due: number
  #rest: Timer | undefined

  constructor(db: Database, limits = LIMITS) {
    this.#db = db
    this.#limits = limits
    this.#due = limits.pagesMax
    db.run('PRAGMA wal_autocheckpoint = 0')
    this.#state = db.prepare<LogState, []>('PRAGMA wal_checkpoint(NOOP)')
    this.#run = db.prepare<LogState, []>('PRAGMA wal_checkpoint(PASSIVE)')
    this.#runAndWait = db.prepare<LogState, []>('PRAGMA wal_checkpoint(RESTART)')
  }

  /** Call it after each commit. Never throws: without a checkpoint, nothing is lost. */
  afterCommit(): void {
    clearTimeout(this.#rest)
    const { log, checkpointed } = ask(this.#state)
    if (log < this.#limits.pagesMax) this.#due = this.#limits.pagesMax
    if (log >= this.#due) this.#restart()
    else if (log - checkpointed > this.#limits.pagesAtRest) {
      this.#rest = setTimeout(() => this.#fold(), this.#limits.restMs)
    }
  }

  close(): void {
    clearTimeout(this.#rest)
    this.#state.finalize()
    this.#run.finalize()
    this.#runAndWait.finalize()
  }

  /** Checkpoints. The next commit writes from the beginning of the log if no reader uses it. */
  #fold(): void {
    ask(this.#run)
  }

  /** Checkpoints and waits until no reader uses the log, at most READERS_WAIT_MS. */
  #restart(): void {
    this.#fold()
    this.#db.run(`PRAGMA busy_timeout = ${READERS_WAIT_MS}`)
    this.#due = ask(this.#runAndWait).log + this.#limits.pagesMore
    this.#db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

function ask(statement: { get(): LogState | null }): LogState {
  try {
    return statement.get() ?? { log: 0, checkpointed: 0 }
  } catch {
    return { log: 0, checkpointed: 0 }
  }
}
