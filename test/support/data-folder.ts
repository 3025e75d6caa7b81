import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDataFolder } from '../../src/data-folder.ts'
import { temporaryFolderInMemory } from './folder.ts'

let template: ReadonlyMap<string, Uint8Array> | undefined

/**
 * Fills a new data folder with what a first start leaves there: an empty database of the current
 * schema and a secret key, the same one in every folder of a test file. Migrating anew would take
 * most of a start.
 */
export function fillDataFolder(dataDir: string): void {
  template ??= createTemplate()
  for (const [name, bytes] of template) writeFileSync(join(dataDir, name), bytes, { mode: 0o600 })
}

function createTemplate(): ReadonlyMap<string, Uint8Array> {
  using folder = temporaryFolderInMemory()
  const { db } = openDataFolder(folder.path)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const names = ['hopcode.db', 'secret.key']
  return new Map(names.map((name) => [name, readFileSync(join(folder.path, name))]))
}
