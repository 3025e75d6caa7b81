import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { dataOn } from '../../test/support/subjects.ts'
import { subject } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { CodeFilter, codeScans, KnownCodes } from './known-codes.ts'

const code = (n: number) => `CODE${n.toString(36).toUpperCase()}` as Code

/** Code of a deleted link. */
const DISABLED = 'DISABLED1' as Code

/** The codes 1 to `count` in a table, as the reader gives them in parts. */
function setUp(count: number) {
  const db = new Database(':memory:')
  db.run('CREATE TABLE links (id INTEGER PRIMARY KEY, code TEXT)')
  db.run('CREATE TABLE disabled_codes (code TEXT)')
  db.run(
    'CREATE TABLE aliases (domain_id INTEGER DEFAULT 0, path TEXT, small_path TEXT, folded TEXT)',
  )
  db.query('INSERT INTO disabled_codes VALUES (?)').run(DISABLED)
  const insert = db.prepare('INSERT INTO links VALUES (?, ?)')
  for (let id = 1; id <= count; id++) insert.run(id, code(id))
  const state = { calls: 0, fails: false, last: count, filters: [] as SharedArrayBuffer[] }
  const { links } = dataOn(db, { links: subject({ scans: codeScans }) })
  const counted = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) => {
    return async (...args: Args): Promise<Result> => {
      state.calls++
      if (state.fails) throw new Error('the thread has ended')
      return call(...args)
    }
  }
  const codes = new KnownCodes({
    reserved: () => ['assets'],
    data: {
      links: {
        lastId: () => state.last,
        codesAfter: counted(links.codesAfter),
        countAliases: counted(links.countAliases),
        addCodes: counted(links.addCodes),
      },
    },
    onComplete: (memory) => state.filters.push(memory),
  })
  const isComplete = () =>
    eventually('the codes are read', () => {
      codes.prepare()
      return !codes.mayExist('NOBODY99' as Code)
    })
  const create = (id: number) => {
    state.last = id
    insert.run(id, code(id))
    codes.add(code(id))
  }
  return { codes, state, isComplete, create }
}

test('every code in use may exist, also a disabled one of a deleted link, and at most 1 of 100 others', async () => {
  const { codes, isComplete } = setUp(20_000)
  await isComplete()
  expect(codes.mayExist(DISABLED)).toBe(true)
  for (let n = 1; n <= 20_000; n++) expect(codes.mayExist(code(n))).toBe(true)
  let taken = 0
  for (let n = 20_001; n <= 40_000; n++) if (codes.mayExist(code(n))) taken++
  expect(taken).toBeLessThan(200)
})

test('a code that is created while the codes are read, or later, may exist', async () => {
  const { codes, isComplete, create } = setUp(5000)
  codes.prepare()
  expect(codes.mayExist(code(9_000_000))).toBe(true)
  create(9_000_001)
  await isComplete()
  create(9_000_002)
  expect(codes.mayExist(code(9_000_001))).toBe(true)
  expect(codes.mayExist(code(9_000_002))).toBe(true)
  expect(codes.mayExist(code(9_000_003))).toBe(false)
})

test('nothing is read before it is needed, and a thread that ends makes the next call start over', async () => {
  const { codes, state, isComplete } = setUp(10)
  codes.add(code(11))
  expect(codes.mayExist('NOBODY99' as Code)).toBe(true)
  expect(state.calls).toBe(0)
  state.fails = true
  await eventually('it starts over', () => {
    codes.prepare()
    return state.calls > 1
  })
  state.fails = false
  await isComplete()
  for (let n = 1; n <= 10; n++) expect(codes.mayExist(code(n))).toBe(true)
})

test('many new codes are read into a larger filter, and no code is unknown meanwhile', async () => {
  const { codes, state, isComplete, create } = setUp(100)
  await isComplete()
  const [first] = state.filters
  const unknown: number[] = []
  const threads = new CodeFilter(first as SharedArrayBuffer)
  for (let id = 101; id <= 200_000; id++) {
    create(id)
    // On this thread, and on one that still has the first filter until there is a second one.
    if (!codes.mayExist(code(id))) unknown.push(id)
    if (state.filters.length < 2 && !threads.has(code(id))) unknown.push(id)
    if (id % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await eventually('the last filter is complete', () => state.filters.length >= 2)
  for (let id = 1; id <= 200_000; id++) if (!codes.mayExist(code(id))) unknown.push(id)
  expect(unknown).toEqual([])
  let taken = 0
  for (let n = 300_001; n <= 310_000; n++) if (codes.mayExist(code(n))) taken++
  expect(taken).toBeLessThan(200)
})

test('a thread with the filter before knows the codes that are created until it gets the next', async () => {
  const { codes, state, isComplete, create } = setUp(100)
  await isComplete()
  for (let id = 101; state.filters.length < 2; id++) {
    create(id)
    if (id % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const before = new CodeFilter(state.filters[0] as SharedArrayBuffer)
  codes.add('CREATED26')
  expect(before.has('CREATED26')).toBe(true)
  expect(codes.mayExist('CREATED26' as Code)).toBe(true)
})

test('a filter tells which segments no alias of several begins with', async () => {
  const { codes, state, isComplete } = setUp(100)
  await isComplete()
  const filter = new CodeFilter(state.filters[0] as SharedArrayBuffer)
  codes.add('wiki')
  codes.add('menu/a')
  expect(filter.mayContinue('wiki')).toBe(false)
  codes.add('wiki/a/b')
  expect(filter.mayContinue('wiki')).toBe(true)
  expect(filter.mayContinue('WIKI')).toBe(true)
  expect(filter.mayContinue('a')).toBe(false)
  expect(filter.mayContinue('ASSETS')).toBe(true)
})

test('a path that no link has is known without a look-up, once all codes are read', async () => {
  const { codes, isComplete } = setUp(100)
  expect(codes.mayName('nobody/has/it')).toBe(true)
  await isComplete()
  codes.add('menü/Mittag')
  codes.add('menü/mittag')
  const asked = [
    code(7),
    DISABLED.toLowerCase(),
    'menü/Mittag',
    'MENÜ/MITTAG',
    'menü/Mittag'.normalize('NFD'),
  ]
  expect(asked.map((path) => codes.mayName(path))).toEqual([true, true, true, true, true])
  expect(codes.mayName('nobody/has/it')).toBe(false)
  expect(codes.mayName('NOBODY26')).toBe(false)
})
