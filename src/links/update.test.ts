import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { SecretHasher } from '../accounts/secrets.ts'
import type { Account } from '../accounts/store.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { LinkReads } from './read.ts'
import { authorizeByPasscode } from './update.ts'

/** Neighbours in every way: by length, by the last character, by what the search begins with. */
const CODES = [
  '000000',
  '0000000',
  '00000000000000000000',
  '000001',
  '00000Z',
  'ABCDEE',
  'ABCDEEZZZZ',
  'ABCDEF',
  'ABCDEF0',
  'ABCDEFA',
  'ABCDEFZ',
  'ABCDEG',
  'AAAAAA',
  'ZZZZZZ',
  'ZZZZZZZZZZZZZZZZZZZY',
]
const UNKNOWN = [
  '00000Y',
  '00000A0',
  '000000A',
  'ABCDED',
  'ABCDEEZ',
  'ABCDEF1',
  'ABCDEFAA',
  'AAAAAB',
  'ZZZZZZZZZZZZZZZZZZZZ',
  'ZZZZZY',
  '',
  'A',
  'ABC-EF',
  'ABCDE~',
  'ABCDEF~',
  'ABCDEF ',
  '~~~~~~',
]

// design: 4.8 update and delete
test('a passcode opens its own code in any letter case, and no other', () => {
  using folder = temporaryFolder()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  const hasher = new SecretHasher(Buffer.alloc(32, 1))
  const add = db.prepare(
    'INSERT INTO links (code, account_id, passcode_hash, created_at) VALUES (?, 1, ?, 0)',
  )
  const deps = { data: { links: new LinkReads(db) }, hasher }
  const account = { id: 1 } as Account
  expect(() => authorizeByPasscode(deps, account, 'ABCDEF', 'of ABCDEF')).toThrow(
    'Invalid passcode',
  )
  for (const code of CODES) add.run(code, hasher.hash('passcode', `of ${code}`))
  for (const code of CODES) {
    expect(authorizeByPasscode(deps, account, code, `of ${code}`).code as string).toBe(code)
    expect(
      authorizeByPasscode(deps, account, code.toLowerCase(), `of ${code}`).code as string,
    ).toBe(code)
    expect(() => authorizeByPasscode(deps, { id: 2 } as Account, code, `of ${code}`)).toThrow(
      'Invalid passcode',
    )
    for (const other of [...CODES, ...UNKNOWN]) {
      if (other === code) continue
      expect(() => authorizeByPasscode(deps, account, other, `of ${code}`)).toThrow(
        'Invalid passcode',
      )
    }
  }
  db.close()
})
