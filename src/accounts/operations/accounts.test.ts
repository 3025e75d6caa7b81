import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../../test/support/folder.ts'
import { operationsOn } from '../../../test/support/subjects.ts'
import { migrate } from '../../db/migrate.ts'
import { openWritable } from '../../db/open.ts'
import { HOUR } from '../../lib/clock.ts'
import { OneTimeLinkStore } from '../one-time-links.ts'
import { sessions } from '../sessions.ts'
import { AccountStore, type NewAccount, type NewKey } from '../store.ts'
import { accounts as subject } from './accounts.ts'
import { KEY_OVERLAP_MS } from './keys.ts'

const KEY: NewKey = {
  hash: Buffer.alloc(32),
  prefix: 'hop_AAAA',
  lastFour: 'ZZZZ',
  name: null,
  scope: 'write',
}
const ANN: NewAccount = { email: 'ann@example.com', plan: 'free', key: KEY, now: 0 }

test('a session that has ended meanwhile changes no password', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const accounts = new AccountStore(db)
  const id = accounts.create({ ...ANN, passwordHash: 'old' }) ?? 0
  const hash = Buffer.alloc(32, 1)
  const { start, findByHash, endAll } = operationsOn(db, sessions)
  start({
    session: { hash, personId: id, createdAt: 1000, address: '', agent: '', isLong: 0 },
    proof: { kind: 'one', passwordHash: 'old' },
    replaces: undefined,
    startedBefore: 0,
    seenBefore: 0,
    longBefore: 0,
  })
  const keep = findByHash(hash)?.id ?? 0
  const { changePassword } = operationsOn(db, subject)
  const change = { personId: id, keep, tokenHash: Buffer.alloc(32, 2), now: 1001 }
  expect(changePassword({ ...change, passwordHash: 'new' })).toBe(true)
  endAll({ personId: id })
  expect(changePassword({ ...change, passwordHash: 'stolen' })).toBe(false)
  expect(accounts.findPerson(id)?.passwordHash).toBe('new')
  db.close()
})

test('used and expired one-time links are deleted when another one is created', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const links = new OneTimeLinkStore(db)
  const add = (n: number, createdAt: number, endsAt: number) =>
    links.add({ purpose: 'invite', hash: Buffer.alloc(32, n), createdAt, endsAt })
  const held = () =>
    db.prepare<{ id: number }, []>('SELECT id FROM one_time_links ORDER BY id').all()

  add(1, 1000, 9000)
  add(2, 1000, 2000)
  add(3, 1000, 2001)
  links.markUsed(1, 1500)
  expect(held()).toHaveLength(3)
  add(4, 2000, 9000)
  expect(held()).toEqual([{ id: 3 }, { id: 4 }])
  db.close()
})

test('a new key deletes those of its account that expired 30 days ago, and no other', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const accounts = new AccountStore(db)
  const key = (n: number) => ({ ...KEY, hash: Buffer.alloc(32, n) })
  const ann = accounts.create({ ...ANN, key: key(1) }) ?? 0
  const ben = accounts.create({ ...ANN, email: 'ben@example.com', key: key(2) }) ?? 0
  const rotate = (id: number, n: number, now: number) => {
    accounts.revokeKeys(id, now + KEY_OVERLAP_MS)
    accounts.addKey(id, key(n), now)
  }
  const held = () =>
    db
      .prepare<{ hash: Uint8Array }, []>('SELECT hash FROM api_keys ORDER BY id')
      .all()
      .map(({ hash }) => hash[0])

  rotate(ann, 3, 0)
  rotate(ben, 4, 0)
  const gone = KEY_OVERLAP_MS + 30 * 24 * HOUR
  rotate(ann, 5, gone - 1)
  expect(held()).toEqual([1, 2, 3, 4, 5])
  rotate(ann, 6, gone)
  expect(held()).toEqual([2, 3, 4, 5, 6])
  const works = [3, 5, 6].map((n) => accounts.findByKeyHash(key(n).hash, gone)?.id)
  expect(works).toEqual([ann, ann, ann])
  db.close()
})
