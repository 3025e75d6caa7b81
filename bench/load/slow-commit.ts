// Part of bench/load/create.ts: makes every commit of the service last as on a slow disk.
// bun --preload bench/load/slow-commit.ts src/main.ts serve
import { Database } from 'bun:sqlite'
import { pauseAfterCommit } from '../lib/disk-model.ts'

const { run } = Database.prototype

/** The writer thread ends each batch by this very statement, and nothing else does. */
Database.prototype.run = function (this: Database, sql, ...bindings) {
  const changes = run.call(this, sql, ...bindings)
  if (sql === 'COMMIT') pauseAfterCommit()
  return changes
}

/** A thread has classes of its own, and Bun loads nothing into it that is not asked for. */
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, { ...options, preload: [import.meta.path] })
  }
}
