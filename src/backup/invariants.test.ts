import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openReadonly, openWritable } from '../db/open.ts'
import { adoptJournal, hitAdder } from '../hits/store.ts'
import { urlKey } from '../links/url.ts'
import { closeAlone } from './backup-file.ts'
import { checkDatabase } from './invariants.ts'

const LINK = `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)`
const HASH = 'randomblob(32)'
const KEY = `x'${Buffer.from(urlKey(new URL('https://example.com/'))).toString('hex')}'`

function setUp(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  db.run(`INSERT INTO accounts (name, plan, link_count, created_at) VALUES ('a@b.c', 'pro', 2, 0)`)
  db.run(`INSERT INTO people (email, account_id, created_at) VALUES ('a@b.c', 1, 0)`)
  db.run(`INSERT INTO memberships (account_id, person_id, role, created_at)
          VALUES (1, 1, 'admin', 0)`)
  db.run(`INSERT INTO api_keys (account_id, hash, last_four, created_at)
          VALUES (1, ${HASH}, 'abcd', 0)`)
  db.run(`${LINK} VALUES ('SPRING26', 1, 'https://example.com/', ${KEY}, ${HASH}, 0),
                         ('RESERVED', 1, NULL, NULL, ${HASH}, 0)`)
  db.run(`UPDATE accounts SET url_bytes = length('https://example.com/')`)
  adoptJournal(db, 'journal')
  hitAdder(db)({ linkIds: Uint32Array.of(1, 1, 1, 1, 9), end: 5 })
  db.run(`INSERT INTO links_search (rowid, text) VALUES (1 << 32 | 1, 'https://example.com/')`)
  db.run('UPDATE search_progress SET indexed_to = 1')
  return db
}

const problems = (db: ReturnType<typeof setUp>) =>
  [...checkDatabase(db)].filter(({ status }) => status === 'problem')

test('a good database has no problem', () => {
  using folder = temporaryFolder()
  const db = setUp(folder.path)
  expect(problems(db)).toEqual([])
  db.close()
})

const DAMAGE: [check: string, sql: string][] = [
  ['codes', `UPDATE links SET code = 'spring26' WHERE id = 1`],
  ['codes', `UPDATE links SET code = 'SHORT' WHERE id = 1`],
  ['urls', `UPDATE links SET url = 'javascript:alert(1)' WHERE id = 1`],
  ['urls', `UPDATE links SET url = NULL WHERE id = 1`],
  ['urls', `UPDATE links SET url_key = x'00' WHERE id = 1`],
  ['url keys', `UPDATE links SET url = 'https://example.com/x' WHERE id = 1`],
  ['url keys', `UPDATE links SET url = 'https://' WHERE id = 1`],
  ['hashes', `UPDATE links SET passcode_hash = x'00' WHERE id = 1`],
  ['hashes', `UPDATE api_keys SET hash = x'00'`],
  ['owners', `UPDATE api_keys SET account_id = 7`],
  ['members', 'UPDATE memberships SET account_id = 7'],
  ['members', 'UPDATE memberships SET person_id = 7'],
  ['members', `UPDATE memberships SET role = 'editor'`],
  ['members', 'DELETE FROM memberships'],
  ['link counts', 'UPDATE accounts SET link_count = 3'],
  ['hits', 'UPDATE hit_totals SET redirects = 3'],
  ['hits', 'UPDATE hits SET link_id = 99'],
  ['hits of accounts', 'UPDATE hits SET account_id = 9'],
  ['hits of accounts', 'UPDATE account_hits SET count = 3'],
  ['stored bytes', 'UPDATE accounts SET url_bytes = url_bytes + 1'],
  ['stored bytes', `UPDATE links SET title = 'Spring' WHERE id = 1`],
  ['tags', `UPDATE links SET tags = '["spring"]' WHERE id = 1; DELETE FROM link_tags`],
  ['tags', `INSERT INTO link_tags (account_id, tag, link_id) VALUES (1, 'spring', 1)`],
  ['aliases', `INSERT INTO aliases (path, link_id) VALUES ('no-link', 99)`],
  ['aliases', `INSERT INTO aliases (path, link_id, folded) VALUES ('Abcdef', 1, NULL)`],
  ['aliases', `INSERT INTO aliases (path, link_id, folded) VALUES ('spring26', 1, 'SPRING26')`],
  ['stored bytes', `INSERT INTO aliases (path, link_id) VALUES ('spring-sale', 1)`],
  ['search index', 'UPDATE search_progress SET indexed_to = 2'],
  ['search index', 'DELETE FROM links_search WHERE rowid = 1 << 32 | 1'],
  ['search index', `INSERT INTO links_search (rowid, text) VALUES (1 << 32 | 99, 'abc')`],
  ['version', 'PRAGMA user_version = 99'],
  ['schema', `CREATE TRIGGER t AFTER INSERT ON sessions BEGIN UPDATE people SET is_owner = 1; END`],
  ['schema', 'CREATE VIEW v AS SELECT * FROM people'],
  ['schema', 'CREATE TABLE other (id integer)'],
  ['schema', 'CREATE INDEX other ON people (is_owner)'],
  ['schema', 'DROP TRIGGER link_tags_changed'],
  ['schema', 'DROP INDEX people_email'],
  ['schema', `ALTER TABLE people ADD COLUMN other integer DEFAULT 1`],
]
test.each(DAMAGE)('%s: a problem is found after %s', (check, sql) => {
  using folder = temporaryFolder()
  const db = setUp(folder.path)
  db.run(sql)
  expect(problems(db).map((problem) => problem.check)).toContain(check)
  db.close()
})

test('more hits than an integer of SQLite can hold are no error', () => {
  using folder = temporaryFolder()
  const db = setUp(folder.path)
  const most = 10 ** 18
  db.run(`WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 109)
          INSERT INTO links (id, code, account_id, passcode_hash, created_at)
          SELECT i, 'HUGE' || i, i, ${HASH}, 0 FROM n`)
  db.run(`WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 109)
          INSERT INTO hits (link_id, account_id, count) SELECT i, i, ${most} FROM n`)
  expect(problems(db).map(({ check }) => check)).not.toContain('hits')
  db.close()
})

test('a damaged page is a problem, and the only one told', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'hopcode.db')
  closeAlone(setUp(folder.path))
  const bytes = readFileSync(file)
  const at = bytes.indexOf('SPRING26')
  writeFileSync(file, bytes.fill(0xff, at - 40, at))
  const db = openReadonly(file, { cacheKiB: 1024 })
  expect(problems(db)).toEqual([
    {
      check: 'database file',
      status: 'problem',
      says: expect.stringContaining('it is damaged: '),
      advice: expect.stringContaining('Run "hopcode restore" with a backup'),
    },
  ])
  db.close()
})

test('two links of one URL are told, not blamed: an update may make them', () => {
  using folder = temporaryFolder()
  const db = setUp(folder.path)
  db.run(`${LINK} SELECT 'AGAIN2026', 1, url, url_key, passcode_hash, 0 FROM links WHERE id = 1`)
  db.run('UPDATE accounts SET link_count = 3, url_bytes = 2 * url_bytes')
  expect(problems(db)).toEqual([])
  expect([...checkDatabase(db)]).toContainEqual({
    check: 'duplicates',
    status: 'note',
    says: expect.stringContaining('1 links'),
  })
  db.close()
})
