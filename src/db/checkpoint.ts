import type { Database } from 'bun:sqlite'

/**
 * Pages in the write-ahead log at which it is folded in: 55 MiB. A bulk of 1,000 links among a
 * million writes 2,200 pages, nearly all of the two indexes in random order, and a page that
 * several bulks changed is written back once. With one more bulk the log is still below
 * `journal_size_limit`, and a start after a crash reads it in about 20 ms.
 */
const PAGES_MAX = 14_000
/** A log of this length or shorter is not folded in while there are no writes. */
const PAGES_AT_REST = 1000
/** If a reader blocks the checkpoint, the next attempt comes after so many more pages. */
const PAGES_MORE = 4096
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
 * Folds the write-ahead log into the database file between commits, after their responses are sent:
 * at PAGES_MAX, or REST_MS after the last commit. Replaces SQLite's automatic checkpoints, which
 * run inside a commit. A reader that always overlaps with another lets the log grow: 160 MiB were
 * measured beside long lists.
 */
export class Checkpoints {
  readonly #state
  readonly #run
  readonly #limits: typeof LIMITS
  #due: number
  #rest: Timer | undefined

  constructor(db: Database, limits = LIMITS) {
    this.#limits = limits
    this.#due = limits.pagesMax
    db.run('PRAGMA wal_autocheckpoint = 0')
    this.#state = db.prepare<LogState, []>('PRAGMA wal_checkpoint(NOOP)')
    this.#run = db.prepare<LogState, []>('PRAGMA wal_checkpoint(PASSIVE)')
  }

  /** Call it after each commit. Never throws: a log that is not folded in loses nothing. */
  afterCommit(): void {
    clearTimeout(this.#rest)
    const { log, checkpointed } = ask(this.#state)
    if (log < this.#limits.pagesMax) this.#due = this.#limits.pagesMax
    if (log >= this.#due) this.#fold()
    else if (log - checkpointed > this.#limits.pagesAtRest) {
      this.#rest = setTimeout(() => this.#fold(), this.#limits.restMs)
    }
  }

  close(): void {
    clearTimeout(this.#rest)
    this.#state.finalize()
    this.#run.finalize()
  }

  #fold(): void {
    this.#due = ask(this.#run).log + this.#limits.pagesMore
  }
}

function ask(statement: { get(): LogState | null }): LogState {
  try {
    return statement.get() ?? { log: 0, checkpointed: 0 }
  } catch {
    return { log: 0, checkpointed: 0 }
  }
}
