import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { DATABASE_VERSION, migrate } from '../db/migrate.ts'
import { openReadonly, openWritable } from '../db/open.ts'
import { openJournal } from '../hits/hits.ts'
import { hitReads } from '../hits/store.ts'
import { HEAD } from '../hot/journal-appender.ts'
import type { JournalRange } from '../hot/journal-file.ts'
import { createLog } from '../lib/log.ts'
import { addPending, takeSnapshot } from './snapshot.ts'

const JOURNAL = { journalId: 'one' }

/** The hits that a copy gets which had counted up to `position`. */
function added(linkIds: readonly number[], begin: number, position: number, journalId = 'one') {
  const ranges: JournalRange[] = []
  addPending(
    (range) => ranges.push(range),
    { journalId, position },
    { mark: { ...JOURNAL, position: begin }, linkIds: Uint32Array.from(linkIds) },
  )
  return ranges.flatMap((range) => [...range.linkIds])
}

test('whatever the service counted before the copy, each waiting hit is in it once', () => {
  const hits = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 30 })
  fc.assert(
    fc.property(hits, fc.nat(40), fc.nat(1000), (linkIds, counted, begin) => {
      const inCopy = linkIds.slice(0, counted)
      expect([...inCopy, ...added(linkIds, begin, begin + counted)]).toEqual(linkIds)
    }),
    { seed: 20260301 },
  )
})

test('hits of another journal than the copy speaks of are left out', () => {
  expect(added([1, 2, 3], 0, 0, 'two')).toEqual([])
})

test('an append in progress on another thread keeps no later hit out of a backup', () => {
  using folder = temporaryFolder()
  folderOfVersion(folder.path, DATABASE_VERSION)
  const db = openWritable(join(folder.path, 'hopcode.db'))
  for (const id of [1, 2]) {
    db.query(
      `INSERT INTO links (id, code, account_id, passcode_hash, created_at)
       VALUES (?, ?, 1, x'00', 0)`,
    ).run(id, `CODE0${id}`)
  }
  const journal = openJournal(db, folder.path, createLog({ level: 'silent' }), 8)
  journal.append(1)
  Atomics.add(new Int32Array(journal.attach().ring), HEAD, 1)
  journal.append(2)
  const copy = join(folder.path, 'copy.db')
  takeSnapshot(folder.path, copy, 0)
  db.close()
  expect(hitReads(openReadonly(copy, { cacheKiB: 1024 })).counts([1, 2])).toMatchObject([
    { id: 1, count: 1 },
    { id: 2, count: 1 },
  ])
})

function folderOfVersion(path: string, version: number): void {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  db.run(`PRAGMA user_version = ${version}`)
  db.close()
  writeFileSync(join(path, 'secret.key'), `${'0'.repeat(64)}\n`)
}

test('a newer database is left to the release that wrote it', () => {
  using folder = temporaryFolder()
  folderOfVersion(folder.path, DATABASE_VERSION + 1)
  const copy = join(folder.path, 'copy.db')
  expect(() => takeSnapshot(folder.path, copy, 0)).toThrow('was written by a newer Hopcode')
})
