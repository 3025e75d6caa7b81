import { finishRestore } from '../backup/restore.ts'
import { type Config, readConfig } from '../config.ts'
import { refuseLinks } from '../data-folder.ts'
import { printError } from '../lib/log.ts'

/** Reads the settings, and completes an interrupted restore of `DATA_DIR`. Throws DataError. */
export function readConfigOfFolder(): Config {
  const config = readConfig()
  const { dataDir } = config
  refuseLinks(dataDir)
  if (finishRestore(dataDir)) {
    printError(`hopcode: An interrupted restore of ${dataDir} was completed.`)
    // The files that it moved into place have not been checked yet.
    refuseLinks(dataDir)
  }
  return config
}
