import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { SessionReads, sessionWrites } from './session-store.ts'
import { AccountStore } from './store.ts'
import { accountWrites } from './writes-store.ts'

const KEY = { hash: Buffer.alloc(32), prefix: 'hop_AAAA', lastFour: 'ZZZZ' }

test('a session that has ended meanwhile changes no password', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const accounts = new AccountStore(db)
  const id = accounts.create('ann@example.com', 'free', KEY, 0, { passwordHash: 'old' }) ?? 0
  const hash = Buffer.alloc(32, 1)
  sessionWrites(db).startSession({
    session: { hash, accountId: id, createdAt: 1000, address: '', agent: '' },
    ...{ passwordHash: 'old', replaces: undefined, startedBefore: 0, seenBefore: 0 },
  })
  const keep = new SessionReads(db).findByHash(hash)?.id ?? 0
  const { changePassword } = accountWrites(db)
  const order = { accountId: id, keep, now: 1001 }
  expect(changePassword({ ...order, passwordHash: 'new' })).toBe(true)
  sessionWrites(db).endSessions({ accountId: id })
  expect(changePassword({ ...order, passwordHash: 'stolen' })).toBe(false)
  expect(accounts.find(id)?.passwordHash).toBe('new')
  db.close()
})
