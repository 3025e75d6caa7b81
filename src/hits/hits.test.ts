import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import type { Operations } from '../db/subject.ts'
import { CLAIM, HEAD } from '../hot/journal-appender.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { createLog } from '../lib/log.ts'
import { HitFlusher, pauseAfter } from './flush.ts'
import { HitCounts, journalFile, openJournal } from './hits.ts'
import { commitRange, findJournalPosition, hitReads } from './store.ts'
import { hits } from './subject.ts'

type Range = Parameters<Operations<typeof hits>['count']>[0]

const silent = createLog({ level: 'silent' })

/** Links 1 and 2, and a journal of 64 entries. */
function setUp(path: string, log = silent) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  for (const id of [1, 2]) {
    db.query(
      `INSERT OR IGNORE INTO links (id, code, account_id, passcode_hash, created_at)
       VALUES (?, ?, 1, x'00', 0)`,
    ).run(id, `CODE0${id}`)
  }
  const journal = openJournal(db, path, log, 64)
  const counts = new HitCounts(hitReads(db), journal)
  const host = { id: '', journal: JournalFile.open(journalFile(path)) }
  const writes = operationsOn(db, hits, host)
  return { db, journal, counts, writes }
}

// design: 4.17 hits
test('a count is the committed one and the journal, before, during and after a flush', () => {
  using folder = temporaryFolder()
  const { journal, counts, writes, db } = setUp(folder.path)
  for (const id of [1, 2, 1]) journal.append(id)
  expect(counts.of([1, 2]).get(1)).toBe(2)
  const end = journal.head
  db.transaction(() => writes.count({ end, now: 0 })).immediate()
  // Committed, and the journal does not know yet: each hit still counts once.
  expect(counts.of([1]).get(1)).toBe(2)
  expect(counts.total()).toBe(3)
  journal.append(1)
  journal.release(end)
  expect(counts.of([1]).get(1)).toBe(3)
  expect(counts.total()).toBe(4)
})

// design: 4.12 total_redirects
test('hits of a deleted link count in the total alone', () => {
  using folder = temporaryFolder()
  const { journal, counts, writes, db } = setUp(folder.path)
  journal.append(1)
  db.run('DELETE FROM links WHERE id = 1')
  writes.count({ end: journal.head, now: 0 })
  expect(db.query('SELECT count(*) AS n FROM hits').get()).toEqual({ n: 0 })
  expect(counts.total()).toBe(1)
})

test('a start goes on with what the last process left in the journal, and writes nothing', () => {
  using folder = temporaryFolder()
  const first = setUp(folder.path)
  for (const id of [1, 1, 2]) first.journal.append(id)
  first.db.close()
  for (let start = 0; start < 3; start++) {
    const { counts, db, journal, writes } = setUp(folder.path)
    expect(hitReads(db).totals()).toEqual({ redirects: start, position: start })
    // One hit of each run is committed, so the next start begins after it.
    writes.count({ end: journal.tail + 1, now: 0 })
    expect(counts.of([1, 2])).toEqual(
      new Map([
        [1, 2],
        [2, 1],
      ]),
    )
    expect(counts.total()).toBe(3)
    db.close()
  }
})

test('a journal of another database is renamed and reported, and a new one takes its place', () => {
  using one = temporaryFolder()
  using other = temporaryFolder()
  setUp(one.path)
  setUp(other.path)
  rmSync(journalFile(one.path))
  Bun.spawnSync(['cp', journalFile(other.path), journalFile(one.path)])
  const bytes = readFileSync(journalFile(one.path))
  const lines: string[] = []
  const log = createLog({ level: 'info', human: false, write: (line) => lines.push(line) })
  const { journal, counts, db } = setUp(one.path, log)
  journal.append(1)
  expect(counts.total()).toBe(1)
  expect(findJournalPosition(db)).toEqual({ journalId: journal.id, position: 0 })
  const [renamed = ''] = readdirSync(one.path).filter((name) => name.includes('.damaged-'))
  expect(readFileSync(join(one.path, renamed))).toEqual(bytes)
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      level: 'error',
      event: 'hits.journal_damaged',
      file: journalFile(one.path),
      renamed: join(one.path, renamed),
      reason: 'it belongs to another database',
    }),
  ])
})

test('a missing journal is made anew, and the counts stay', () => {
  using folder = temporaryFolder()
  const { journal, writes, db } = setUp(folder.path)
  journal.append(2)
  writes.count({ end: journal.head, now: 0 })
  db.close()
  rmSync(journalFile(folder.path))
  const { counts, journal: next } = setUp(folder.path)
  next.append(2)
  expect(counts.of([2]).get(2)).toBe(2)
})

test('a flush that the disk refuses leaves every hit in the journal, and the next one counts them', async () => {
  using folder = temporaryFolder()
  const { journal, counts, writes } = setUp(folder.path)
  const disk = { full: true }
  const data = {
    hits: {
      async count(range: Range) {
        if (disk.full) throw new Error('database or disk is full')
        return writes.count(range)
      },
    },
  }
  const flusher = new HitFlusher({ journal, data, clock: () => 0, flushMs: 60_000, log: silent })
  journal.append(1)
  expect(flusher.flush()).rejects.toThrow('disk is full')
  await flusher.flush().catch(() => {})
  expect(journal.pending).toBe(1)
  expect(counts.of([1]).get(1)).toBe(1)
  disk.full = false
  await flusher.close()
  expect(journal.pending).toBe(0)
  expect(counts.of([1]).get(1)).toBe(1)
})

test('a flush stops at an append in progress, and the next one counts the hits behind it', async () => {
  using folder = temporaryFolder()
  const { db, journal, counts, writes } = setUp(folder.path)
  const data = { hits: { count: async (range: Range) => writes.count(range) } }
  const flusher = new HitFlusher({ journal, data, clock: () => 0, flushMs: 60_000, log: silent })
  const other = journal.attach()
  journal.append(1)
  const ring = new Int32Array(other.ring)
  Atomics.store(new Int32Array(other.own), CLAIM, Atomics.load(ring, HEAD))
  Atomics.add(ring, HEAD, 1)
  journal.append(2)
  await flusher.flush()
  expect(hitReads(db).totals()).toEqual({ redirects: 1, position: 1 })
  expect(counts.of([1, 2])).toEqual(new Map([1, 2].map((id) => [id, 1])))
  expect(counts.total()).toBe(2)
  journal.detach(other)
  await flusher.close()
  expect(hitReads(db).totals()).toEqual({ redirects: 3, position: 3 })
  expect(counts.of([1, 2])).toEqual(new Map([1, 2].map((id) => [id, 1])))
})

const journalOf = (...linkIds: number[]) => ({
  read: (from: number, end: number) => Uint32Array.from(linkIds.slice(from, end)),
})

test('a commit ends before the hits of too many links, and the next one begins there', () => {
  const each = Array.from({ length: 10_000 }, (_, at) => at + 1)
  const journal = journalOf(...each, ...each, 7)
  const first = commitRange(journal, 0, 20_001)
  expect({ ...first, counts: first.counts.length }).toEqual({ end: 8192, lost: 0, counts: 16_384 })
  const next = commitRange(journal, first.end, 20_001)
  // 1,808 links, and 6,384 of them again.
  expect({ ...next, counts: next.counts.length }).toEqual({ end: 16_384, lost: 0, counts: 16_384 })
  const last = commitRange(journal, next.end, 20_001)
  expect([last.end, last.counts.length]).toEqual([20_001, 2 * 3617])
  const few = journalOf(...Array.from({ length: 60_000 }, (_, at) => 1 + (at % 8192)))
  expect(commitRange(few, 0, 60_000).end).toBe(60_000)
})

test('flushes are rarer while there are many hits, and at most two seconds apart', () => {
  const pauses = (hits: number) =>
    [0.5, 4, 15, 500].map((elapsedMs) => pauseAfter({ hits, elapsedMs }, 250))
  expect(pauses(1999)).toEqual([250, 250, 250, 250])
  expect(pauses(2000)).toEqual([250, 400, 1500, 2000])
  expect(pauseAfter({ hits: 5000, elapsedMs: 4 }, 5000)).toBe(5000)
})
