import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { DAMAGED } from './comparison.ts'
import type { StateEvent } from './events.ts'
import type { LogState, PostgresLog } from './log.ts'
import { findDamage, logPositionSetter } from './position.ts'
import { FIRST_CHAIN } from './schema.ts'
import { SharedOrder } from './shared-order.ts'

/** The log of a cluster in which the host `own` has wrong rows. */
function logWithSplit(): PostgresLog {
  const state: LogState = {
    cluster: 'c',
    head: 0,
    hosts: ['a', 'b'].map((id) => ({ id, applied: 0, problem: null, isLive: true, version: 1 })),
    splits: [{ seq: 0, digests: { own: 'x', a: 'y', b: 'y' } }],
  }
  const log: Partial<PostgresLog> = {
    subscribe() {},
    unsubscribe() {},
    report: async () => state,
    confirm: async () => {},
    readAfter: async () => [],
    prune: async () => ({ entries: 0, bytes: 0, deleted: 0 }),
    leave: async () => {},
    close: async () => {},
  }
  return log as PostgresLog
}

test('a host with wrong rows stops although its disk refuses to record that', async () => {
  using folder = temporaryFolderInMemory()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  logPositionSetter(db)({ cluster: 'c', seq: 0, chain: FIRST_CHAIN })
  const { promise: recorded, resolve: record } = Promise.withResolvers<void>()
  const problems: StateEvent['problem'][] = []
  db.run('PRAGMA query_only = ON')
  const order = new SharedOrder({
    db,
    functions: {},
    host: 'own',
    log: logWithSplit(),
    compares: false,
    prepare: (call) => ({ call, answer: (outcome) => outcome }),
    onApplied: () => {},
    onState: ({ problem }) => {
      problems.push(problem)
      if (problems.length === 2) db.run('PRAGMA query_only = OFF')
      if (problems.length === 5) record()
    },
  })
  await recorded
  expect(new Set(problems)).toEqual(new Set([DAMAGED]))
  expect(findDamage(db)).toBe(DAMAGED)
  await order.close()
  db.close()
})
