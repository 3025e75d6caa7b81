import type { Database } from 'bun:sqlite'
import type { KeyDeps } from '../accounts/keys.ts'
import { openDataFolder, requireDatabase } from '../data-folder.ts'
import { wallClock } from '../lib/clock.ts'
import { print } from '../lib/log.ts'
import { secureRandom } from '../lib/random.ts'
import { readConfigOfFolder } from './folder.ts'
import { findRunning } from './running.ts'
import { type CommandWriter, localWriter, openWriter } from './writer.ts'

/** What commands on the data of the service use. */
export interface Administration extends KeyDeps {
  db: Database
  writer: CommandWriter
  /** Of the service, without a slash at its end. */
  baseUrl: string
}

interface AdministrationOptions {
  /** Creates the data folder if it is missing. */
  creates?: boolean
  /** Changes nothing. */
  reads?: boolean
}

/** Runs a command on the data folder, and prints what it returns. */
export async function administer(
  command: (deps: Administration) => string | Promise<string>,
  { creates = false, reads = false }: AdministrationOptions = {},
): Promise<void> {
  const { dataDir, clusterUrl, baseUrl } = readConfigOfFolder()
  if (!creates) requireDatabase(dataDir)
  const { db, accounts, hasher } = openDataFolder(dataDir)
  try {
    const text = await command({
      db,
      accounts,
      hasher,
      writer: reads ? localWriter(db) : await openWriter({ db, dataDir, clusterUrl }),
      // The settings of this command may differ from those of the service.
      baseUrl: findRunning(dataDir)?.base_url ?? baseUrl,
      clock: wallClock,
      random: secureRandom,
    })
    print(text)
  } finally {
    db.close()
  }
}
