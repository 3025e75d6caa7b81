import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/folder.ts'
import { DATABASE_VERSION, migrate, versionOf } from './migrate.ts'
import { MIGRATIONS } from './migrations.gen.ts'
import { openReadonly, openWritable, refuseUnusable } from './open.ts'

const file = (folder: { path: string }) => join(folder.path, 'hopcode.db')

test('every migration of the drizzle folder is embedded, in order', () => {
  const names = readdirSync(join(import.meta.dir, '../../drizzle'))
    .filter((name) => name.endsWith('.sql'))
    .map((name) => name.replace('.sql', ''))
  expect(MIGRATIONS.map(({ name }) => name)).toEqual(names.sort())
})

const copiesIn = (folder: string) => readdirSync(folder).filter((name) => name.includes('before'))

/** A release with one more migration. */
const NEXT = [...MIGRATIONS, { name: 'next', sql: 'ALTER TABLE links ADD extra integer' }]

test('an older file is copied and brought up to date with what it holds', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  db.run(`INSERT INTO links (code, account_id, url, passcode_hash, created_at)
          VALUES ('SPRING26', 1, 'https://example.com/spring', x'00', 0)`)
  migrate(db, NEXT)
  expect(versionOf(db)).toBe(DATABASE_VERSION + 1)
  expect(db.query('SELECT code, extra FROM links').all()).toEqual([
    { code: 'SPRING26', extra: null },
  ])
  const [name = ''] = copiesIn(folder.path)
  const copy = new Database(join(folder.path, name), { readonly: true })
  expect(versionOf(copy)).toBe(DATABASE_VERSION)
  expect(copy.query('SELECT code FROM links').all()).toEqual([{ code: 'SPRING26' }])
})

test('a copy that is cut off is made anew before the file is changed', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  const next = DATABASE_VERSION + 1
  const unfinished = `${file(folder)}.before-${next}.unfinished`
  mkdirSync(unfinished)
  expect(() => migrate(db, NEXT)).toThrow(unfinished)
  expect(versionOf(db)).toBe(DATABASE_VERSION)
  rmdirSync(unfinished)
  writeFileSync(unfinished, 'half of the fi')
  migrate(db, NEXT)
  const left = copiesIn(folder.path)
  expect(left).toEqual([
    expect.stringMatching(new RegExp(`^hopcode\\.db\\.before-${next}-\\d{8}T[\\d.]+Z$`)),
  ])
  const copy = new Database(join(folder.path, left[0] ?? ''), { readonly: true })
  expect(versionOf(copy)).toBe(DATABASE_VERSION)
})

test('a migration that fails leaves the file as it was', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  const broken = [...MIGRATIONS, { name: 'x', sql: 'CREATE TABLE half (id); SELECT nonsense;' }]
  expect(() => migrate(db, broken)).toThrow('nonsense')
  expect(versionOf(db)).toBe(DATABASE_VERSION)
  expect(db.query(`SELECT name FROM sqlite_schema WHERE name = 'half'`).all()).toEqual([])
})

test('a newer file is refused with words, and left alone', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  db.run('PRAGMA user_version = 99')
  expect(() => migrate(db)).toThrow('was written by a newer Hopcode (version 99')
  expect(versionOf(db)).toBe(99)
})

test('a newer file is refused with the copy to restore: the newest that this program can read', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  const [next, later] = [DATABASE_VERSION + 1, DATABASE_VERSION + 2]
  db.run(`PRAGMA user_version = ${later}`)
  expect(() => migrate(db)).toThrow('hopcode restore with a backup of this release')
  const names = [
    `hopcode.db.before-${DATABASE_VERSION}-20260101T000000.000Z`,
    `hopcode.db.before-${next}-20260201T000000.000Z`,
    `hopcode.db.before-${next}-20260301T000000.000Z`,
    `hopcode.db.before-${later}-20260401T000000.000Z`,
    `hopcode.db.before-${next}.unfinished`,
    `other.db.before-${next}-20260501T000000.000Z`,
  ]
  for (const name of names) writeFileSync(join(folder.path, name), '')
  expect(() => migrate(db)).toThrow(`hopcode restore ${join(folder.path, names[2] as string)}`)
})

test('a file of a commit before 1.0.0 is refused with the commit to start first, and left alone', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  db.run('PRAGMA user_version = 19')
  expect(() => migrate(db)).toThrow(/version 19, of a commit before 1\.0\.0\. First start commit/)
  expect(versionOf(db)).toBe(19)
  expect(copiesIn(folder.path)).toEqual([])
})

test('a second run changes nothing and makes no copy', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  migrate(db)
  expect(copiesIn(folder.path)).toEqual([])
})

test('a file that is no database is refused with words that name it', () => {
  using folder = temporaryFolder()
  writeFileSync(file(folder), 'something else entirely, and long enough')
  expect(() => refuseUnusable(file(folder))).toThrow(`${file(folder)} is damaged`)
})

test('a writing connection syncs every commit, a reading one writes nothing', () => {
  using folder = temporaryFolder()
  const db = openWritable(file(folder))
  migrate(db)
  const pragma = (of: Database, name: string) =>
    Object.values(of.query(`PRAGMA ${name}`).get() ?? {})
  expect(pragma(db, 'journal_mode')).toEqual(['wal'])
  expect(pragma(db, 'synchronous')).toEqual([2])
  const reader = openReadonly(file(folder), { cacheKiB: 1024 })
  expect(() => reader.run('DELETE FROM links')).toThrow('readonly')
})
