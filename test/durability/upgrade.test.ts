import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DATABASE_VERSION, migrate, versionOf } from '../../src/db/migrate.ts'
import { openReadonly, openWritable } from '../../src/db/open.ts'
import { sumOf } from '../../src/hits/hours.ts'
import { dayReader } from '../../src/hits/series.ts'
import { decodeSums } from '../../src/visits/parts.ts'
import { type VisitKey, visitKey } from '../../src/visits/values.ts'
import { command, Service, unlimited } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'

/**
 * Data folders that commits before the first release have written: `data-of-schema-19` by 3f7ad441,
 * with first rows by c8488ce2, until it was killed with 13 hits in the journal; `data-of-schema-18`
 * by 2a064674.
 */
function unpack(version: 18 | 19, path: string): void {
  const from = join(import.meta.dir, `data-of-schema-${version}`)
  mkdirSync(path)
  for (const name of readdirSync(from)) {
    const bytes = Bun.zstdDecompressSync(readFileSync(join(from, name)))
    writeFileSync(join(path, name.replace('.zst', '')), bytes, { mode: 0o600 })
  }
}

/** The key of the account in both folders of version 19. */
const KEY = 'hop_AYOXsEECMu8qtWvMnLJFRs0X2qy0kv23vDb3'

const copies = (path: string) => readdirSync(path).filter((name) => name.includes('.before-'))

/** Columns, indexes and triggers, without the spelling of their SQL. */
function shapeOf(db: Database) {
  const objects = db
    .query<{ type: string; name: string; sql: string | null }, []>(
      `SELECT type, name, sql FROM sqlite_schema
       WHERE name NOT LIKE 'links_search_%' ORDER BY name`,
    )
    .all()
  return objects.map(({ type, name, sql }) => ({
    name,
    columns: db.query(`SELECT * FROM pragma_table_info('${name}')`).all(),
    isWithoutRowid: /WITHOUT ROWID/.test(sql ?? ''),
    sql: type === 'table' ? '' : sql?.replace(/\s+/g, ' '),
  }))
}

test('a folder of version 19 serves on with all that it holds, and a copy lies beside it', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'data')
  unpack(19, path)
  const env = { ...unlimited(path), BASE_URL: 'https://go.example' }
  await using service = await Service.start(env)
  const get = async (at: string) =>
    (await service.fetch(at, { headers: { 'x-api-key': KEY } })).json()
  const follow = async (at: string) => (await service.fetch(at)).headers.get('location')
  expect(await follow('/YGBTF473')).toBe('https://example.com/alpha/first')
  expect(await follow('/print-beta')).toBe('https://example.com/beta/second')
  // Twelve hits of each pair of links, one by the alias, and the two above.
  const hits = await Promise.all(
    ['YGBTF473', 'FJL9GJYE', 'UG5XTWNX', '2QFX2PWL'].map((code) => service.hitCount(code)),
  )
  expect(hits).toEqual([7, 6, 6, 8])
  expect(await get('/api/list')).toMatchObject({ total: 6 })
  expect(await get('/api/list?search=beta')).toMatchObject({ total: 3 })
  expect(await get('/api/links/2QFX2PWL')).toMatchObject({ max_hits: 100, no_index: true })
  expect(await get('/api/links/UG5XTWNX')).toMatchObject({ tags: ['beta', 'spring'] })
  expect(await service.end('SIGTERM')).toBe(0)

  const checked = await command(['check'], env)
  expect(checked).toMatchObject({ code: 0, out: expect.stringContaining('All is well.') })
  const [copy = '', ...others] = copies(path)
  expect(others).toEqual([])
  expect(copy).toStartWith(`hopcode.db.before-${DATABASE_VERSION}-`)
  const open = (name: string) => openReadonly(join(path, name), { cacheKiB: 1024 })
  using before = new Database(join(path, copy), { readonly: true })
  expect(versionOf(before)).toBe(19)
  using upgraded = open('hopcode.db')
  using fresh = openWritable(join(folder.path, 'fresh.db'))
  migrate(fresh)
  expect(versionOf(upgraded)).toBe(DATABASE_VERSION)
  expect(shapeOf(upgraded)).toEqual(shapeOf(fresh))
})

test('hits and visits by day of version 19 are read after the upgrade', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'data')
  unpack(19, path)
  using db = openWritable(join(path, 'hopcode.db'))
  const before = db
    .query<{ day: number; scope: 0 | 1; id: number; count: number }, []>(
      'SELECT day, scope, id, count FROM hits_by_day',
    )
    .all()
  expect(before).toHaveLength(3)
  migrate(db)
  const read = dayReader(db)
  for (const { day, scope, id, count } of before) {
    const days = read(scope, id, 0, day + 1)
    expect(days.map((one) => [one.day, one.count, sumOf(one.hours())])).toEqual([
      [day, count, count],
    ])
  }
  const rows = db
    .query<{ parts: Uint8Array }, []>('SELECT parts FROM hit_days ORDER BY scope, id')
    .all()
  const key = visitKey
  const referrers = (count: number) =>
    [0, 1, 2].map((n) => [key('referrer', `site-${n}.example`), count] as const)
  const desktop = [key('device', 'desktop'), key('os', 'windows'), key('browser', 'chrome')]
  const phone = [key('device', 'phone'), key('os', 'ios'), key('browser', 'safari')]
  const sums = (known: number, perReferrer: number, others: VisitKey[]) => ({
    known,
    observed: known,
    counts: new Map([...referrers(perReferrer), ...others.map((one) => [one, 6] as const)]),
  })
  expect(rows.map(({ parts }) => decodeSums(parts))).toEqual([
    sums(6, 2, desktop),
    sums(6, 2, phone),
    sums(12, 4, [...desktop, ...phone]),
  ])
})

test('the copy of version 19 is restored, and upgraded again by the next start', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'data')
  unpack(19, path)
  const env = unlimited(path)
  expect(await command(['account', 'list'], env)).toMatchObject({ code: 0 })
  const [copy = ''] = copies(path)
  const restored = await command(['restore', join(path, copy)], env)
  expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('6 links') })
  await using service = await Service.start(env)
  expect((await service.fetch('/FJL9GJYE')).status).toBe(302)
  expect(copies(path)).toHaveLength(2)
})

const ADVICE = 'First start commit 3f7ad441 with it, which makes it version 19, then this program.'

test('a folder of an older version is refused with the commit to start first, and left as it was', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'data')
  unpack(18, path)
  const before = readFileSync(join(path, 'hopcode.db'))
  const env = unlimited(path)
  const backup = join(folder.path, 'backup')
  for (const words of [['serve'], ['account', 'list'], ['backup', backup]]) {
    const { code, out, err } = await command(words, env)
    expect([words, code, out]).toEqual([words, 1, ''])
    expect(err).toContain(
      `hopcode.db has version 18, of a commit before the first release. ${ADVICE}`,
    )
  }
  const checked = await command(['check'], env)
  expect(checked).toMatchObject({ code: 1, out: expect.stringContaining(ADVICE) })
  expect(readFileSync(join(path, 'hopcode.db')).equals(before)).toBe(true)
  expect(copies(path)).toEqual([])

  const other = unlimited(join(folder.path, 'other'))
  await command(['account', 'create', '--email', 'a@example.com', '--plan', 'free'], other)
  const { code, err } = await command(['restore', join(path, 'hopcode.db')], other)
  expect([code, err]).toEqual([1, expect.stringContaining('3f7ad441')])
  expect((await command(['account', 'list'], other)).out).toContain('a@example.com')
})
