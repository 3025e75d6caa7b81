import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { MIGRATIONS } from '../db/migrations.gen.ts'
import { openWritable } from '../db/open.ts'
import { HOUR } from '../lib/clock.ts'
import { addHour, decodeHours, encodeHours, type HourCount, mergeHours } from './hours.ts'
import { countAdder } from './store.ts'

const FIRST = 20_000 * 24
const someHits = fc.array(
  fc.record({
    link: fc.integer({ min: 1, max: 4 }),
    hour: fc.integer({ min: FIRST, max: FIRST + 24 * 15 }),
    count: fc.oneof(
      fc.integer({ min: 1, max: 200 }),
      fc.constantFrom(2 ** 14 - 1, 2 ** 14, 2 ** 21, 2 ** 28, 2 ** 32 - 1),
    ),
  }),
  { maxLength: 40 },
)

test('hours that were added in any order are those of a plain list, newest first', () => {
  fc.assert(
    fc.property(someHits, (hits) => {
      let stored: Uint8Array | null = null
      let expected: HourCount[] = []
      for (const { hour, count } of hits) {
        stored = addHour(stored, hour, count)
        expected = mergeHours(expected, [[hour, count]])
      }
      expect(decodeHours(stored)).toEqual(expected)
    }),
  )
})

test('of damaged hours, those before the damage are read', () => {
  const bytes = encodeHours([
    [FIRST + 5, 1],
    [FIRST + 3, 300],
  ])
  expect(decodeHours(bytes.subarray(0, -1))).toEqual([[FIRST + 5, 1]])
  expect(decodeHours(new Uint8Array(3).fill(255))).toEqual([])
  expect(decodeHours(addHour(new Uint8Array(3).fill(255), FIRST, 2))).toEqual([[FIRST, 2]])
})

const BEFORE = MIGRATIONS.slice(
  0,
  MIGRATIONS.findIndex(({ name }) => name === '0010_hit_days'),
)

/** An empty database of the version before hits of a day were one row, or of this one. */
function openWithLinks(path: string, migrations = MIGRATIONS) {
  const db = openWritable(join(path, 'hopcode.db'))
  db.run('PRAGMA synchronous = OFF')
  migrate(db, migrations)
  const add = db.prepare(
    `INSERT INTO links (id, code, account_id, passcode_hash, created_at)
     VALUES (?, ?, ?, x'00', 0)`,
  )
  for (const id of [1, 2, 3, 4]) add.run(id, `CODE0${id}`, 1 + (id % 2))
  return db
}

type Hit = { link: number; hour: number; count: number }

/** Counts as earlier versions did. */
function addBefore(db: ReturnType<typeof openWithLinks>, { link, hour, count }: Hit): void {
  const account = 1 + (link % 2)
  for (const [scope, id] of [
    [0, link],
    [1, account],
  ] as const) {
    for (const [step, at] of [
      ['hour', hour],
      ['day', Math.floor(hour / 24)],
    ] as const) {
      db.query(
        `INSERT INTO hits_by_${step} VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET count = count + ?4`,
      ).run(at, scope, id, count)
    }
  }
  db.query(
    `INSERT INTO hits (link_id, account_id, count) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET count = count + ?3`,
  ).run(link, account, count)
  db.query(
    `INSERT INTO account_hits (account_id, count) VALUES (?1, ?2)
     ON CONFLICT DO UPDATE SET count = count + ?2`,
  ).run(account, count)
}

const rowsOf = (db: ReturnType<typeof openWithLinks>) =>
  ['hits', 'account_hits', 'hit_days'].map((table) =>
    db.query(`SELECT * FROM ${table} ORDER BY 1, 2, 3`).all(),
  )

test('an upgrade has the rows that the same hits have without it, whenever it takes place', () => {
  fc.assert(
    fc.property(someHits, fc.nat({ max: 40 }), (hits, upgradeAt) => {
      using folders = temporaryFolderInMemory()
      using others = temporaryFolderInMemory()
      using upgraded = openWithLinks(folders.path, BEFORE)
      using fresh = openWithLinks(others.path)
      for (const hit of hits.slice(0, upgradeAt)) addBefore(upgraded, hit)
      migrate(upgraded, MIGRATIONS, { isCopy: true })
      const pair = ({ link, count }: Hit) => Uint32Array.of(link, count)
      const add = countAdder(upgraded)
      const addFresh = countAdder(fresh)
      for (const [at, hit] of hits.entries()) {
        if (at >= upgradeAt) add(pair(hit), hit.hour * HOUR)
        addFresh(pair(hit), hit.hour * HOUR)
      }
      expect(rowsOf(upgraded)).toEqual(rowsOf(fresh))
    }),
    { numRuns: 60 },
  )
})

test('an upgrade keeps days without hours, and details, and drops the days of deleted links', () => {
  using folder = temporaryFolderInMemory()
  using db = openWithLinks(folder.path, BEFORE)
  const day = FIRST / 24
  for (const hour of [FIRST, FIRST + 30]) addBefore(db, { link: 1, hour, count: 3 })
  addBefore(db, { link: 2, hour: FIRST, count: 4 })
  // Of link 2, one of two hours is removed already.
  addBefore(db, { link: 2, hour: FIRST + 1, count: 5 })
  db.run(`DELETE FROM hits_by_hour WHERE scope = 0 AND id = 2 AND hour = ${FIRST}`)
  db.run(`INSERT INTO hits_by_day VALUES (${day}, 0, 99, 7), (${day - 200}, 0, 1, 8)`)
  db.run(`INSERT INTO visits_by_day VALUES (0, 2, ${day}, x'01'), (1, 1, ${day + 9}, x'02')`)
  migrate(db, MIGRATIONS, { isCopy: true })
  const days =
    'SELECT scope, id, day, count, hex(hours) AS hours, hex(parts) AS parts FROM hit_days'
  expect(db.query(`${days} WHERE id <> 2 OR scope = 0`).values()).toEqual([
    [0, 1, day - 200, 8, '', ''],
    [0, 2, day, 9, '0105', '01'],
    [1, 1, day + 9, 0, '', '02'],
  ])
  const { hours } = db.query<{ hours: Uint8Array }, []>('SELECT hours FROM hits').get() ?? {}
  expect(decodeHours(hours)).toEqual([
    [FIRST + 30, 3],
    [FIRST, 3],
  ])
})
