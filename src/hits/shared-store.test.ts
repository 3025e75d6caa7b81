import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { migrate } from '../db/migrate.ts'
import { sharedHitWrites } from './shared-store.ts'

function open() {
  const db = new Database(':memory:')
  migrate(db)
  db.run(`INSERT INTO hit_totals (id, journal_id, position, redirects) VALUES (1, 'own', 0, 0)`)
  db.run(`INSERT INTO links (id, code, account_id, passcode_hash, created_at)
    VALUES (7, 'SPRING', 1, x'00', 0)`)
  const { addHits } = sharedHitWrites(db, 'a')
  const count = () =>
    db.query<{ count: number }, []>('SELECT count FROM hits WHERE link_id = 7').get()?.count ?? 0
  /** Hits of link 7 at these positions of a journal. */
  const add = (host: string, from: number, end: number) => {
    const counts = new Uint8Array(new Uint32Array([7, end - from]).buffer)
    return addHits({ host, journalId: `${host}-journal`, from, end, now: 0, counts })
  }
  return { add, count }
}

test('hits of a journal that are counted already are not counted again', () => {
  const { add, count } = open()
  expect(add('b', 0, 3)).toBe(true)
  expect(add('b', 0, 3)).toBe(false)
  expect(add('b', 2, 4)).toBe(false)
  expect(add('b', 3, 5)).toBe(true)
  expect(count()).toBe(5)
})

test('each host has a position of its own', () => {
  const { add, count } = open()
  for (const host of ['a', 'b', 'c']) expect(add(host, 0, 2)).toBe(true)
  expect(count()).toBe(6)
})
