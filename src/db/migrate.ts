import type { Database } from 'bun:sqlite'
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileTime, wallClock } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { MIGRATIONS } from './migrations.gen.ts'
import { copyDatabase, inTransaction, refuseDamaged } from './open.ts'
import { isTooOld, LAST_UNRELEASED, tooOld } from './unreleased.ts'

/** The version of a database to which all migrations were applied. */
export const DATABASE_VERSION = LAST_UNRELEASED + MIGRATIONS.length

/** The version of a database, in SQLite's `user_version`; 0 for an empty one. */
export function versionOf(db: Database): number {
  return db.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
}

/**
 * Upgrades the database to the newest version in one transaction. Unless it is a copy itself, it is
 * copied first, as `<file>.before-<version>-<time>`. Throws DataError if the file is damaged, newer
 * than this program, or too old for it.
 */
export function migrate(
  db: Database,
  migrations = MIGRATIONS,
  { isCopy = false }: { isCopy?: boolean } = {},
): void {
  refuseDamaged(db)
  const found = versionOf(db)
  const version = LAST_UNRELEASED + migrations.length
  if (found === version) return
  if (found > version) {
    throw new DataError(
      `${db.filename} was written by a newer Hopcode (version ${found}; this one knows ` +
        `${version}). Start the newer program. Or return to the state before the upgrade: ` +
        `hopcode restore ${findCopy(db.filename, version) ?? 'with a backup of this release'}`,
    )
  }
  if (isTooOld(found)) throw new DataError(`${db.filename} ${tooOld(found)}`)
  if (found > 0 && !isCopy) copyBeside(db.filename, version)
  inTransaction(db, () => {
    const applied = found === 0 ? 0 : found - LAST_UNRELEASED
    for (const { sql } of migrations.slice(applied)) db.run(sql)
    db.run(`PRAGMA user_version = ${version}`)
  })
}

/** The newest copy that an upgrade left beside the file and that `version` can read. */
function findCopy(file: string, version: number): string | undefined {
  const copies = readdirSync(dirname(file)).flatMap((name) => {
    const [, upgradedTo] = /\.before-(\d+)-[\dTZ.]+$/.exec(name) ?? []
    const isOwn = name.startsWith(`${basename(file)}.before-`)
    return isOwn && Number(upgradedTo) > version ? { name, upgradedTo: Number(upgradedTo) } : []
  })
  // The first upgrade beyond `version` has left the database of `version`, the later ones have not.
  const first = Math.min(...copies.map(({ upgradedTo }) => upgradedTo))
  const names = copies.filter(({ upgradedTo }) => upgradedTo === first).map(({ name }) => name)
  const newest = names.sort().at(-1)
  return newest && join(dirname(file), newest)
}

function copyBeside(file: string, version: number): void {
  const copy = `${file}.before-${version}-${fileTime(wallClock())}`
  // Only a complete copy gets the name: a full disk or a kill may interrupt it.
  const unfinished = `${file}.before-${version}.unfinished`
  rmSync(unfinished, { force: true })
  copyDatabase(file, unfinished)
  renameSync(unfinished, copy)
  flushToDisk(dirname(copy))
}
