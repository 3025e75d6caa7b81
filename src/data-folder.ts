import type { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { claimKey, readSecretKey, SecretHasher } from './accounts/secrets.ts'
import { AccountStore } from './accounts/store.ts'
import { migrate } from './db/migrate.ts'
import { databaseFile, openWritable, refuseUnusable } from './db/open.ts'
import { DataError } from './lib/data-error.ts'
import { diskRefusal } from './lib/disk-refusal.ts'
import { refuseLink } from './lib/symbolic-links.ts'

export interface DataFolder {
  /** A connection that may write; the caller closes it. */
  db: Database
  accounts: AccountStore
  hasher: SecretHasher
}

/** Makes `DATA_DIR` itself where there is none. Throws DataError. */
export function makeDataFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new DataError(`${dataDir} cannot be made: ${(error as Error).message}`, { cause: error })
  }
}

/** Where a link would lead the program to files outside of its folder. */
const NAMES = [
  ...['hopcode.db', 'secret.key', 'hits.journal', 'serving.lock', 'serving.pid'],
  ...['.restore-decided', 'cdn', 'cdn/qr'],
]

/** Throws DataError when this process is root and the folder holds a link that it would follow. */
export function refuseLinks(dataDir: string): void {
  for (const name of NAMES) refuseLink(join(dataDir, name))
}

/**
 * Opens `DATA_DIR`, making what is missing and bringing the database up to date. Throws DataError.
 */
export function openDataFolder(dataDir: string): DataFolder {
  makeDataFolder(dataDir)
  const file = databaseFile(dataDir)
  refuseUnusable(file)
  const db = openWritable(file)
  try {
    migrate(db)
    const accounts = new AccountStore(db)
    const fresh = accounts.isEmpty()
    const hasher = new SecretHasher(readSecretKey(dataDir, { fresh }))
    claimKeyWhereThereIsRoom(db, hasher, { dataDir, fresh })
    return { db, accounts, hasher }
  } catch (error) {
    db.close()
    throw error
  }
}

/** A full disk refuses the first claim after an upgrade: the next start makes it. */
function claimKeyWhereThereIsRoom(...args: Parameters<typeof claimKey>): void {
  try {
    claimKey(...args)
  } catch (error) {
    if (!diskRefusal(error)) throw error
  }
}
