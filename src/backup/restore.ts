import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isKeyOf, readSecretKey, SecretHasher } from '../accounts/secrets.ts'
import { DataError } from '../db/data-error.ts'
import { openWritable, refuseUnusable } from '../db/open.ts'
import { SettingStore } from '../db/settings.ts'
import { journalFile } from '../hits/hits.ts'
import { JournalFile } from '../hits/journal-file.ts'
import { adoptJournal } from '../hits/store.ts'
import { flushToDisk } from '../lib/flush.ts'
import { remakeAtStart } from '../qr/remake.ts'
import { type Manifest, unpackArchive } from './archive.ts'
import { checkDatabase } from './invariants.ts'
import { closeAlone, endVisits } from './store.ts'
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
    const manifest = await unpackArchive(source, from, folder)
    const hasher = new SecretHasher(readSecretKey(folder, { fresh: false }))
    prepareDatabase(folder, from, hasher)
    writeFileSync(nameAside(folder), aside, { flush: true })
    for (const name of ['hopcode.db', 'secret.key', 'hits.journal']) flushToDisk(join(folder, name))
    decideRestore(dataDir)
    return manifest
  } catch (error) {
    discardRestore(dataDir)
    throw error
  }
}

/** Checks the database of a backup, and gives it a journal of its own. */
function prepareDatabase(folder: string, from: string, hasher: SecretHasher): void {
  const file = join(folder, 'hopcode.db')
  if (statSync(file).size === 0) throw new DataError(`${from} holds an empty database.`)
  refuseUnusable(file)
  const db = openWritable(file)
  try {
    for (const { status, says } of checkDatabase(db)) {
      if (status === 'problem') throw new DataError(`${from} is not restored: ${says}.`)
    }
    if (!isKeyOf(db, hasher)) {
      throw new DataError(`${from} is not restored: its secret.key is that of another database.`)
    }
    using journal = JournalFile.open(journalFile(folder))
    adoptJournal(db, journal.id)
    remakeAtStart(new SettingStore(db))
    endVisits(db)
  } catch (error) {
    db.close()
    throw error
  }
  closeAlone(db)
}
