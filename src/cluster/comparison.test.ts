import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { migrate, versionOf } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { DAMAGED, verdictOn } from './comparison.ts'
import { type HashRows, rowHashes } from './rows.ts'

type Verdict = ReturnType<typeof verdictOn>

interface Case {
  name: string
  /** Digests of the hosts a, b, ... for one entry; a space where there is none. */
  digests: string
  /** Live hosts that have not applied the entry yet. */
  behind?: string
  damaged?: string
  /** Verdicts on the hosts a, b, ... that have a digest. */
  verdicts: Verdict[]
}

const CASES: readonly Case[] = [
  { name: 'the first is wrong', digests: 'xyy', verdicts: ['wrong', 'right', 'right'] },
  { name: 'the last is wrong', digests: 'yyx', verdicts: ['right', 'right', 'wrong'] },
  { name: 'two hosts', digests: 'xy', verdicts: ['undecided', 'undecided'] },
  { name: 'two pairs', digests: 'xxyy', verdicts: Array(4).fill('undecided') },
  { name: 'no two are equal', digests: 'xyz', verdicts: Array(3).fill('undecided') },
  { name: 'one may decide', digests: 'xy', behind: 'c', verdicts: ['right', 'right'] },
  {
    name: 'one is behind and cannot change the majority',
    digests: 'xyyy',
    behind: 'e',
    verdicts: ['wrong', 'right', 'right', 'right'],
  },
  { name: 'the other is known to be wrong', digests: 'xy', damaged: 'a', verdicts: ['right'] },
]

test.each([...CASES])('whose rows are right: $name', ({ digests, behind, damaged, verdicts }) => {
  const ids = [...'abcde'].slice(0, digests.length)
  const split = {
    seq: 5,
    digests: Object.fromEntries(ids.map((id, at) => [id, digests[at] as string])),
  }
  const hosts = [...ids, ...(behind ?? '')].map((id) => ({
    id,
    applied: behind?.includes(id) ? 4 : 5,
    problem: damaged?.includes(id) ? DAMAGED : null,
    isLive: !damaged?.includes(id),
    version: 1,
  }))
  const found = ids
    .filter((id) => !damaged?.includes(id))
    .map((own) =>
      verdictOn(
        [split],
        own,
        hosts.filter(({ id }) => id !== own),
      ),
    )
  expect(found).toEqual(verdicts)
})

test('each row of all tables is in one part, whatever the sizes of the parts are', () => {
  using folder = temporaryFolderInMemory()
  const db = openWritable(join(folder.path, 'hopcode.db'))
  migrate(db)
  db.run(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
    INSERT INTO links (code, account_id, url, passcode_hash, created_at)
    SELECT 'CODE' || (1000 + i), 1, 'https://example.com/' || i, zeroblob(32), 0 FROM n`)
  db.run(`INSERT INTO hit_days SELECT 0, id, id % 7, 1, NULL, NULL FROM links`)
  db.run(`INSERT INTO settings VALUES ('name', 'value')`)
  // They would change a row of another table, too.
  const triggers = db.query<{ name: string }, []>(
    `SELECT name FROM sqlite_schema WHERE type = 'trigger'`,
  )
  for (const { name } of triggers.all()) db.run(`DROP TRIGGER ${name}`)
  const { hashRows } = rowHashes(db)
  const version = versionOf(db)
  const digests = (rowsMax: number) => {
    const parts: string[] = []
    let from: HashRows['from'] = null
    do {
      const part = hashRows({ version, from, rowsMax, bytesMax: 1e6 })
      if (!part) throw new Error('another version')
      parts.push(part.digest)
      from = part.next
    } while (from)
    return parts
  }
  const changes = [
    ...[1, 100, 101, 250].map((id) => `UPDATE links SET url = url || 'x' WHERE id = ${id}`),
    'UPDATE links SET passcode_hash = zeroblob(31) WHERE id = 200',
    'UPDATE hit_days SET count = 2 WHERE day = 3 AND id = 38',
    `UPDATE settings SET value = 'other'`,
    `UPDATE sqlite_sequence SET seq = 251 WHERE name = 'links'`,
  ]
  for (const change of changes) {
    for (const rowsMax of [1, 250, 5000]) {
      const before = digests(rowsMax)
      db.run('BEGIN')
      expect(db.query(change).run().changes).toBe(1)
      const after = digests(rowsMax)
      db.run('ROLLBACK')
      expect(after.filter((digest, at) => digest !== before[at])).toHaveLength(1)
      expect(after).toHaveLength(before.length)
    }
  }
  expect(hashRows({ version: version + 1, from: null, rowsMax: 1, bytesMax: 1 })).toBeUndefined()
  db.close()
})
