import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fillDataFolder } from '../../test/support/data-folder.ts'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { openWritable } from '../db/open.ts'
import { hits } from '../hits/subject.ts'
import { DAY } from '../lib/clock.ts'
import { addSums, decodeSums, emptySums, encodeSums, type VisitSums } from './parts.ts'
import { sumReader, type VisitSlice, visits } from './store.ts'
import { visitKey } from './values.ts'

const TODAY = 20_000

function store() {
  const folder = temporaryFolderInMemory()
  fillDataFolder(folder.path)
  const db = openWritable(join(folder.path, 'hopcode.db'))
  for (const id of [1, 2]) {
    db.query(
      `INSERT INTO links (id, code, account_id, passcode_hash, created_at) VALUES (?, ?, 7, ?, 0)`,
    ).run(id, `LINK0${id}`, new Uint8Array(32))
  }
  const operations = operationsOn(db, visits)
  const readSums = sumReader(db)
  const sums = (value: string, count: number) => ({
    known: count,
    observed: count,
    counts: new Map([[visitKey('device', value), count]]),
  })
  return {
    db,
    add: (
      batch: string,
      links: readonly (readonly [number, VisitSums])[],
      day = TODAY,
      host = '',
    ) => {
      const encoded = links.map(([id, sums]) => [id, encodeSums(sums)] as const)
      return operations.add({ host, batch, day, links: encoded })
    },
    read: (counted: Parameters<typeof readSums>[0]['counted'], from = 0, to = TODAY + 1) =>
      decodeSums(readSums({ counted, from, to }, () => false).parts),
    sums,
    [Symbol.dispose]() {
      db.close()
      folder[Symbol.dispose]()
    },
  }
}

test('a batch is added to the rows of its links and of their accounts, and once', () => {
  using it = store()
  const links = [
    [1, it.sums('phone', 2)],
    [2, it.sums('phone', 3)],
    [99, it.sums('phone', 100)],
  ] as const
  it.add('a', links)
  it.add('a', links)
  it.add('a', links, TODAY, 'another host')
  expect(it.read({ linkId: 1 })).toEqual(it.sums('phone', 4))
  expect(it.read({ accountId: 7 })).toEqual(it.sums('phone', 10))
  expect(it.read({ linkId: 99 })).toEqual(emptySums())
})

test('days are read up to an end that is not included', () => {
  using it = store()
  for (const day of [TODAY - 2, TODAY - 1, TODAY]) {
    it.add(String(day), [[1, it.sums(`d${TODAY - day}`, 1)]], day)
  }
  const { counts } = it.read({ linkId: 1 }, TODAY - 2, TODAY)
  expect([...counts.keys()]).toEqual([visitKey('device', 'd1'), visitKey('device', 'd2')])
})

test('rows are pruned after 400 days', () => {
  using it = store()
  it.add('old', [[1, it.sums('tablet', 1)]], TODAY - 400)
  it.add('kept', [[1, it.sums('phone', 1)]], TODAY - 399)
  const { prune } = operationsOn(it.db, hits)
  const first = prune({ now: TODAY * DAY, max: 1 })
  expect(first).toEqual({ scope: 0, id: 1 })
  expect(prune({ now: TODAY * DAY, max: 2, after: first })).toBeUndefined()
  expect(it.read({ linkId: 1 })).toEqual(it.sums('phone', 1))
  expect(it.read({ accountId: 7 })).toEqual(it.sums('phone', 1))
})

const DAMAGED = [
  { name: 'empty', parts: new Uint8Array(0) },
  { name: 'of another version', parts: Uint8Array.of(9, 1, 1) },
  { name: 'cut off', parts: Uint8Array.of(1, 1, 1, 0x80) },
]

test.each(DAMAGED)('a row that is $name is replaced, and all others are added to', ({ parts }) => {
  using it = store()
  const links = [
    [1, it.sums('phone', 2)],
    [2, it.sums('phone', 3)],
  ] as const
  it.add('a', links)
  it.db.query('UPDATE hit_days SET parts = ? WHERE scope = 0 AND id = 1').run(parts)
  expect(it.read({ linkId: 1 })).toEqual(emptySums())
  expect(it.add('b', links)).toEqual({ damaged: 1 })
  expect(it.read({ linkId: 1 })).toEqual(it.sums('phone', 2))
  expect(it.read({ linkId: 2 })).toEqual(it.sums('phone', 6))
  expect(it.read({ accountId: 7 })).toEqual(it.sums('phone', 10))
  expect(it.add('c', links)).toEqual({ damaged: 0 })
})

test('a long range is read in slices, whose sums are those of the whole', () => {
  using it = store()
  for (let day = 0; day < 12; day++) it.add(`day ${day}`, [[1, it.sums('phone', 1)]], TODAY - day)
  const readSums = sumReader(it.db)
  const total = emptySums()
  let slices = 0
  for (let from: number | undefined = TODAY - 11; from !== undefined; slices++) {
    const slice: VisitSlice = readSums(
      { counted: { accountId: 7 }, from, to: TODAY + 1 },
      () => true,
    )
    addSums(total, decodeSums(slice.parts))
    from = slice.next
  }
  expect(slices).toBeGreaterThan(1)
  expect(total).toEqual(it.read({ accountId: 7 }))
  expect(total.known).toBe(12)
})
