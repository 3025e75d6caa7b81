import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { settings } from '../db/settings.ts'
import { writeFunctions } from '../db/subject.ts'
import { RELEASE } from '../lib/version.ts'
import { Applier, IDLE_TRANSACTION_BYTES } from './apply.ts'
import { encodeCalls, type LoggedCall } from './entries.ts'
import type { Entry } from './log-reader.ts'
import { logPositionSetter } from './position.ts'
import { FIRST_CHAIN } from './schema.ts'

/** A database of a cluster whose log is empty, and functions that fail when they are told to. */
function setUp(path: string, transactionBytes?: number) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  logPositionSetter(db)({ cluster: 'c', seq: 0, chain: FIRST_CHAIN })
  const functions = {
    ...writeFunctions({ settings }, db, { id: 'own' }),
    refuse() {
      throw new Error('refused everywhere')
    },
    failHere() {
      throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    },
  }
  const open = () => new Applier({ db, functions, ...(transactionBytes && { transactionBytes }) })
  return { db, open, applier: open() }
}

/** Entries after `from`, as a log has them. */
function entriesOf(batches: LoggedCall[][], from?: Entry): Entry[] {
  const entries: Entry[] = []
  let previous: Pick<Entry, 'seq' | 'chain'> = from ?? { seq: 0, chain: FIRST_CHAIN }
  for (const calls of batches) {
    const bytes = encodeCalls(calls)
    const chain = new Bun.CryptoHasher('sha256').update(previous.chain).update(bytes).digest()
    const seq = previous.seq + 1
    const entry = { seq, host: 'other', batch: `${seq}`, version: 1, chain, calls: bytes }
    entries.push(entry)
    previous = entry
  }
  return entries
}

const save = (name: string, value = name): LoggedCall => ({
  name: 'settings.save',
  args: { author: { accountId: 0, by: 'operator', now: 0 }, name, value },
})
const settingsOf = (db: Database) => db.query('SELECT name FROM settings ORDER BY name').values()

test('entries are applied once, in order, whatever is read again', () => {
  using folder = temporaryFolderInMemory()
  const { db, applier, open } = setUp(folder.path)
  const entries = entriesOf([[save('a')], [save('b'), save('c')], [save('d')]])
  const applied = [...applier.apply(entries.slice(0, 2)), ...applier.apply(entries)].flat()
  expect(applied.map(({ entry }) => entry.seq)).toEqual([1, 2, 3])
  expect(settingsOf(db)).toEqual([['a'], ['b'], ['c'], ['d']])
  expect(applier.position).toMatchObject({ cluster: 'c', seq: 3 })
  expect(open().position).toEqual(applier.position)
  db.close()
})

test('a call that fails on every host leaves nothing, and the entry continues', () => {
  using folder = temporaryFolderInMemory()
  const { db, applier } = setUp(folder.path)
  const calls = [save('a'), { name: 'refuse', args: {} }, save('b')]
  const [applied] = [...applier.apply(entriesOf([calls]))].flat()
  expect(applied?.outcomes).toEqual([
    { value: undefined },
    { error: 'refused everywhere' },
    { value: undefined },
  ])
  expect(settingsOf(db)).toEqual([['a'], ['b']])
  db.close()
})

test('a failure of this machine leaves the entry to be applied later', () => {
  using folder = temporaryFolderInMemory()
  const { db, applier } = setUp(folder.path)
  const entries = entriesOf([[save('a'), { name: 'failHere', args: {} }]])
  expect(() => [...applier.apply(entries)]).toThrow('disk is full')
  expect(settingsOf(db)).toEqual([])
  expect(applier.position.seq).toBe(0)
  expect(applier.problem).toBeUndefined()
  db.close()
})

test('one transaction applies as many bytes of entries as are given', () => {
  const sizes = (transactionBytes?: number) => {
    using folder = temporaryFolderInMemory()
    const { db, open } = setUp(folder.path, transactionBytes)
    const entries = entriesOf(Array.from({ length: 4 }, () => [save('a', 'x'.repeat(40_000))]))
    const transactions = [...open().apply(entries)]
    db.close()
    return transactions.map(({ length }) => length)
  }
  expect(sizes()).toEqual([2, 2])
  expect(sizes(IDLE_TRANSACTION_BYTES)).toEqual([4])
})

const [first, second, third] = entriesOf([[save('a')], [save('b')], [save('c')]]) as [
  Entry,
  Entry,
  Entry,
]
const REFUSED: readonly [name: string, entries: Entry[], problem: RegExp][] = [
  ['an entry is missing', [first, third], /no longer has entry 2/],
  ['another log', [first, { ...second, calls: encodeCalls([save('x')]) }], /lacks entries/],
  [
    'a newer release',
    [first, { ...second, version: RELEASE + 1 }],
    /entry 2 needs a newer Hopcode: version \d+\.\d+\.\d+ has/,
  ],
  [
    'an unknown call',
    [first, ...entriesOf([[{ name: 'toString', args: {} }]], first)],
    /unknown call toString/,
  ],
]

test.each(REFUSED)('%s: what comes before is applied, and nothing after', (_, entries, problem) => {
  using folder = temporaryFolderInMemory()
  const { db, applier } = setUp(folder.path)
  const applied = [...applier.apply(entries)].flat()
  expect(applied.map(({ entry }) => entry.seq)).toEqual([1])
  expect(applier.problem).toMatch(problem)
  expect([...applier.apply([first, second, third])]).toEqual([])
  expect(settingsOf(db)).toEqual([['a']])
  db.close()
})
