import { Database } from 'bun:sqlite'
import { databaseFile } from '../../src/db/open.ts'

/**
 * A writing connection to the database of a running service, as another program would have. It
 * waits while the service writes.
 */
export function openBeside(dataDir: string): Database {
  const db = new Database(databaseFile(dataDir), { readwrite: true })
  db.run('PRAGMA busy_timeout = 30000')
  return db
}
