import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { type NewSession, sessions } from './sessions.ts'
import { AccountStore, type NewKey } from './store.ts'

const KEY: NewKey = {
  hash: Buffer.alloc(32),
  prefix: 'hop_AAAA',
  lastFour: 'ZZZZ',
  name: null,
  scope: 'write',
}
const hashOf = (n: number) => Buffer.alloc(32, n)

function open(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  const accounts = new AccountStore(db)
  const create = (email: string, key: NewKey) =>
    accounts.create({ email, plan: 'free', key, now: 0, passwordHash: 'hash' }) ?? 0
  const personId = create('ann@example.com', KEY)
  const otherId = create('bob@example.com', { ...KEY, hash: Buffer.alloc(32, 1) })
  const stored = operationsOn(db, sessions)
  const start = (n: number, createdAt: number, more: Partial<NewSession> = {}) =>
    stored.start({
      session: {
        hash: hashOf(n),
        personId,
        createdAt,
        address: '',
        agent: '',
        isLong: 0,
        ...more,
      },
      proof: { kind: 'one', passwordHash: 'hash' },
      replaces: undefined,
      startedBefore: createdAt - 1000,
      seenBefore: createdAt - 500,
      longBefore: createdAt - 5000,
    })
  return { stored, start, personId, otherId, accounts, db }
}

test('a person keeps the hundred sessions that were seen last', () => {
  using folder = temporaryFolder()
  const { stored, start, personId } = open(folder.path)
  for (let n = 1; n <= 103; n++) start(n, 1000 + n)
  const kept = stored.list(personId)
  expect(kept).toHaveLength(100)
  expect(kept[0]?.createdAt).toBe(1103)
  expect(stored.findByHash(hashOf(3))).toBeUndefined()
  expect(stored.findByHash(hashOf(4))).toBeDefined()
})

test('a session begins as it then reads, even the hundred-and-first of a clock that was set back', () => {
  using folder = temporaryFolder()
  const { stored, start } = open(folder.path)
  for (let n = 1; n <= 100; n++) start(n, 1400 + n)
  const begun = start(101, 1100)
  expect(begun).toMatchObject({ email: 'ann@example.com', plan: 'free', isOwner: 0 })
  expect(stored.findByHash(hashOf(101))).toEqual(begun)
  expect(stored.findByHash(hashOf(1))).toBeUndefined()
})

test('a sign-in deletes expired sessions, of other accounts too', () => {
  using folder = temporaryFolder()
  const { stored, start, personId, otherId } = open(folder.path)
  start(1, 1000, { personId: otherId })
  start(2, 1400)
  start(3, 1450)
  stored.touch({ id: stored.findByHash(hashOf(3))?.id ?? 0, seenAt: 1900 })
  start(4, 2000)
  expect(stored.list(personId).map(({ createdAt }) => createdAt)).toEqual([2000, 1450])
  start(5, 2450)
  expect(stored.list(personId).map(({ createdAt }) => createdAt)).toEqual([2450, 2000])
})

test('ending all sessions but one leaves other accounts alone', () => {
  using folder = temporaryFolder()
  const { stored, start, personId, otherId, db } = open(folder.path)
  start(1, 1000)
  start(2, 1001)
  start(3, 1002, { personId: otherId })
  const keep = stored.findByHash(hashOf(1))?.id ?? 0
  stored.endAll({ personId, keep })
  expect(db.query('SELECT person_id FROM sessions ORDER BY id').values()).toEqual([
    [personId],
    [otherId],
  ])
})

test('a password that has changed since it was verified starts no session', () => {
  using folder = temporaryFolder()
  const { stored, start, accounts, personId } = open(folder.path)
  expect(start(1, 1000)).toBeDefined()
  accounts.changePerson(personId, { passwordHash: 'another hash' })
  expect(start(2, 1001)).toBeUndefined()
  accounts.changePerson(personId, { passwordHash: 'hash' })
  accounts.change(personId, { disabledAt: 1002 })
  expect(start(3, 1003)).toBeUndefined()
  expect(stored.list(personId).map(({ createdAt }) => createdAt)).toEqual([1000])
})
