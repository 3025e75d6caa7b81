import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { dataOn } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { countAdder } from '../hits/store.ts'
import { HOUR } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import { LinkPages, type ListQuery, linkLists, type RankQuery } from '../lists/lists.ts'
import { lookupsOf, TopLinks, topLinks } from './top.ts'

interface Hit {
  link: number
  hour: number
  count: number
}

/** Links 1 to `links` of account 1, every fifth of account 2, with these hits. */
function setUp(db: Database, links: number, hits: readonly Hit[]) {
  const accountOf = (id: number) => (id % 5 === 0 ? 2 : 1)
  db.transaction(() => {
    for (const table of ['links', 'hits', 'account_hits', 'hit_days']) {
      db.run(`DELETE FROM ${table}`)
    }
    const link = db.prepare(
      `INSERT INTO links (id, code, account_id, url, passcode_hash, created_at)
       VALUES (?, ?, ?, 'https://example.com/', x'00', 5)`,
    )
    for (let id = 1; id <= links; id++) link.run(id, `CODE${id}`, accountOf(id))
    const add = countAdder(db)
    for (const hit of hits) add(Uint32Array.of(hit.link, hit.count), hit.hour * HOUR)
  })()
  const expected = (account: number, from: number, to: number) => {
    const sums = new Map<number, number>()
    for (const { link, hour, count } of hits) {
      if (accountOf(link) !== account || hour < from || hour >= to) continue
      sums.set(link, (sums.get(link) ?? 0) + count)
    }
    return [...sums]
      .map(([id, hits]) => ({ id, hits }))
      .sort((a, b) => b.hits - a.hits || b.id - a.id)
  }
  const lookups = { links: 0 }
  const reads = dataOn(db, { topLinks }).topLinks
  const counted: typeof reads = {
    ...reads,
    hitSums(query) {
      lookups.links += query.ids.length
      return reads.hitSums(query)
    },
  }
  const lists = linkLists(db, { rankAtOnce: 4 })
  const listCalls = {
    pageSlice: async (query: ListQuery) => lists.listLinksSlice(query),
    rankingSlice: async (query: RankQuery) => lists.rankedLinksSlice(query),
  }
  return {
    data: { topLinks: counted },
    clock: () => (FIRST + 100) * HOUR,
    pages: new LinkPages({ lists: listCalls }),
    expected,
    lookups,
  }
}

function openEmpty(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  return db
}

const FIRST = 20_000 * 24
const hour = fc.integer({ min: FIRST, max: FIRST + 100 })
const arbitraryHits = fc.array(
  fc.record({
    link: fc.integer({ min: 1, max: 30 }),
    hour,
    count: fc.integer({ min: 1, max: 5 }),
  }),
  { maxLength: 60 },
)

test('an exact list has the links with the most hits in the range, newest first where equal', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  db.run('PRAGMA synchronous = OFF')
  const size = fc.integer({ min: 1, max: 40 })
  await fc.assert(
    fc.asyncProperty(arbitraryHits, hour, hour, size, async (hits, a, b, candidatesMax) => {
      const { data, pages, clock, expected } = setUp(db, 30, hits)
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      const top = new TopLinks({ data, pages, clock, candidatesMax })
      for (const accountId of [1, 2]) {
        const found = await top.findInRange({ accountId, from, to, limit: 5 })
        const wanted = expected(accountId, from, to).slice(0, 5)
        // Of several links with as many hits, a bounded search may miss the newest.
        const counts = (links: readonly { hits: number }[]) => links.map(({ hits }) => hits)
        if (found.isExact) expect(counts(found.links)).toEqual(counts(wanted))
        if (candidatesMax > 30) {
          expect(found.isExact).toBe(true)
          expect(found.links.map(({ id, hits }) => ({ id, hits }))).toEqual(wanted)
        }
      }
    }),
    { seed: 20260301, numRuns: 80 },
  )
})

test('links with fewer hits of all time than the last of the list are not looked at', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const hits = Array.from({ length: 30 }, (_, i) => ({ link: i + 1, hour: FIRST, count: 2 ** i }))
  const { data, pages, clock, lookups } = setUp(db, 30, hits)
  const top = new TopLinks({ data, pages, clock, lookupsMax: 3 * 24 })
  const query = { accountId: 1, from: FIRST, to: FIRST + 24, limit: 2 }
  const { links, isExact } = await top.findInRange(query)
  expect([links.map(({ id }) => id), isExact]).toEqual([[29, 28], true])
  expect(lookups.links).toBe(24)
})

test('the work is bounded, and the list says so', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  // The 20 links with most hits of all time have none in the range.
  const old = Array.from({ length: 20 }, (_, i) => ({ link: i + 1, hour: FIRST, count: 100 }))
  const { data, pages, clock, lookups } = setUp(db, 30, [
    ...old,
    { link: 24, hour: FIRST + 48, count: 1 },
  ])
  const query = { accountId: 1, from: FIRST + 48, to: FIRST + 72, limit: 2 }
  const bounded = await new TopLinks({ data, pages, clock, lookupsMax: 10 }).findInRange(query)
  expect([bounded.links, bounded.isExact, lookups.links]).toEqual([[], false, 10])
  // One of the newest links.
  const few = await new TopLinks({ data, pages, clock, candidatesMax: 8 }).findInRange(query)
  expect([few.links.map(({ id }) => id), few.isExact]).toEqual([[24], false])
})

test('a link has its title and its URL', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { data, pages, clock } = setUp(db, 2, [{ link: 1, hour: FIRST, count: 3 }])
  db.run("UPDATE links SET title = 'Spring' WHERE id = 1")
  const query = { accountId: 1, from: FIRST, to: FIRST + 1, limit: 5 }
  const { links } = await new TopLinks({ data, pages, clock }).findInRange(query)
  const url = 'https://example.com/'
  expect(links).toEqual([{ id: 1, code: 'CODE1' as Code, url, title: 'Spring', hits: 3 }])
})

test('of a day more than 100 days ago, a range counts the whole day or nothing', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { data, pages } = setUp(db, 2, [{ link: 1, hour: FIRST, count: 3 }])
  const hits = async (days: number, to: number) => {
    const top = new TopLinks({ data, pages, clock: () => (FIRST + 24 * days) * HOUR })
    const { links } = await top.findInRange({ accountId: 1, from: FIRST, to, limit: 5 })
    return links.map((one) => one.hits)
  }
  expect([await hits(99, FIRST + 1), await hits(100, FIRST + 1)]).toEqual([[3], []])
  expect(await hits(100, FIRST + 24)).toEqual([3])
})

test('a range costs a lookup for each whole day, and for each hour before and after them', () => {
  const cost = (from: number, to: number) => lookupsOf(FIRST + from, FIRST + to)
  expect([cost(0, 24), cost(0, 240), cost(5, 7), cost(5, 29)]).toEqual([1, 10, 2, 24])
  expect([cost(-2, 50), cost(5, 5)]).toEqual([6, 1])
})
