import type { Database } from 'bun:sqlite'

/**
 * Pages in the write-ahead log before they are folded in. A bulk of 1,000 links among a million
 * puts 2,200 pages there, nearly all of the two indexes whose order is random, and a page that
 * several bulks changed is folded in once. With one bulk more the log is still shorter than
 * `journal_size_limit`, and a start after a crash reads it in some 20 ms.
 */
const PAGES_MAX = 14_000
/** A log so short is left as it is while nobody writes. */
const PAGES_AT_REST = 1000
/** Where a reader holds the log, it is not tried again for every commit. */
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
 * Folds the write-ahead log into the database file between commits, after their answers have left:
 * at PAGES_MAX, or when no commit has come for REST_MS. Takes the place of SQLite's own
 * checkpoints, which run inside a commit.
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

  /** Call it after each commit. Never throws: a log that cannot be folded in is whole as it is. */
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
