// Which forms of the most frequent statements are slow in the SQLite of this Bun?
// npm run bench -- statements
import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { migrate } from '../../src/db/migrate.ts'
import { printMachine } from '../lib/micro.ts'
import { median } from '../lib/rounds.ts'

const LINKS = 20_000
const ROUNDS = 5
const HASH = new Uint8Array(32)
const LINK_VALUES = '(code, account_id, url, created_at, url_key, passcode_hash)'

type Step = (n: number) => unknown

interface Case {
  name: string
  /** The form that the service uses. */
  kept: (db: Database) => Step
  other: (db: Database) => Step
}

const codeOf = (n: number): string => `CODE${String(n).padStart(8, '0')}`
const keyOf = (n: number): Uint8Array => new Uint8Array(new BigUint64Array([BigInt(n), 0n]).buffer)
const valuesOf = (n: number) => [codeOf(n), 1, `https://example.com/${n}`, n, keyOf(n), HASH]

const get = (db: Database, sql: string, argsOf: (n: number) => SQLQueryBindings[]): Step => {
  const statement = db.prepare(sql)
  return (n) => statement.get(...argsOf(n))
}

const CASES: readonly Case[] = [
  {
    name: 'the account of a key: a subquery, or JOIN',
    kept: (db) =>
      get(
        db,
        `SELECT id, (SELECT plan FROM accounts WHERE id = account_id AND disabled_at IS NULL)
         FROM api_keys WHERE hash = ?`,
        () => [HASH],
      ),
    other: (db) =>
      get(
        db,
        `SELECT api_keys.id, plan FROM api_keys JOIN accounts ON accounts.id = account_id
         WHERE hash = ? AND disabled_at IS NULL`,
        () => [HASH],
      ),
  },
  {
    name: 'the link of a URL: INDEXED BY, or ORDER BY id',
    kept: (db) =>
      get(
        db,
        `SELECT id, code, url FROM links INDEXED BY links_url
         WHERE account_id = ? AND url_key = ? LIMIT 1`,
        (n) => [1, keyOf(n)],
      ),
    other: (db) =>
      get(
        db,
        `SELECT id, code, url FROM links WHERE account_id = ? AND url_key = ?
         ORDER BY id LIMIT 1`,
        (n) => [1, keyOf(n)],
      ),
  },
  {
    name: 'a new link: a lookup and VALUES, or SELECT … WHERE NOT EXISTS',
    kept: (db) => {
      const find = db.prepare('SELECT 1 FROM disabled_codes WHERE code = ?')
      const insert = db.prepare(
        `INSERT INTO links ${LINK_VALUES} VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (code) DO NOTHING`,
      )
      return (n) => find.get(codeOf(LINKS + n)) ?? insert.run(...valuesOf(LINKS + n))
    },
    other: (db) => {
      const insert = db.prepare(
        `INSERT INTO links ${LINK_VALUES} SELECT ?1, ?2, ?3, ?4, ?5, ?6
         WHERE NOT EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1)
         ON CONFLICT (code) DO NOTHING`,
      )
      return (n) => insert.run(...valuesOf(LINKS + n))
    },
  },
  {
    name: 'hits of a link: a lookup and UPDATE, or RETURNING',
    kept: (db) => {
      const find = db.prepare('SELECT account_id FROM hits WHERE link_id = ?')
      const add = db.prepare('UPDATE hits SET count = count + 1 WHERE link_id = ?')
      return (n) => find.get(n) && add.run(n)
    },
    other: (db) =>
      get(db, 'UPDATE hits SET count = count + 1 WHERE link_id = ? RETURNING account_id', (n) => [
        n,
      ]),
  },
]

printMachine()
console.log('| statement | kept, µs | other, µs | ratio (lowest–highest round) |')
console.log('| --- | ---: | ---: | ---: |')
for (const { name, kept, other } of CASES) {
  const rounds = Array.from({ length: ROUNDS }, () => [measure(kept), measure(other)] as const)
  const ratios = rounds.map(([ours, theirs]) => theirs / ours)
  const [ours, theirs] = [0, 1].map((at) => median(rounds.map((round) => round[at] as number)))
  const range = `${Math.min(...ratios).toFixed(1)}–${Math.max(...ratios).toFixed(1)}`
  const cells = [ours?.toFixed(1), theirs?.toFixed(1), `${median(ratios).toFixed(1)} (${range})`]
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}

/** Microseconds per call, in a transaction on a new database in memory. */
function measure(open: (db: Database) => Step): number {
  using db = new Database(':memory:')
  migrate(db)
  db.run(`INSERT INTO accounts (id, email, plan, created_at) VALUES (1, 'a@example.com', 'pro', 0)`)
  db.run(
    `INSERT INTO api_keys (account_id, hash, prefix, last_four, created_at)
     VALUES (1, ?, '', '', 0)`,
    [HASH],
  )
  db.run('BEGIN')
  const insert = db.prepare(`INSERT INTO links ${LINK_VALUES} VALUES (?, ?, ?, ?, ?, ?)`)
  for (let n = 1; n <= LINKS; n++) insert.run(...valuesOf(n))
  db.run('INSERT INTO hits (link_id, account_id, count) SELECT id, account_id, 1 FROM links')
  const step = open(db)
  const startedAt = performance.now()
  for (let n = 1; n <= LINKS; n++) step(n)
  return ((performance.now() - startedAt) * 1000) / LINKS
}
