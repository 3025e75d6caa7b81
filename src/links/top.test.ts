import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import { Thread } from '../lib/thread.ts'
import type { LinkFilter } from './link-sources.ts'
import { linkLists } from './lists.ts'
import { Rankings, TOP_MAX } from './rankings.ts'
import { topLinks, topReads } from './top.ts'

function openEmpty(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  return db
}

interface SetUpOptions {
  slice: number
  isDense?: boolean
  usualRanks?: number
}

/**
 * Link `i + 1` has `counts[i]` hits, none where that is 0; every fifth is another account's. Slices
 * have that many links, or ids if there are no others between them.
 */
function setUp(
  db: Database,
  counts: readonly number[],
  { slice, isDense = false, usualRanks = 1000 }: SetUpOptions,
) {
  const links = counts.map((count, i) => ({ id: i + 1, count, accountId: i % 5 === 4 ? 2 : 1 }))
  db.transaction(() => {
    db.run('DELETE FROM links')
    db.run('DELETE FROM hits')
    db.run('DELETE FROM accounts')
    const link = db.prepare(
      `INSERT INTO links (id, code, account_id, url, passcode_hash, created_at)
       VALUES (?, ?, ?, 'https://example.com/', x'00', 5)`,
    )
    const hits = db.prepare('INSERT INTO hits (link_id, account_id, count) VALUES (?, ?, ?)')
    for (const { id, count, accountId } of links) {
      link.run(id, `CODE${id}`, accountId)
      if (count > 0) hits.run(id, accountId, count)
    }
    const account = db.prepare(
      `INSERT INTO accounts (id, email, plan, link_count, created_at)
       VALUES (?1, ?1, 'free', ?2, 5)`,
    )
    for (const id of [1, 2]) account.run(id, isDense ? counts.length : 0)
  })()
  const reads = topReads(db, { slice, sliceIds: slice })
  const lists = linkLists(db, { chunkLinks: slice, sliceMs: 0 })
  const asked: { keep: number }[] = []
  const reader = Thread.inProcess({
    rankSlice(slice: Parameters<typeof reads.rankSlice>[0]) {
      asked.push(slice)
      return reads.rankSlice(slice)
    },
    linksByIds: reads.linksByIds,
    rankMatchesSlice: lists.rankMatchesSlice,
    matchesAmong: lists.matchesAmong,
  })
  const rankings = new Rankings({ reader, monotonic: () => 0, usualRanks })
  const page = (limit: number, offset: number, accountId = 1, filter: LinkFilter = {}) =>
    topLinks({ reader, rankings }, { accountId, limit, offset, ...filter })
  return { links, page, asked }
}

test('links come by their hits, then newest first, page by page, however the slices fall', async () => {
  const counts = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 40 })
  const number = fc.integer({ min: 1, max: 12 })
  const options = fc.record({ slice: number, isDense: fc.boolean(), usualRanks: number })
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  db.run('PRAGMA synchronous = OFF')
  await fc.assert(
    fc.asyncProperty(counts, options, number, async (counts, options, limit) => {
      const { links, page } = setUp(db, counts, options)
      for (const account of [1, 2, 3]) {
        const expected = links
          .filter(({ accountId }) => accountId === account)
          .sort((a, b) => b.count - a.count || b.id - a.id)
          .map(({ id }) => id)
        const found = []
        for (let offset = 0; offset <= expected.length; offset += limit) {
          found.push(...(await page(limit, offset, account)))
        }
        expect(found.map(({ id }) => id)).toEqual(expected)
      }
    }),
    { seed: 20260301, numRuns: 120 },
  )
})

test('a page has the same links as a list', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { page } = setUp(db, [0, 9], { slice: 10 })
  expect<unknown>(await page(1, 0)).toEqual([
    {
      id: 2,
      code: 'CODE2',
      accountId: 1,
      url: 'https://example.com/',
      createdAt: 5,
    },
  ])
})

test('many links are read a slice at a time, and pages beyond the deepest are empty', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { page, asked } = setUp(db, Array<number>(100).fill(1), { slice: 10 })
  expect(await page(5, 0)).toHaveLength(5)
  expect(asked.length).toBeGreaterThan(80 / 10)
  expect(await page(50, TOP_MAX)).toEqual([])
  expect(await page(50, TOP_MAX - 1)).toEqual([])
  expect(Math.max(...asked.map(({ keep }) => keep))).toBe(TOP_MAX)
})

test('links with a tag, that match a search, or both, come by their hits', async () => {
  using folder = temporaryFolder()
  const db = openEmpty(folder.path)
  const { page } = setUp(db, [3, 9, 0, 9, 7, 1, 2, 0, 4], { slice: 2 })
  db.run(`UPDATE links SET title = 'One' WHERE id IN (1, 4)`)
  db.run(`UPDATE links SET tags = iif(id = 4, '["b"]', '["a"]') WHERE id IN (1, 2, 4, 5)`)
  const ids = async (filter: LinkFilter) => (await page(10, 0, 1, filter)).map(({ id }) => id)
  expect(await ids({ tag: 'a' })).toEqual([2, 1])
  expect(await ids({ search: 'one', inProperties: true })).toEqual([4, 1])
  expect(await ids({ search: 'one', inProperties: true, tag: 'a' })).toEqual([1])
  expect(await ids({ search: 'example' })).toEqual([4, 2, 9, 1, 7, 6, 8, 3])
  expect(await ids({ search: 'one' })).toEqual([])
  expect(await ids({ search: ' ' })).toEqual([])
  expect(await ids({ tag: 'c' })).toEqual([])
  const { matchesAmong } = linkLists(db)
  const among = (filter: LinkFilter) => matchesAmong({ accountId: 1, ids: [1, 4, 5], ...filter })
  expect(among({ tag: 'a' })).toEqual([1])
  expect(among({ search: 'one', inProperties: true })).toEqual([1, 4])
  expect(among({ search: 'one', inProperties: true, tag: 'b' })).toEqual([4])
})

test('a page does not have a link that was deleted since the ranking', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { page } = setUp(db, [1, 2, 3, 4], { slice: 2 })
  const ids = async () => (await page(2, 0)).map(({ id }) => id)
  expect(await ids()).toEqual([4, 3])
  db.run('DELETE FROM links WHERE id = 4')
  db.run('DELETE FROM hits WHERE link_id = 4')
  expect(await ids()).toEqual([3, 2])
})

test('slices are ranges of ids where most of the hits are of the account', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const rank = (isDense: boolean) => {
    setUp(db, [0, 5, 9, 1, 0, 5, 0, 7], { slice: 4, isDense })
    const { rankSlice } = topReads(db, { slice: 3, sliceIds: 4 })
    return rankSlice({ accountId: 1, below: 9, floor: 4, keep: 2 })
  }
  const best = [
    { id: 8, count: 7 },
    { id: 6, count: 5 },
  ]
  expect(rank(false)).toEqual({ best, next: 6 })
  expect(rank(true)).toEqual({ best, next: 5 })
})
