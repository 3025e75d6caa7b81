import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { MIGRATIONS, migrate, versionOf } from '../../src/db/migrate.ts'
import { openWritable } from '../../src/db/open.ts'
import { temporaryFolder } from '../support/folder.ts'

const LINKS = 1_000_000
const BEFORE = MIGRATIONS.findIndex(({ name }) => name === '0010_link_columns')

/** A million links; every tenth has properties, every 20th also tags. */
function fill(db: Database): void {
  db.run(`
    INSERT INTO accounts (id, email, plan, created_at) VALUES (1, 'a@example.com', 'pro', 0);
    WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < ${LINKS})
    INSERT INTO links (id, code, account_id, url, passcode_hash, created_at)
      SELECT id, 'CODE' || id, 1, 'https://example.com/' || id, randomblob(32), id FROM n;
    INSERT INTO link_properties (link_id, title, note, paused_at, starts_at, expires_at, max_hits,
        expired_url, forward_query, delete_at)
      SELECT id, 'Title ' || id, iif(id % 3, 'Note', NULL), iif(id % 7, NULL, id), id, id + 1,
        iif(id % 11, NULL, id), iif(id % 13, NULL, 'https://example.com/over'), id % 20 = 0,
        iif(id % 17, NULL, id)
      FROM links WHERE id % 10 = 0;
    INSERT INTO link_tags SELECT 1, value, links.id
      FROM links, json_each('["summer","a, \\"b\\"","ä"]')
      WHERE links.id % 20 = 0;`)
}

const PROPERTIES = `title, note, starts_at, expires_at, max_hits, expired_url, forward_query,
  delete_at`

/** A hash over all rows of the query, in its order. */
function digestOf(db: Database, sql: string): string {
  const hash = new Bun.CryptoHasher('sha256')
  for (const row of db.query(sql).iterate()) hash.update(`${JSON.stringify(row)}\n`)
  return hash.digest('hex')
}

const OTHERS =
  'SELECT id, code, account_id, url, hex(passcode_hash), created_at FROM links ORDER BY id'
const TAGS = 'SELECT account_id, tag, link_id FROM link_tags ORDER BY tag, link_id'

test('an upgrade of a million links, a tenth of them with properties, keeps all data and leaves a copy', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'hopcode.db')
  const db = openWritable(path)
  migrate(db, MIGRATIONS.slice(0, BEFORE))
  fill(db)
  const before = [
    digestOf(db, OTHERS),
    digestOf(db, TAGS),
    digestOf(
      db,
      `SELECT link_id AS id, paused_at IS NOT NULL AS paused, ${PROPERTIES}
                  FROM link_properties ORDER BY link_id`,
    ),
  ]
  const start = performance.now()
  migrate(db)
  console.log(`upgrade of ${LINKS} links: ${((performance.now() - start) / 1000).toFixed(1)} s`)
  const after = [
    digestOf(db, OTHERS),
    digestOf(db, TAGS),
    digestOf(db, `SELECT id, paused, ${PROPERTIES} FROM links WHERE title IS NOT NULL ORDER BY id`),
  ]
  expect(after).toEqual(before)
  expect(
    db.query('SELECT count(*) AS n FROM links WHERE title IS NULL AND paused = 0').get(),
  ).toEqual({ n: 0.9 * LINKS })
  expect(
    digestOf(
      db,
      `SELECT 1 AS account_id, value AS tag, links.id AS link_id
    FROM links, json_each(tags) WHERE tags IS NOT NULL ORDER BY tag, link_id`,
    ),
  ).toBe(after[1] as string)
  db.close()
  const copies = readdirSync(folder.path).filter((name) => name.startsWith('hopcode.db.before-'))
  expect(copies).toHaveLength(1)
  using copy = new Database(join(folder.path, copies[0] ?? ''), { readonly: true })
  expect(versionOf(copy)).toBe(BEFORE)
  expect(digestOf(copy, OTHERS)).toBe(before[0] as string)
})
