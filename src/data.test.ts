import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { subjects } from './data.ts'
import { migrate } from './db/migrate.ts'

test.each(Object.entries(subjects))('operations of %s have different names', (_, one) => {
  const db = new Database(':memory:')
  migrate(db)
  const reads = one.reads(db) as object
  const writes = Object.keys(one.writes)
  expect(Object.keys(one.scans).filter((name) => name in reads || name in one.writes)).toEqual([])
  expect(writes.filter((name) => name in reads)).toEqual([])
})
