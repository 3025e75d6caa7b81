import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import {
  FOREIGN_ADVICE,
  foreignKey,
  isKeyOf,
  readSecretKey,
  SecretHasher,
} from '../accounts/secrets.ts'
import { removeLogPosition } from '../cluster/position.ts'
import { requirePosition } from '../cluster/setup.ts'
import { DATABASE_VERSION, migrate, versionOf } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations.gen.ts'
import {
  copyDatabase,
  databaseFile,
  inTransaction,
  openReadonly,
  openWritable,
} from '../db/open.ts'
import { isTooOld, tooOld } from '../db/unreleased.ts'
import { journalFile } from '../hits/hits.ts'
import { adoptJournal, findJournalPosition, hitAdder, type JournalPosition } from '../hits/store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { DataError } from '../lib/data-error.ts'
import { VERSION } from '../lib/version.ts'
import { addContents, closeAlone, type Manifest, newManifest } from './backup-file.ts'

/** The journal id in a backup's database. It matches no file. */
const NO_JOURNAL = 'none'

/** Bytes of the database on the disk, with its log. Throws DataError if there is no database. */
export function databaseBytes(dataDir: string): number {
  const file = databaseFile(dataDir)
  const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size(file) === 0) {
    throw new DataError(`${file} is missing: there is nothing to back up. Is DATA_DIR right?`)
  }
  return size(file) + size(`${file}-wal`)
}

/**
 * Creates the database of a backup, as of one moment, as the new file `copy`, also while a service
 * uses the folder. The copy contains every change acknowledged and every redirect served before
 * `now`, refers to no journal, and belongs to no cluster. `forJoin`: for a further host of the
 * cluster. The copy then keeps its place in the log, which counts the other redirects. Throws
 * DataError.
 */
export function takeSnapshot(
  dataDir: string,
  copy: string,
  now: number,
  { forJoin = false }: { forJoin?: boolean } = {},
): Manifest {
  const file = databaseFile(dataDir)
  // Before the copy. Hits that the service counts in between are in both; the position in the copy
  // shows which ones.
  const pending = findPending(dataDir, file)
  const key = readSecretKey(dataDir, { fresh: false })
  // Created here with its mode, so that other users can never read it.
  closeSync(openSync(copy, 'wx', 0o600))
  copyDatabase(file, copy)
  const db = openWritable(copy)
  try {
    // Counting needs the newest tables. Only the copy is upgraded here.
    migrate(db, MIGRATIONS, { isCopy: true })
    if (!isKeyOf(db, new SecretHasher(key)))
      throw new DataError(`${foreignKey(dataDir)} ${FOREIGN_ADVICE}`)
    if (forJoin) requirePosition({ db, dataDir })
    inTransaction(db, () => {
      if (!forJoin) {
        addPending(hitAdder(db), findJournalPosition(db), pending)
        removeLogPosition(db)
      }
      adoptJournal(db, NO_JOURNAL)
    })
    const manifest = newManifest(db, VERSION, now)
    addContents(db, manifest, `${key.toString('hex')}\n`)
    closeAlone(db)
    return manifest
  } catch (error) {
    db.close()
    throw error
  }
}

/** Hits that the database has not counted yet: the entries from `mark.position` on. */
interface Pending {
  mark: JournalPosition
  linkIds: Uint32Array
}

function findPending(dataDir: string, file: string): Pending | undefined {
  using db = openReadonly(file, { cacheKiB: 1024 })
  refuseForeignVersion(versionOf(db), file)
  const mark = findJournalPosition(db)
  if (!mark || !existsSync(journalFile(dataDir))) return undefined
  using journal = JournalFile.open(journalFile(dataDir))
  if (journal.id !== mark.journalId) return undefined
  // The last entries may be half written. On the second read, all entries of the first are whole.
  const { length } = journal.recover(mark.position)
  return { mark, linkIds: journal.recover(mark.position).subarray(0, length) }
}

/**
 * Adds to a copy the hits that it lacks; `copied` is the position up to which it had counted. A
 * service counts the entries of the journal in order, so the copy has the first pending ones.
 */
export function addPending(
  add: ReturnType<typeof hitAdder>,
  copied: JournalPosition | undefined,
  pending: Pending | undefined,
): void {
  if (!pending || copied?.journalId !== pending.mark.journalId) return
  const counted = copied.position - pending.mark.position
  add({ linkIds: pending.linkIds.subarray(counted), end: copied.position })
}

function refuseForeignVersion(version: number, file: string): void {
  if (version > DATABASE_VERSION) {
    throw new DataError(
      `${file} was written by a newer Hopcode (version ${version}; this one knows ` +
        `${DATABASE_VERSION}): back it up with that.`,
    )
  }
  if (isTooOld(version)) throw new DataError(`${file} ${tooOld(version)}`)
  if (version === 0) throw new DataError(`${file} is not a database of Hopcode.`)
}
