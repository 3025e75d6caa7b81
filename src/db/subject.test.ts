import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { Code } from '../lib/code.ts'
import type { Effects } from './effects.ts'
import {
  effectsOfOthers,
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
      since: 2,
      pack: (codes: readonly Code[]) => codes.join(),
      prepare: (db) => (packed: string) => {
        for (const text of packed.split(',')) db.run('INSERT INTO lines (text) VALUES (?)', [text])
        return packed
      },
      unpack: (packed: string) => packed.split(',') as Code[],
      effect: (effects, codes) => effects.linksChanged(codes),
    }),
    clear: write({
      since: 1,
      prepare: (db) => () => void db.run('DELETE FROM lines'),
      effect: (effects) => effects.rulesChanged(),
    }),
    probe: localWrite({ prepare: () => () => true }),
  },
})
const subjects = { lines }
const CODES = ['SPRING', 'SUMMER'] as Code[]

/** The data over one connection; `done` collects calls, effects and results in their order. */
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
  const receiver = {
    linksChanged: (codes: readonly Code[]) => void done.push(`changed ${codes}`),
    rulesChanged: () => void done.push('rules changed'),
  } as Effects
  const data = openSubjects(subjects, {
    db,
    callReader: call,
    callWriter: call,
    effects: [receiver],
    ...options,
  })
  return { db, data, done, state, receiver }
}

test('an operation runs where it is declared, under its name', async () => {
  const { data, done } = setUp()
  expect(await data.lines.add(CODES)).toEqual(CODES)
  expect(data.lines.find(2)).toBe('SUMMER')
  expect(await data.lines.count()).toBe(2)
  expect(done).toEqual(['lines.add', 'changed SPRING,SUMMER', 'lines.count'])
})

test('effects are applied before the caller continues, and never for a write that failed', async () => {
  const { data, done, state } = setUp()
  await data.lines.clear().then(() => done.push('answered'))
  expect(done.splice(0)).toEqual(['lines.clear', 'rules changed', 'answered'])
  state.isFull = true
  await expect(data.lines.add(CODES)).rejects.toThrow('disk is full')
  expect(done).toEqual(['lines.add'])
})

test('effects are applied on this host before the other hosts are waited for', async () => {
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
  expect(done).toEqual(['lines.clear', 'rules changed', 'waits for others after lines.clear'])
  applied.resolve()
  await answered
  expect(done.at(-1)).toBe('answered')
})

test('a write of another host has the same effects, and an unknown call has none', () => {
  const { done, receiver } = setUp()
  const apply = effectsOfOthers(subjects, [receiver])
  apply('lines.add', 'SPRING,SUMMER')
  apply('hashRows', { digest: '' })
  expect(done).toEqual(['changed SPRING,SUMMER'])
})

test('the log of a cluster knows since when each write exists, and which ones stay out of it', () => {
  const since = Object.entries(writesOf(subjects)).map(([name, one]) => [name, one.since])
  expect(Object.fromEntries(since)).toEqual({
    'lines.add': 2,
    'lines.clear': 1,
    'lines.probe': undefined,
  })
})

test('what operations share is prepared once on each connection', () => {
  const prepared: Database[] = []
  const shared = perConnection((db) => prepared.push(db))
  const [one, other] = [new Database(':memory:'), new Database(':memory:')]
  expect([shared(one), shared(one), shared(other)]).toEqual([1, 1, 2])
})
