import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { fileOf, hostileFiles } from '../../test/support/imported.ts'
import { readInProcess } from './reader.ts'
import { SourceError } from './source.ts'

/** Files are read in a process that ends, whatever they contain. */

type Limits = Parameters<typeof readInProcess>[2]

async function readAll(content: string | Uint8Array<ArrayBuffer>, limits: Limits = {}) {
  const rows: unknown[] = []
  const options = { format: 'auto', as: 'rows' } as const
  for await (const reading of readInProcess([fileOf(content)], options, limits)) {
    if ('rows' in reading) rows.push(...reading.rows.map(({ sent }) => sent?.url?.text))
  }
  return rows
}

/** Processes that this one has started and that still run. */
function children(): string[] {
  const isRunning = (pid: string) => {
    try {
      return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    } catch {
      return false
    }
  }
  const threads = readdirSync('/proc/self/task')
  const all = threads.flatMap((thread) => {
    try {
      return readFileSync(`/proc/self/task/${thread}/children`, 'utf8').trim().split(' ')
    } catch {
      return []
    }
  })
  return all.filter((pid) => pid !== '' && isRunning(pid))
}

test('the rows of a file of several batches are those of the file', async () => {
  const urls = Array.from({ length: 2500 }, (_, n) => `https://example.com/${n}/ü`)
  expect(await readAll(`url\n${urls.join('\n')}\n`)).toEqual(urls)
  expect(children()).toEqual([])
})

const HUGE = `url\n${'https://example.com/\n'.repeat(400_000)}`

const LIMITS: [name: string, limits: Limits, message: RegExp][] = [
  ['time', { totalMs: 1 }, /reasonable time/],
  ['memory', { memoryMaxBytes: 1 }, /too much memory/],
]
test.each(LIMITS)(
  'a file that needs more %s than it may is refused',
  async (_, limits, message) => {
    const refusal = await readAll(HUGE, limits).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(SourceError)
    expect((refusal as Error).message).toMatch(message)
  },
)

test('a reader ends with the service, and with who uses it', async () => {
  const closing = new AbortController()
  const reading = readAll(HUGE, { signal: closing.signal })
  closing.abort()
  await expect(reading).rejects.toThrow('the service stops')
  const readings = readInProcess([fileOf(HUGE)], { format: 'auto', as: 'lines' })
  await readings.next()
  await readings.return()
  expect(children()).toEqual([])
})

const URL = 'https://ok.example/1'
const KUTT = `CREATE TABLE links(id INTEGER PRIMARY KEY, address TEXT, target TEXT, domain_id INT)`
const INSERT = `INSERT INTO links(address, target, domain_id) VALUES ('a1', '${URL}', 1)`
/** A query without an end. */
const endless = (columns: string) =>
  'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) ' +
  `SELECT ${columns} FROM n WHERE i < 0`

const DATABASES: [name: string, statements: string[], found: string[] | RegExp][] = [
  [
    'a view of endless domains',
    [KUTT, INSERT, `CREATE VIEW domains AS ${endless("i AS id, 'x' AS address")}`],
    [URL],
  ],
  [
    'a view of endless links',
    [`CREATE VIEW links AS ${endless('1 AS address, 2 AS target, 3 AS domain_id')}`],
    /no table of links/,
  ],
  ...(['VIRTUAL', 'STORED'] as const).map((kind): (typeof DATABASES)[number] => [
    `a generated column (${kind})`,
    [`${KUTT.slice(0, -1)}, note TEXT GENERATED ALWAYS AS (hex(zeroblob(1000))) ${kind})`, INSERT],
    /computed columns/,
  ]),
  [
    'a virtual table',
    ['CREATE VIRTUAL TABLE links USING fts5(address, target, domain_id)', INSERT],
    /no table of links/,
  ],
  ['a table of 300 columns', [`${KUTT.slice(0, -1)}, ${wide()})`, INSERT], /200 columns/],
]

function wide(): string {
  return Array.from({ length: 300 }, (_, n) => `c${n}`).join(', ')
}

test.each(DATABASES)('a database with %s runs nothing', async (_, statements, found) => {
  using db = new Database(':memory:')
  for (const sql of statements) db.run(sql)
  const reading = readAll(new Uint8Array(db.serialize()))
  if (found instanceof RegExp) await expect(reading).rejects.toThrow(found)
  else expect(await reading).toEqual(found)
})

test('a text of a database that is no UTF-8 is Windows-1252', async () => {
  using db = new Database(':memory:')
  db.run(KUTT)
  const bytes = Buffer.from('https://e.com/\xfc', 'latin1')
  db.run("INSERT INTO links(address, target) VALUES ('a1', CAST(? AS TEXT))", [bytes])
  expect(await readAll(new Uint8Array(db.serialize()))).toEqual(['https://e.com/ü'])
})

test.each(hostileFiles(2_400_000))('a file of %s is refused', async (_, content) => {
  await expect(readAll(content)).rejects.toThrow(SourceError)
})
