// Part of bench/load/create.ts: makes every commit of the service as slow as on a slow disk.
// bun --preload bench/load/slow-commit.ts src/main.ts serve
import { Database } from 'bun:sqlite'
import { pauseAfterCommit } from '../lib/disk-model.ts'

const { run } = Database.prototype

/** Only the writer thread runs this statement, at the end of each batch. */
Database.prototype.run = function (this: Database, sql, ...bindings) {
  const changes = run.call(this, sql, ...bindings)
  if (sql === 'COMMIT') pauseAfterCommit()
  return changes
}

/** A worker has its own classes and preloads only what its options name. */
globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, { ...options, preload: [import.meta.path] })
  }
}
