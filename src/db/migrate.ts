import type { Database } from 'bun:sqlite'
import { renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import links from '../../drizzle/0000_links.sql' with { type: 'text' }
import search from '../../drizzle/0001_search.sql' with { type: 'text' }
import dashboard from '../../drizzle/0002_dashboard.sql' with { type: 'text' }
import hitSeries from '../../drizzle/0003_hit_series.sql' with { type: 'text' }
import linkChanges from '../../drizzle/0004_link_changes.sql' with { type: 'text' }
import abuseProtection from '../../drizzle/0005_abuse_protection.sql' with { type: 'text' }
import searchIndex from '../../drizzle/0006_search_index.sql' with { type: 'text' }
import hitBuckets from '../../drizzle/0007_hit_buckets.sql' with { type: 'text' }
import linkProperties from '../../drizzle/0008_link_properties.sql' with { type: 'text' }
import cluster from '../../drizzle/0009_cluster.sql' with { type: 'text' }
import linkColumns from '../../drizzle/0010_link_columns.sql' with { type: 'text' }
import noIndex from '../../drizzle/0011_no_index.sql' with { type: 'text' }
import hitsOfAccounts from '../../drizzle/0012_hits_of_accounts.sql' with { type: 'text' }
import visits from '../../drizzle/0013_visits.sql' with { type: 'text' }
import aliases from '../../drizzle/0014_aliases.sql' with { type: 'text' }
import dropCommandResults from '../../drizzle/0015_drop_command_results.sql' with { type: 'text' }
import sharedPages from '../../drizzle/0016_shared_pages.sql' with { type: 'text' }
import noRunningDigest from '../../drizzle/0017_no_running_digest.sql' with { type: 'text' }
import accountImports from '../../drizzle/0018_account_imports.sql' with { type: 'text' }
import { fileTime, wallClock } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { copyDatabase, inTransaction, refuseDamaged } from './open.ts'

/** In order, and embedded in the binary. Released migrations never change. */
export const MIGRATIONS: readonly { name: string; sql: string }[] = [
  { name: '0000_links', sql: links },
  { name: '0001_search', sql: search },
  { name: '0002_dashboard', sql: dashboard },
  { name: '0003_hit_series', sql: hitSeries },
  { name: '0004_link_changes', sql: linkChanges },
  { name: '0005_abuse_protection', sql: abuseProtection },
  { name: '0006_search_index', sql: searchIndex },
  { name: '0007_hit_buckets', sql: hitBuckets },
  { name: '0008_link_properties', sql: linkProperties },
  { name: '0009_cluster', sql: cluster },
  { name: '0010_link_columns', sql: linkColumns },
  { name: '0011_no_index', sql: noIndex },
  { name: '0012_hits_of_accounts', sql: hitsOfAccounts },
  { name: '0013_visits', sql: visits },
  { name: '0014_aliases', sql: aliases },
  { name: '0015_drop_command_results', sql: dropCommandResults },
  { name: '0016_shared_pages', sql: sharedPages },
  { name: '0017_no_running_digest', sql: noRunningDigest },
  { name: '0018_account_imports', sql: accountImports },
]

/** The number of migrations applied to the file, in SQLite's `user_version`. */
export function versionOf(db: Database): number {
  return db.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
}

/**
 * Upgrades the database to the newest version in one transaction. Unless it is a copy itself, it is
 * copied first, as `<file>.before-<version>-<time>`. Throws DataError if the file is damaged, or
 * newer than this program.
 */
export function migrate(
  db: Database,
  migrations = MIGRATIONS,
  { isCopy = false }: { isCopy?: boolean } = {},
): void {
  refuseDamaged(db)
  const found = versionOf(db)
  if (found === migrations.length) return
  if (found > migrations.length) {
    throw new DataError(
      `${db.filename} was written by a newer Hopcode (version ${found}; this one knows ` +
        `${migrations.length}). Start the newer program, or run "hopcode restore" with the ` +
        'copy that the upgrade left (hopcode.db.before-…) or with an older backup.',
    )
  }
  if (found > 0 && !isCopy) copyBeside(db.filename, found)
  inTransaction(db, () => {
    for (const { sql } of migrations.slice(found)) db.run(sql)
    db.run(`PRAGMA user_version = ${migrations.length}`)
  })
}

function copyBeside(file: string, version: number): void {
  const copy = `${file}.before-${version + 1}-${fileTime(wallClock())}`
  // Only a complete copy gets the name: a full disk or a kill may interrupt it.
  const unfinished = `${file}.before-${version + 1}.unfinished`
  rmSync(unfinished, { force: true })
  copyDatabase(file, unfinished)
  renameSync(unfinished, copy)
  flushToDisk(dirname(copy))
}
