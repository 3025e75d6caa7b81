import { openDataFolder } from '../../src/data-folder.ts'

/**
 * Takes the links away from under a running service, as a damaged disk might. Keys go on working.
 */
export function breakDatabase(dataDir: string): void {
  const { db } = openDataFolder(dataDir)
  db.run('ALTER TABLE links RENAME TO links_gone')
  db.close()
}
