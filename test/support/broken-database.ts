import { openDataFolder } from '../../src/data-folder.ts'

/**
 * Takes the links away from under a running service, as a damaged disk might, until the block ends:
 * a service that closes still has hits to count. Keys go on working.
 */
export function breakDatabase(dataDir: string): Disposable {
  const { db } = openDataFolder(dataDir)
  db.run('ALTER TABLE links RENAME TO links_gone')
  return {
    [Symbol.dispose]() {
      db.run('ALTER TABLE links_gone RENAME TO links')
      db.close()
    },
  }
}
