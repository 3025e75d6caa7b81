import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { NOT_CURRENT } from './apply.ts'
import { DAMAGED } from './comparison.ts'
import type { StateEvent } from './events.ts'
import type { LogState, PostgresLog } from './log.ts'
import { findDamage, logPositionSetter } from './position.ts'
import { FIRST_CHAIN } from './schema.ts'
import { SharedOrder } from './shared-order.ts'

/** A log that answers each report with `state`. */
function logWith(state: () => Partial<LogState>): PostgresLog {
  const log: Partial<PostgresLog> = {
    subscribe() {},
    unsubscribe() {},
    report: async () => ({ cluster: 'c', head: 0, lagMs: 0, hosts: [], splits: [], ...state() }),
    confirm: async () => {},
    readAfter: async () => [],
    prune: async () => ({ entries: 0, bytes: 0, deleted: 0 }),
    leave: async () => {},
    close: async () => {},
  }
  return log as PostgresLog
}

function openDatabase(path: string): Database {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  logPositionSetter(db)({ cluster: 'c', seq: 0, chain: FIRST_CHAIN })
  return db
}

const openOrder = (db: Database, log: PostgresLog, onState: (event: StateEvent) => void) =>
  new SharedOrder({
    db,
    functions: {},
    host: 'own',
    log,
    compares: false,
    prepare: (call) => ({ call, toResult: (outcome) => outcome }),
    onApplied: () => {},
    onState,
  })

test('a host with wrong rows stops although its disk refuses to record that', async () => {
  using folder = temporaryFolderInMemory()
  const db = openDatabase(folder.path)
  const { promise: recorded, resolve: record } = Promise.withResolvers<void>()
  const problems: StateEvent['problem'][] = []
  db.run('PRAGMA query_only = ON')
  const log = logWith(() => ({
    hosts: ['a', 'b'].map((id) => ({ id, applied: 0, problem: null, isLive: true, version: 1 })),
    splits: [{ seq: 0, digests: { own: 'x', a: 'y', b: 'y' } }],
  }))
  const order = openOrder(db, log, ({ problem }) => {
    problems.push(problem)
    if (problems.length === 2) db.run('PRAGMA query_only = OFF')
    if (problems.length === 5) record()
  })
  await recorded
  expect(new Set(problems)).toEqual(new Set([DAMAGED]))
  expect(findDamage(db)).toBe(DAMAGED)
  await order.close()
  db.close()
})

test('a host has the newest data until it lacks an entry for 5 s, and again when for 2 s', async () => {
  using folder = temporaryFolderInMemory()
  const db = openDatabase(folder.path)
  const lags = [0, 4900, 5100, 2100, 1900, 0]
  const { promise: reported, resolve } = Promise.withResolvers<void>()
  const states: StateEvent['problem'][] = []
  const log = logWith(() => ({ lagMs: lags[states.length] ?? 0 }))
  const order = openOrder(db, log, ({ problem }) => {
    states.push(problem)
    if (states.length === lags.length) resolve()
  })
  await reported
  // The other hosts wait for it after its next report.
  const [none, old] = [undefined, NOT_CURRENT]
  expect(states).toEqual([none, none, old, old, old, none])
  await order.close()
  db.close()
})
