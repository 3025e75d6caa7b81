import type { Database } from 'bun:sqlite'
import type { CodeVersions } from '../hot/code-versions.ts'

/**
 * HOT PATH. One read transaction for the look-ups of a tick of the event loop: SQLite's locks are a
 * third of the time. It begins anew after each change of a link, so that a row is never older than
 * the version under which it is cached. `db` must be used for nothing else (decision
 * 079).
 */
export class LookupTransaction {
  readonly #db: Database
  readonly #versions: Pick<CodeVersions, 'changes'>
  readonly #begin
  readonly #commit
  #isOpen = false
  #isEndScheduled = false
  /** Read before the transaction began. */
  #changes = 0

  constructor(db: Database, versions: Pick<CodeVersions, 'changes'>) {
    this.#db = db
    this.#versions = versions
    this.#begin = db.prepare('BEGIN')
    this.#commit = db.prepare('COMMIT')
  }

  /** Call it after the version of a key was read, and before its row is. */
  renew(): void {
    const { changes } = this.#versions
    this.#endLater()
    if (this.#isOpen) {
      if (changes === this.#changes) return
      this.#end()
    }
    this.#changes = changes
    this.#begin.run()
    this.#isOpen = true
  }

  #endLater(): void {
    if (this.#isEndScheduled) return
    this.#isEndScheduled = true
    setImmediate(() => {
      this.#isEndScheduled = false
      try {
        if (this.#isOpen) this.#end()
      } catch {
        // The tick of the next look-up tries again.
      }
    })
  }

  /** Closes the connection. A transaction that it left open would hold up checkpoints. */
  close(): void {
    this.#end()
    this.#db.close()
  }

  #end(): void {
    // SQLite ends a transaction itself after some failures of the disk.
    if (this.#db.inTransaction) this.#commit.run()
    this.#isOpen = false
  }
}
