import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import type { Code } from '../lib/code.ts'
import { codeReads, KnownCodes } from './known-codes.ts'

const code = (n: number) => `CODE${n.toString(36).toUpperCase()}` as Code

/** Of a deleted link. */
const DISABLED = 'DISABLED1' as Code

/** The codes 1 to `count` in a table, as the reader gives them in parts. */
function setUp(count: number) {
  const db = new Database(':memory:')
  db.run('CREATE TABLE links (id INTEGER PRIMARY KEY, code TEXT)')
  db.run('CREATE TABLE disabled_codes (code TEXT)')
  db.run('CREATE TABLE aliases (path TEXT PRIMARY KEY, folded TEXT)')
  db.query('INSERT INTO disabled_codes VALUES (?)').run(DISABLED)
  const insert = db.prepare('INSERT INTO links VALUES (?, ?)')
  for (let id = 1; id <= count; id++) insert.run(id, code(id))
  const state = { calls: 0, fails: false }
  const { addCodes } = codeReads(db)
  const codes = new KnownCodes({
    reads: { lastId: () => count },
    reader: {
      async call(_name, args) {
        state.calls++
        if (state.fails) throw new Error('the thread has ended')
        return addCodes(args) as never
      },
    },
  })
  const isComplete = () =>
    eventually('the codes are read', () => {
      codes.prepare()
      return !codes.mayExist('NOBODY99' as Code)
    })
  return { codes, state, isComplete }
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
  const { codes, isComplete } = setUp(5000)
  codes.prepare()
  expect(codes.mayExist(code(9_000_000))).toBe(true)
  codes.add(code(9_000_001))
  await isComplete()
  codes.add(code(9_000_002))
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
