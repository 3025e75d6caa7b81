import { renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** When the last backup of a data folder was made: the time of an empty file in it. */

const FILE = 'last-backup'

/** Throws if the folder cannot be written: a backup needs to read it only. */
export function recordBackup(dataDir: string): void {
  const file = join(dataDir, FILE)
  const next = `${file}.${process.pid}`
  // A new file under the name: what may be a link there is replaced, not followed.
  writeFileSync(next, '', { flag: 'wx', mode: 0o600 })
  renameSync(next, file)
}

/** Epoch ms; undefined if none was recorded. */
export const lastBackupAt = (dataDir: string): number | undefined =>
  statSync(join(dataDir, FILE), { throwIfNoEntry: false })?.mtimeMs
