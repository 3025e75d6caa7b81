import type { Database } from 'bun:sqlite'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isKeyOf, readSecretKey, SecretHasher, secretFile } from '../accounts/secrets.ts'
import { versionOf } from '../db/migrate.ts'
import { openWritable, refuseUnusable } from '../db/open.ts'
import { SettingStore } from '../db/settings.ts'
import { journalFile } from '../hits/hits.ts'
import { adoptJournal } from '../hits/store.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { isoTime } from '../lib/clock.ts'
import { DataError, RUN_RESTORE } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { remakeAtStart } from '../qr/remake.ts'
import { type Manifest, newManifest, takeContents, unpackBackup } from './backup-file.ts'
import { checkDatabase } from './invariants.ts'
import { closeAlone, countContents, endVisits } from './store.ts'
import { beginRestore, decideRestore, discardRestore, nameAside } from './switch.ts'

/**
 * Checks a backup and makes it ready to take the place of what a data folder holds, the old files
 * to go to the folder `aside`. `from` names it in errors; the caller holds the folder's lock.
 * Throws DataError, with the folder as it was, when anything is wrong. Otherwise the restore is
 * decided, and `moves` carries it out.
 */
export async function decideOnBackup(
  source: AsyncIterable<Uint8Array>,
  { from, dataDir, aside }: { from: string; dataDir: string; aside: string },
): Promise<Manifest> {
  const folder = beginRestore(dataDir)
  try {
    await unpackBackup(source, from, join(folder, 'hopcode.db'))
    const manifest = prepareDatabase(folder, { from, dataDir })
    writeFileSync(nameAside(folder), aside, { flush: true })
    for (const name of ['hopcode.db', 'secret.key', 'hits.journal']) flushToDisk(join(folder, name))
    decideRestore(dataDir)
    return manifest
  } catch (error) {
    discardRestore(dataDir)
    throw error
  }
}

/**
 * Checks the unpacked database, puts the key beside it, and gives it a journal of its own. A
 * database without a key in it is one of this folder's, so the folder's key stays.
 */
function prepareDatabase(
  folder: string,
  { from, dataDir }: { from: string; dataDir: string },
): Manifest {
  const file = join(folder, 'hopcode.db')
  refuseUnusable(file)
  const db = openWritable(file)
  try {
    const contents = takeContents(db, from)
    const secretKey = contents?.secretKey ?? readFolderKey(dataDir, from)
    writeFileSync(secretFile(folder), secretKey, { mode: 0o600, flag: 'wx' })
    const hasher = new SecretHasher(readSecretKey(folder, { fresh: false }))
    for (const { status, says } of checkDatabase(db)) {
      if (status === 'problem') throw new DataError(`${from} is not restored: ${says}.`)
    }
    if (!isKeyOf(db, hasher)) {
      throw new DataError(`${from} is not restored: its secret.key is that of another database.`)
    }
    const manifest = contents?.manifest ?? manifestOf(db, from)
    using journal = JournalFile.open(journalFile(folder))
    adoptJournal(db, journal.id)
    remakeAtStart(new SettingStore(db))
    endVisits(db)
    closeAlone(db)
    return manifest
  } catch (error) {
    db.close()
    throw error
  }
}

function readFolderKey(dataDir: string, from: string): string {
  try {
    return readFileSync(secretFile(dataDir), 'utf8')
  } catch (cause) {
    throw new DataError(
      `${from} holds no secret key, and ${dataDir} has none either. ${RUN_RESTORE}`,
      { cause },
    )
  }
}

/** Of a database that is not a backup: it is as old as its file. */
const manifestOf = (db: Database, from: string): Manifest =>
  newManifest({
    hopcode: 'unknown',
    created_at: isoTime(statSync(from, { throwIfNoEntry: false })?.mtimeMs ?? 0),
    database_version: versionOf(db),
    ...countContents(db),
  })
