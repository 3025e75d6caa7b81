import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import {
  FOREIGN_ADVICE,
  foreignKey,
  isKeyOf,
  readSecretKey,
  SecretHasher,
} from '../accounts/secrets.ts'
import { MIGRATIONS, migrate, versionOf } from '../db/migrate.ts'
import { databaseFile, inTransaction, openReadonly, openWritable } from '../db/open.ts'
import { journalFile } from '../hits/hits.ts'
import { adoptJournal, findJournalPosition, hitAdder, type JournalPosition } from '../hits/store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { isoTime } from '../lib/clock.ts'
import { DataError } from '../lib/data-error.ts'
import { VERSION } from '../lib/version.ts'
import { addContents, type Manifest, newManifest } from './backup-file.ts'
import { closeAlone, copyDatabase, countContents } from './store.ts'

/** The journal of a backup's database: none, so that no file beside it is ever taken for it. */
const NO_JOURNAL = 'none'

/** Bytes of the database as it lies on the disk. Throws DataError where there is none. */
export function databaseBytes(dataDir: string): number {
  const file = databaseFile(dataDir)
  const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size(file) === 0) {
    throw new DataError(`${file} is missing: there is nothing to back up. Is DATA_DIR right?`)
  }
  return size(file) + size(`${file}-wal`)
}

/**
 * Makes the database of a backup, all of one moment, as the new file `copy`. A service may be
 * serving the folder meanwhile; nothing in it waits. The copy holds every change acknowledged and
 * every redirect served before `now`, and refers to no journal. Throws DataError.
 */
export function takeSnapshot(dataDir: string, copy: string, now: number): Manifest {
  const file = databaseFile(dataDir)
  // Before the copy: what the service counts in between is in both, and told apart by its position.
  const waiting = findWaiting(dataDir, file)
  const key = readSecretKey(dataDir, { fresh: false })
  // Created here, so that others can never read it.
  closeSync(openSync(copy, 'wx', 0o600))
  copyDatabase(file, copy)
  const db = openWritable(copy)
  try {
    // Counting takes the newest tables. An older folder's copy gets them here, the folder later.
    migrate(db, MIGRATIONS, { isCopy: true })
    if (!isKeyOf(db, new SecretHasher(key)))
      throw new DataError(`${foreignKey(dataDir)} ${FOREIGN_ADVICE}`)
    inTransaction(db, () => {
      countWaiting(hitAdder(db), findJournalPosition(db), waiting)
      adoptJournal(db, NO_JOURNAL)
    })
    const facts = { database_version: versionOf(db), ...countContents(db) }
    const manifest = newManifest({ hopcode: VERSION, created_at: isoTime(now), ...facts })
    addContents(db, manifest, `${key.toString('hex')}\n`)
    closeAlone(db)
    return manifest
  } catch (error) {
    db.close()
    throw error
  }
}

/** Hits that the database did not count yet: those at `mark.position` and after. */
export interface Waiting {
  mark: JournalPosition
  linkIds: Uint32Array
}

function findWaiting(dataDir: string, file: string): Waiting | undefined {
  const db = openReadonly(file, { cacheKiB: 1024 })
  try {
    refuseForeignVersion(versionOf(db), file)
    const mark = findJournalPosition(db)
    if (!mark || !existsSync(journalFile(dataDir))) return undefined
    using journal = JournalFile.open(journalFile(dataDir))
    if (journal.id !== mark.journalId) return undefined
    // The last entry may have been half written. Read again, all that were there are whole.
    const { length } = journal.recover(mark.position).linkIds
    return { mark, linkIds: journal.recover(mark.position).linkIds.subarray(0, length) }
  } finally {
    db.close()
  }
}

/**
 * Adds to a copy the hits that it lacks, where `copied` is how far it had counted. Between the two
 * positions a service counts entry by entry, so the first of the waiting ones are the counted ones.
 */
export function countWaiting(
  add: ReturnType<typeof hitAdder>,
  copied: JournalPosition | undefined,
  waiting: Waiting | undefined,
): void {
  if (!waiting || copied?.journalId !== waiting.mark.journalId) return
  const counted = copied.position - waiting.mark.position
  add({ linkIds: waiting.linkIds.subarray(counted), end: copied.position })
}

function refuseForeignVersion(version: number, file: string): void {
  if (version > MIGRATIONS.length) {
    throw new DataError(
      `${file} was written by a newer Hopcode (version ${version}; this one knows ` +
        `${MIGRATIONS.length}): back it up with that.`,
    )
  }
  if (version === 0) throw new DataError(`${file} is not a database of Hopcode.`)
}
