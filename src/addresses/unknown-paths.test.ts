import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fillDataFolder } from '../../test/support/data-folder.ts'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { operationsOn } from '../../test/support/subjects.ts'
import { openWritable } from '../db/open.ts'
import { ClientAddress } from '../hot/client-address.ts'
import { DAY } from '../lib/clock.ts'
import { listedPath, PATHS_MAX, UnknownPaths, unknownPaths } from './unknown-paths.ts'

const TODAY = 20_000
const addresses = new ClientAddress([])
const NO_HEADERS = new Headers()

/** `ask`: requests for a path, each from the address of its turn. */
function counter() {
  const written: { domainId: number; day: number; path: string; count: number }[] = []
  const time = { now: TODAY * DAY }
  const paths = new UnknownPaths({
    data: {
      unknownPaths: {
        add: async (batch) => void written.push(...batch.paths),
        hasBefore: () => false,
      },
    },
    clock: () => time.now,
    isOn: true,
    isReserved: (path) => path.startsWith('api'),
    flushMs: DAY,
  })
  const ask = (path: string, ips: readonly string[], domainId = 0) => {
    for (const ip of ips) {
      const { client } = addresses.parsePeer(ip)
      paths.count({ domainId, path }, { client, headers: NO_HEADERS })
    }
  }
  return { time, paths, written, ask }
}

const A = '192.0.2.1'
const NEIGHBOR = '192.0.2.200'
const B = '198.51.100.1'

test('a path qualifies with its third request from a second network, and counts from then on', async () => {
  const { paths, written, ask } = counter()
  ask('Menue', [A, NEIGHBOR, A, NEIGHBOR])
  ask('twice', [A, B])
  ask('thrice', [A, A, B])
  ask('more', [A, B, A, A, B])
  ask('six', ['2001:db8:1::1', '2001:db8:1:2::1', '2001:db8:1:3::1'])
  ask('MENUE', [B])
  ask('thrice', [A, B, A], 1)
  await paths.close()
  expect(written.map(({ domainId, path, count }) => [domainId, path, count])).toEqual([
    [0, 'thrice', 3],
    [0, 'more', 5],
    [0, 'menue', 5],
    [1, 'thrice', 3],
  ])
  expect(written.every(({ day }) => day === TODAY)).toBe(true)
})

test('requests of two days do not add up to the three of a day', async () => {
  const { time, paths, written, ask } = counter()
  time.now += DAY - 1
  ask('menue', [A, B])
  time.now += 1
  ask('menue', [A, B])
  await paths.close()
  expect(written).toEqual([])
})

test('a million random paths from many networks leave the list empty and the memory bounded', async () => {
  const { paths, written, ask } = counter()
  Bun.gc(true)
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 1_000_000; n++) ask(`p-${n}`, [`203.0.${n % 250}.1`])
  Bun.gc(true)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 1024 * 1024)
  // What a flood has pushed out begins again.
  ask('menue', [A, A, B])
  await paths.close()
  expect(written.map(({ path }) => path)).toEqual(['menue'])
})

test('one person from one network lists nothing, however often the paths are asked for', async () => {
  const { paths, written, ask } = counter()
  for (let n = 0; n < 600; n++) ask(`path-${n}`, [A, NEIGHBOR, A, NEIGHBOR])
  await paths.close()
  expect(written).toEqual([])
})

test('paths that qualify are bounded too', async () => {
  const { paths, written, ask } = counter()
  for (let n = 0; n < 5000; n++) ask(`path-${n}`, [A, B, A])
  await paths.close()
  expect(written).toHaveLength(1000)
})

test('a visitor who does not want to be counted is not', async () => {
  for (const name of ['dnt', 'sec-gpc']) {
    const { paths, written } = counter()
    for (const ip of [A, B, A]) {
      const { client } = addresses.parsePeer(ip)
      paths.count({ domainId: 0, path: 'menue' }, { client, headers: new Headers({ [name]: '1' }) })
    }
    await paths.close()
    expect(written).toEqual([])
  }
})

test.each(['menue', 'speise karte', 'a/b-c', 'über-uns', '菜单', 'tel-2026', 'm'.repeat(64)])(
  'a path that a person may have typed is listed: %s',
  (path) => {
    expect(listedPath(path)).toBe(path)
  },
)

test.each([
  'm'.repeat(65),
  'me@example.com',
  'me＠example.com',
  'me%40example.com',
  'call-0123456789',
  '+49 151 234 567 89',
  '4111-1111-1111-1111',
  '٠١٢٣٤٥٦٧٨٩',
  'a\u0000b',
  'a\u202eb',
  'a\nb',
  '',
  'a//b',
  '../x',
  'a?b',
  'wp-login.php',
  'blog/WP-Admin/setup',
  '.env',
  'app/.git/config',
  'phpMyAdmin/index',
  'cgi-bin/luci',
  'backup.sql',
  'favicon.png',
])('a path that may be about a person, is no text or comes from a scanner is not: %j', (path) => {
  expect(listedPath(path)).toBeUndefined()
})

test('a day of a domain keeps its most frequent paths, and old days go', () => {
  using folder = temporaryFolderInMemory()
  fillDataFolder(folder.path)
  using db = openWritable(join(folder.path, 'hopcode.db'))
  const stored = operationsOn(db, unknownPaths)
  const of = (count: number, path: string, day = TODAY, domainId = 0) => {
    return { domainId, day, path, count }
  }
  const many = Array.from({ length: 600 }, (_, n) => of(3 + n, `path-${n}`))
  stored.add({ paths: [of(9, 'old', TODAY - 30), of(9, 'path-1', TODAY - 29)], since: 0 })
  expect(stored.hasBefore(TODAY - 29)).toBe(true)
  stored.add({ paths: [...many, of(1, 'other', TODAY, 1)], since: TODAY - 29 })
  stored.add({ paths: [of(1000, 'path-599'), of(1000, 'new')], since: TODAY - 29 })
  expect(stored.hasBefore(TODAY - 29)).toBe(false)
  const found = stored.list({ domainId: 0, since: 0 })
  expect(found).toHaveLength(PATHS_MAX)
  expect(found.slice(0, 3)).toEqual([
    { path: 'path-599', total: 1602, days: [[TODAY, 1602]] },
    { path: 'new', total: 1000, days: [[TODAY, 1000]] },
    { path: 'path-598', total: 601, days: [[TODAY, 601]] },
  ])
  const rows = db.query('SELECT count(*) AS n FROM unknown_paths').get()
  expect(rows).toEqual({ n: PATHS_MAX + 2 })
  stored.add({ paths: [of(700, 'path-1', TODAY - 1), of(2, 'path-598')], since: TODAY - 29 })
  expect(stored.list({ domainId: 0, since: TODAY - 29 })[2]).toEqual({
    path: 'path-1',
    total: 709,
    days: [
      [TODAY - 1, 700],
      [TODAY - 29, 9],
    ],
  })
  expect(stored.list({ domainId: 1, since: 0 }).map(({ path }) => path)).toEqual(['other'])
})
