import { expect, test } from 'bun:test'
import { temporaryFolder } from '../../test/support/folder.ts'
import { openDataFolder } from '../data-folder.ts'
import { clusterHitAdder, countedOf, hitCalls } from './cluster-store.ts'
import { adoptJournal, findJournalPosition, hitReads } from './store.ts'

const OWN = { host: 'a', journalId: 'journal-a' }
const OTHER = { host: 'b', journalId: 'journal-b' }

/** Link 1, and the tables as host a has them. */
function setUp(path: string) {
  const { db } = openDataFolder(path)
  db.run(
    `INSERT INTO links (id, code, account_id, passcode_hash, created_at)
     VALUES (1, 'CODE01', 1, x'00', 0)`,
  )
  adoptJournal(db, OWN.journalId)
  const addHits = clusterHitAdder(db, { id: OWN.host })
  const add = (of: typeof OWN, from: number, end: number) => {
    const counts = new Uint8Array(new Uint32Array([1, end - from]).buffer)
    return addHits({ ...of, from, end, now: 0, counts })
  }
  return { db, add, count: () => hitReads(db).counts([1])[0]?.count }
}

test('hits of each host are counted once, in the order of its journal', () => {
  using folder = temporaryFolder()
  const { db, add, count } = setUp(folder.path)
  expect([add(OWN, 0, 3), add(OTHER, 0, 2)]).toEqual([true, true])
  // The same range again, one that overlaps, and one after a gap.
  expect([add(OWN, 0, 3), add(OWN, 2, 4), add(OTHER, 3, 5)]).toEqual([false, false, false])
  expect(count()).toBe(5)
  expect([add(OWN, 3, 4), add({ ...OWN, journalId: 'new' }, 0, 1)]).toEqual([true, true])
  expect(count()).toBe(7)
  expect(countedOf(db, OWN.host, OWN.journalId)).toBe(4)
  expect(countedOf(db, OTHER.host, 'unknown')).toBe(0)
  // Only entries of this folder's own journal move its position.
  expect(findJournalPosition(db)).toEqual({ journalId: OWN.journalId, position: 4 })
  db.close()
})

test('a flush reads from the committed position, and says what is missing in the file', () => {
  using folder = temporaryFolder()
  const { db, add } = setUp(folder.path)
  add(OWN, 0, 3)
  const journal = { id: OWN.journalId, read: () => new Uint32Array([1, 1]) }
  const prepare = hitCalls(db, journal, OWN.host)
  const flush = (end: number) => prepare({ name: 'hits.count', args: { end, now: 0 } })
  expect(flush(3).call).toBeUndefined()
  const { call, toResult } = flush(6)
  expect(call).toMatchObject({ name: 'hits.add', args: { from: 3, end: 6 } })
  expect(toResult({ value: true })).toEqual({ value: { end: 6, lost: 1 } })
  expect(toResult({ value: false })).toEqual({ error: 'the hits are counted already' })
  db.close()
})
