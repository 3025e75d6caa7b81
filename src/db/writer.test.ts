import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { openWritable } from './open.ts'
import { commitTogether } from './writer.ts'

function setUp(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  db.run('CREATE TABLE notes (text TEXT CHECK (text <> ?1))'.replace('?1', "'bad'"))
  const functions = {
    add(text: string) {
      db.query('INSERT INTO notes VALUES (?)').run(text)
      return text.length
    },
    addTwoThenFail(text: string) {
      db.query('INSERT INTO notes VALUES (?), (?)').run(text, text)
      throw new Error('changed its mind')
    },
    lose() {
      db.run('ROLLBACK')
      throw new Error('database or disk is full')
    },
  }
  const notes = () => db.query<{ text: string }, []>('SELECT text FROM notes').all()
  const run = (...calls: [name: string, args?: unknown][]) =>
    commitTogether(
      db,
      functions,
      calls.map(([name, args]) => ({ name, args })),
    )
  return { db, run, notes }
}

test('a batch is one transaction, and each call has its own outcome', () => {
  using folder = temporaryFolder()
  const { run, notes } = setUp(folder.path)
  expect(run(['add', 'one'], ['add', 'three'])).toEqual([{ value: 3 }, { value: 5 }])
  expect(notes()).toHaveLength(2)
})

test('a call that throws leaves nothing behind and the others untouched', () => {
  using folder = temporaryFolder()
  const { run, notes } = setUp(folder.path)
  const outcomes = run(['add', 'one'], ['addTwoThenFail', 'half'], ['add', 'bad'], ['add', 'two'])
  expect(outcomes).toEqual([
    { value: 3 },
    { error: 'changed its mind' },
    { error: expect.stringContaining('CHECK constraint failed') },
    { value: 3 },
  ])
  expect(notes()).toEqual([{ text: 'one' }, { text: 'two' }])
})

test('a call alone that throws leaves nothing behind either', () => {
  using folder = temporaryFolder()
  const { db, run, notes } = setUp(folder.path)
  expect(run(['addTwoThenFail', 'half'])).toEqual([{ error: 'changed its mind' }])
  expect(notes()).toEqual([])
  expect(db.inTransaction).toBe(false)
  expect(run(['add', 'after'])).toEqual([{ value: 5 }])
})

test('when the disk takes the whole transaction away, no call counts as done', () => {
  using folder = temporaryFolder()
  const { db, run, notes } = setUp(folder.path)
  const outcomes = run(['add', 'one'], ['lose'], ['add', 'two'])
  expect(outcomes).toEqual(Array(3).fill({ error: 'database or disk is full' }))
  expect(notes()).toEqual([])
  expect(db.inTransaction).toBe(false)
  expect(run(['add', 'after'])).toEqual([{ value: 5 }])
})

test('a commit that fails makes every outcome a failure', () => {
  using folder = temporaryFolder()
  const { db, run, notes } = setUp(folder.path)
  db.run('CREATE TABLE parents (id INTEGER PRIMARY KEY)')
  db.run('CREATE TABLE children (parent REFERENCES parents DEFERRABLE INITIALLY DEFERRED)')
  db.run('PRAGMA foreign_keys = ON')
  const functions = {
    orphan: () => db.run('INSERT INTO children VALUES (1)'),
    add: (text: string) => db.query('INSERT INTO notes VALUES (?)').run(text),
  }
  const calls = [
    { name: 'add', args: 'one' },
    { name: 'orphan', args: undefined },
  ]
  const outcomes = commitTogether(db, functions, calls)
  expect(outcomes).toEqual(Array(2).fill({ error: 'FOREIGN KEY constraint failed' }))
  expect(notes()).toEqual([])
  expect(run(['add', 'after'])).toEqual([{ value: 5 }])
})
