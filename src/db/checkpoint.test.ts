import { expect, test } from 'bun:test'
import { copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../test/support/app.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { Checkpoints } from './checkpoint.ts'
import { openReadonly, openWritable } from './open.ts'

const PAGES_MAX = 20
const NEVER_MS = 60_000

function setUp(path: string, { restMs = NEVER_MS } = {}) {
  const file = join(path, 'hopcode.db')
  const db = openWritable(file)
  const checkpoints = new Checkpoints(db, {
    pagesMax: PAGES_MAX,
    pagesAtRest: 3,
    pagesMore: 10,
    restMs,
  })
  db.run('CREATE TABLE notes (text TEXT)')
  const insert = db.prepare<null, [string]>('INSERT INTO notes VALUES (?)')
  /** One commit of about `pages` pages, and what follows it. */
  const commit = (pages: number) => {
    insert.run('x'.repeat(pages * 4000))
    checkpoints.afterCommit()
  }
  const log = () =>
    db.query<{ log: number; checkpointed: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()
  return { file, db, checkpoints, commit, log }
}

test('a commit leaves the log alone; once it is long, it is folded in after the commit', () => {
  using folder = temporaryFolder()
  const { file, db, checkpoints, commit, log } = setUp(folder.path)
  commit(5)
  commit(5)
  expect(log()).toMatchObject({ checkpointed: 0 })
  commit(PAGES_MAX)
  expect(log()?.checkpointed).toBe(log()?.log as number)
  // The file alone, without its log, holds what was committed.
  copyFileSync(file, `${file}.copy`)
  const copy = openWritable(`${file}.copy`)
  expect(copy.query('SELECT count(*) AS count FROM notes').get()).toEqual({ count: 3 })
  checkpoints.close()
  db.close()
})

test('a long write does not let the log grow for good', () => {
  using folder = temporaryFolder()
  const { file, db, checkpoints, commit } = setUp(folder.path)
  for (let n = 0; n < 100; n++) commit(5)
  expect(statSync(`${file}-wal`).size).toBeLessThan(2 * PAGES_MAX * 4200)
  checkpoints.close()
  db.close()
})

test('a log that a reader holds is folded in when the reader is done', () => {
  using folder = temporaryFolder()
  const { file, db, checkpoints, commit, log } = setUp(folder.path)
  commit(1)
  const reader = openReadonly(file, { cacheKiB: 1024 })
  reader.run('BEGIN')
  const count = reader.query<{ count: number }, []>('SELECT count(*) AS count FROM notes')
  expect(count.get()).toEqual({ count: 1 })
  for (let n = 0; n < 10; n++) commit(5)
  expect(log()?.log).toBeGreaterThan(2 * PAGES_MAX)
  expect(log()?.checkpointed).toBeLessThan(10)
  expect(count.get()).toEqual({ count: 1 })
  reader.run('COMMIT')
  for (let n = 0; n < 4; n++) commit(5)
  // It began anew.
  expect(log()?.log).toBeLessThan(2 * PAGES_MAX)
  reader.close()
  checkpoints.close()
  db.close()
})

test('a log that is not short is folded in while nobody writes', async () => {
  using folder = temporaryFolder()
  const { db, checkpoints, commit, log } = setUp(folder.path, { restMs: 1 })
  commit(5)
  await eventually('the log is folded in', () => log()?.checkpointed === log()?.log)
  checkpoints.close()
  db.close()
})

test('the log starts anew beside readers that always overlap, as those of long lists do', async () => {
  using folder = temporaryFolder()
  const { file, db, checkpoints, commit } = setUp(folder.path)
  commit(1)
  // Readers run in another process, because a commit that waits for them blocks this one.
  await using readers = Bun.spawn([process.execPath, '-e', overlappingReaders(file)], {
    stdout: 'pipe',
  })
  const output = readers.stdout.getReader()
  await output.read()
  for (let n = 0; n < 200; n++) commit(5)
  // A reader that gets no processor for a while holds the log, so that it grows for that time.
  const written = 200 * 5 * 4096
  expect(statSync(`${file}-wal`).size).toBeLessThan(written / 2)
  checkpoints.close()
  db.close()
})

/** Two connections read in turns of 4 ms; each begins before the other ends. */
const overlappingReaders = (file: string): string => `
  const { Database } = require('bun:sqlite')
  const open = () => new Database(${JSON.stringify(file)}, { readonly: true })
  const readers = [open(), open()]
  const begin = (db) => { db.run('BEGIN'); db.query('SELECT count(*) FROM notes').get() }
  begin(readers[0])
  console.log('reading')
  for (let n = 1; ; n++) {
    begin(readers[n % 2])
    Bun.sleepSync(2)
    readers[(n + 1) % 2].run('COMMIT')
    Bun.sleepSync(2)
  }`
