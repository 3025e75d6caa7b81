import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import type { Call } from '../lib/thread.ts'
import { type EventReader, type LinkEvent, RULES_CHANGED } from './events.ts'
import {
  eventsOfOthers,
  localWrite,
  openSubjects,
  packedWrite,
  perConnection,
  scan,
  scanFunctions,
  subject,
  write,
  writeFunctions,
  writesOf,
} from './subject.ts'
import { commitTogether } from './writer.ts'

const eventOf = (code: string, message: string | undefined): LinkEvent => ({
  what: 'link',
  kind: 'changed',
  accountId: 1,
  linkId: 1,
  code: code as Code,
  addresses: [],
  changed: [],
  author: message === undefined ? undefined : { accountId: 1, by: 'operator', now: message.length },
})

const lines = subject({
  reads(db) {
    const find = db.prepare<{ text: string }, [number]>('SELECT text FROM lines WHERE id = ?')
    return { find: (id: number) => find.get(id)?.text }
  },
  scans: {
    count: scan((db) => {
      const count = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM lines')
      return () => count.get()?.n ?? 0
    }),
  },
  writes: {
    add: packedWrite({
      pack: (texts: readonly string[]) => texts.join(),
      prepare: (db) => (packed: string) => {
        for (const text of packed.split(',')) db.run('INSERT INTO lines (text) VALUES (?)', [text])
        return packed
      },
      unpack: (packed: string) => packed.split(','),
      events: (texts, message) => texts.map((code) => eventOf(code, message)),
    }),
    clear: write({
      prepare: (db) => () => void db.run('DELETE FROM lines'),
      events: () => RULES_CHANGED,
    }),
    probe: localWrite({ prepare: () => () => true }),
  },
})
const subjects = { lines }
const CODES = ['SPRING', 'SUMMER']

/** The data over one connection; `done` collects calls, events and results in their order. */
function setUp(options: Partial<Parameters<typeof openSubjects>[1]> = {}) {
  const db = new Database(':memory:')
  db.run('CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT)')
  const functions = { ...scanFunctions(subjects, db), ...writeFunctions(subjects, db, { id: '' }) }
  const done: string[] = []
  const state = { isFull: false }
  const call = async (name: string, args: unknown) => {
    done.push(name)
    if (state.isFull) throw new Error('database or disk is full')
    return functions[name]?.(args as never)
  }
  const reader: EventReader = (events) =>
    void done.push(events.map((event) => (event.what === 'link' ? event.code : event.what)).join())
  const data = openSubjects(subjects, {
    db,
    callReader: call,
    callWriter: call,
    readers: [reader],
    ...options,
  })
  return { db, data, done, state, reader }
}

test('an operation runs where it is declared, under its name', async () => {
  const { data, done } = setUp()
  expect(await data.lines.add(CODES)).toEqual(CODES)
  expect(data.lines.find(2)).toBe('SUMMER')
  expect(await data.lines.count()).toBe(2)
  expect(done).toEqual(['lines.add', 'SPRING,SUMMER', 'lines.count'])
})

test('readers know a write before the caller continues, and never one that failed', async () => {
  const { data, done, state } = setUp()
  await data.lines.clear().then(() => done.push('answered'))
  expect(done.splice(0)).toEqual(['lines.clear', 'rules_changed', 'answered'])
  state.isFull = true
  await expect(data.lines.add(CODES)).rejects.toThrow('disk is full')
  expect(done).toEqual(['lines.add'])
})

test('readers know a write on this host before the other hosts are waited for', async () => {
  const [waits, applied] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { data, done } = setUp({
    whenAllApplied(name) {
      done.push(`waits for others after ${name}`)
      waits.resolve()
      return applied.promise
    },
  })
  const answered = data.lines.clear().then(() => done.push('answered'))
  await Promise.race([waits.promise, answered])
  expect(done).toEqual(['lines.clear', 'rules_changed', 'waits for others after lines.clear'])
  applied.resolve()
  await answered
  expect(done.at(-1)).toBe('answered')
})

test('a write of another host has the same events, and an unknown call has none', () => {
  const { done, reader } = setUp()
  const tell = eventsOfOthers(subjects, [reader])
  tell('lines.add', 'SPRING,SUMMER')
  tell('hashRows', { digest: '' })
  expect(done).toEqual(['SPRING,SUMMER'])
})

test('writes of one host alone are known by their names', () => {
  const local = Object.entries(writesOf(subjects)).filter(([, { isLocal }]) => isLocal)
  expect(local.map(([name]) => name)).toEqual(['lines.probe'])
})

test('what operations share is prepared once on each connection', () => {
  const prepared: Database[] = []
  const shared = perConnection((db) => prepared.push(db))
  const [one, other] = [new Database(':memory:'), new Database(':memory:')]
  expect([shared(one), shared(one), shared(other)]).toEqual([1, 1, 2])
})

/** What a subject writes when others change something: a line for each event. */
const followers = subject({
  onEvents(db) {
    const add = db.prepare<null, [string]>('INSERT INTO followed (text) VALUES (?)')
    return (events) => {
      for (const event of events) {
        if (event.what !== 'link') continue
        if (event.code === 'REFUSE') throw new Error('the follower refuses')
        add.run(`${event.kind} ${event.code} at ${event.author?.now}`)
      }
    }
  },
})

function openFollowed(db = new Database(':memory:')) {
  db.run('CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT)')
  db.run('CREATE TABLE followed (text TEXT)')
  const functions = writeFunctions({ lines, followers }, db, { id: '' })
  const texts = (table: string) =>
    db
      .query<{ text: string }, []>(`SELECT text FROM ${table}`)
      .all()
      .map(({ text }) => text)
  return { db, texts, run: (calls: readonly Call[]) => commitTogether(db, functions, calls) }
}
const add = (args: string): Call => ({ name: 'lines.add', args })

test('a subject that follows events writes its rows in the transaction of the change', () => {
  const { texts, run } = openFollowed()
  expect(run([add('SPRING,SUMMER'), { name: 'lines.clear', args: undefined }])).toEqual([
    { value: 'SPRING,SUMMER' },
    { value: undefined },
  ])
  expect(texts('followed')).toEqual(['changed SPRING at 13', 'changed SUMMER at 13'])
  expect(texts('lines')).toEqual([])
})

test('a follower that throws undoes the change alone, and what it has written itself', () => {
  const { texts, run } = openFollowed()
  const outcomes = run([add('SPRING'), add('AUTUMN,REFUSE'), add('SUMMER')])
  expect(outcomes.map((outcome) => 'error' in outcome)).toEqual([false, true, false])
  expect(texts('lines')).toEqual(['SPRING', 'SUMMER'])
  expect(texts('followed')).toEqual(['changed SPRING at 6', 'changed SUMMER at 6'])
})

test('a change that the disk refuses leaves no row of a follower', () => {
  const { db, texts, run } = openFollowed()
  db.run("CREATE TRIGGER full AFTER INSERT ON followed BEGIN SELECT raise(ROLLBACK, 'full'); END")
  expect(run([add('SPRING')]).map((outcome) => 'error' in outcome)).toEqual([true])
  expect([texts('lines'), texts('followed')]).toEqual([[], []])
})

test('without a follower, the writer thread makes no events', () => {
  let made = 0
  const counted = subject({
    writes: {
      touch: write({
        prepare: () => () => true,
        events() {
          made++
          return RULES_CHANGED
        },
      }),
    },
  })
  const db = new Database(':memory:')
  const functions = writeFunctions({ counted }, db, { id: '' })
  expect(commitTogether(db, functions, [{ name: 'counted.touch', args: null }])).toEqual([
    { value: true },
  ])
  expect(made).toBe(0)
})
