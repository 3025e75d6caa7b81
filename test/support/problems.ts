import { checkDatabase } from '../../src/backup/invariants.ts'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import type { TestApp } from './app.ts'

/** Every problem that `hopcode check` would report. */
export function problemsOf({ dataDir }: TestApp) {
  using db = openReadonly(databaseFile(dataDir), { cacheKiB: 1024 })
  return [...checkDatabase(db)].filter(({ status }) => status === 'problem')
}
