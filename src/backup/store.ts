import { Database } from 'bun:sqlite'
import { rmSync, statSync } from 'node:fs'
import { BUSY_TIMEOUT_MS, closeWritable } from '../db/open.ts'
import { assert } from '../lib/assert.ts'

/** A copy reads each page once: a cache would only take memory from the service beside it. */
const CACHE_KIB = 4096

/**
 * Writes a copy of a database, all of one moment, to `to`, which must be an empty file. Neither
 * readers nor the writer wait for it.
 */
export function copyDatabase(file: string, to: string): void {
  // SQLite takes VACUUM INTO for a write where `query_only` is set.
  const db = new Database(file, { readonly: true, strict: true })
  try {
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
    db.run(`PRAGMA cache_size = -${CACHE_KIB}`)
    db.query('VACUUM INTO ?').run(to)
  } finally {
    db.close()
  }
}

/** Closes a writing connection, the only one, and leaves one file with none beside it. */
export function closeAlone(db: Database): void {
  const file = db.filename
  closeWritable(db)
  const left = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  assert(left === 0, 'a closed database is whole without its log')
  for (const companion of ['-wal', '-shm']) rmSync(`${file}${companion}`, { force: true })
}

export interface Counts {
  accounts: number
  links: number
  redirects: number
}

export function countContents(db: Database): Counts {
  const counts = db
    .query<Counts, []>(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM links) AS links,
              coalesce((SELECT redirects FROM hit_totals WHERE id = 1), 0) AS redirects`,
    )
    .get()
  return counts ?? { accounts: 0, links: 0, redirects: 0 }
}

/**
 * Whoever signed out or used a one-time link since the backup would be let in again: everybody
 * signs in anew.
 */
export function endVisits(db: Database): void {
  const has = db.prepare<{ name: string }, [string]>(
    'SELECT name FROM sqlite_schema WHERE name = ?',
  )
  for (const table of ['sessions', 'one_time_links']) {
    if (has.get(table)) db.run(`DELETE FROM ${table}`)
  }
}
