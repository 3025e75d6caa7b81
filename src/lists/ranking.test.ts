import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { migrate } from '../db/migrate.ts'
import { openWritable } from '../db/open.ts'
import type { LinkFilter } from './link-sources.ts'
import { LinkPages, linkLists } from './lists.ts'
import { mostHitsFirst, TOP_MAX } from './ranking.ts'

function openEmpty(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  return db
}

interface SetUpOptions {
  rankAtOnce: number
  chunkLinks?: number
  /** The duration of a time slice. */
  sliceMs?: number
}

/** Link `i + 1` has `counts[i]` hits, none where that is 0; every fifth is another account's. */
function setUp(
  db: Database,
  counts: readonly number[],
  { rankAtOnce, chunkLinks = rankAtOnce, sliceMs = 0 }: SetUpOptions,
) {
  const links = counts.map((count, i) => ({ id: i + 1, count, accountId: i % 5 === 4 ? 2 : 1 }))
  db.transaction(() => {
    for (const table of ['links', 'hits', 'accounts']) db.run(`DELETE FROM ${table}`)
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
      `INSERT INTO accounts (id, name, plan, link_count, created_at)
       VALUES (?1, ?1, 'free', ?2, 5)`,
    )
    for (const id of [1, 2]) {
      account.run(id, links.filter(({ accountId }) => accountId === id).length)
    }
  })()
  let now = 0
  let slices = 0
  const lists = linkLists(db, { chunkLinks, rankAtOnce, sliceMs, monotonic: () => now })
  const pages = new LinkPages({
    lists: {
      async pageSlice(query) {
        slices++
        return lists.listLinksSlice(query)
      },
      rankingSlice: async (query) => lists.rankedLinksSlice(query),
    },
  })
  const page = async (limit: number, offset: number, accountId = 1, filter: LinkFilter = {}) => {
    const { links } = await pages.findPage({ accountId, limit, offset, ...filter, byHits: true })
    return links
  }
  const ids = async (filter: LinkFilter = {}, limit = 10) =>
    (await page(limit, 0, 1, filter)).map(({ id }) => id)
  const wait = (ms: number) => {
    now += ms
  }
  const setHits = (id: number, count: number) =>
    db.run('INSERT OR REPLACE INTO hits (link_id, account_id, count) VALUES (?, 1, ?)', [id, count])
  return { links, page, ids, wait, setHits, sliceCount: () => slices, lists }
}

test('links come by their hits, then newest first, page by page, however the parts fall', async () => {
  const counts = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 40 })
  const number = fc.integer({ min: 1, max: 12 })
  const options = fc.record({ rankAtOnce: number, sliceMs: fc.constantFrom(0, 1000) })
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
        for (const filter of [{}, { search: 'example' }]) {
          const found = []
          for (let offset = 0; offset <= expected.length; offset += limit) {
            found.push(...(await page(limit, offset, account, filter)))
          }
          expect(found.map(({ id }) => id)).toEqual(expected)
        }
      }
    }),
    { seed: 20260301, numRuns: 100 },
  )
})

test('a ranking has the first 10,000 links, also where many have as many hits', () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  db.run('PRAGMA synchronous = OFF')
  const counts = Array.from({ length: 45_000 }, (_, i) => (i * 7919) % 5)
  const { links, lists } = setUp(db, counts, { rankAtOnce: 1000, sliceMs: 60_000 })
  const expected = links
    .filter(({ accountId }) => accountId === 1)
    .sort(mostHitsFirst)
    .slice(0, TOP_MAX)
    .map(({ id }) => id)
  const ranked = lists.rankedLinksSlice({ accountId: 1, limit: TOP_MAX + 1 })
  expect(ranked?.map(({ id }) => id)).toEqual(expected)
})

test('a page has the same links as a list', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { page } = setUp(db, [0, 9], { rankAtOnce: 10 })
  expect<unknown>(await page(1, 0)).toEqual([
    {
      id: 2,
      code: 'CODE2',
      accountId: 1,
      url: 'https://example.com/',
      createdAt: 5,
      domainId: 0,
      typedCode: null,
      alias: null,
    },
  ])
})

test('many links are read a slice at a time, and pages beyond the deepest are empty', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { page, sliceCount } = setUp(db, Array<number>(100).fill(1), { rankAtOnce: 10 })
  expect(await page(5, 0)).toHaveLength(5)
  expect(sliceCount()).toBe(80 / 10 + 1)
  expect(await page(50, TOP_MAX)).toEqual([])
})

test('a ranking of several slices is used again for ten seconds', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const filters = [{}, { search: 'example' }]
  for (const filter of filters) {
    const { ids, wait, setHits } = setUp(db, [1, 2, 3, 4], { rankAtOnce: 2 })
    expect(await ids(filter)).toEqual([4, 3, 2, 1])
    setHits(1, 9)
    wait(9999)
    expect(await ids(filter)).toEqual([4, 3, 2, 1])
    wait(1)
    expect(await ids(filter)).toEqual([1, 4, 3, 2])
  }
})

test('a ranking that takes longer than ten seconds continues where it was', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { ids, wait, sliceCount, lists } = setUp(db, [1, 2, 3, 4], { rankAtOnce: 1 })
  for (let n = 0; n < 3; n++) {
    lists.rankedLinksSlice({ accountId: 1, limit: 10 })
    wait(9000)
  }
  expect(await ids()).toEqual([4, 3, 2, 1])
  expect(sliceCount()).toBe(2)
})

test('a ranking of one slice is not kept, so that a new link is in the list', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { ids, setHits } = setUp(db, [1, 2], { rankAtOnce: 10 })
  expect(await ids()).toEqual([2, 1])
  setHits(1, 9)
  expect(await ids()).toEqual([1, 2])
})

test('links with a tag, that match a search, or both, come by their hits', async () => {
  using folder = temporaryFolder()
  const db = openEmpty(folder.path)
  const { ids } = setUp(db, [3, 9, 0, 9, 7, 1, 2, 0, 4], { rankAtOnce: 2 })
  db.run(`UPDATE links SET title = 'One' WHERE id IN (1, 4)`)
  db.run(`UPDATE links SET tags = iif(id = 4, '["b"]', '["a"]') WHERE id IN (1, 2, 4, 5)`)
  expect(await ids({ tag: 'a' })).toEqual([2, 1])
  expect(await ids({ search: 'one', inProperties: true })).toEqual([4, 1])
  expect(await ids({ search: 'one', inProperties: true, tag: 'a' })).toEqual([1])
  expect(await ids({ search: 'example' })).toEqual([4, 2, 9, 1, 7, 6, 8, 3])
  expect(await ids({ search: 'one' })).toEqual([])
  expect(await ids({ search: ' ' })).toEqual([])
  expect(await ids({ tag: 'c' })).toEqual([])
})

test('a page does not have a link that was deleted since the ranking', async () => {
  using folder = temporaryFolder()
  using db = openEmpty(folder.path)
  const { ids } = setUp(db, [1, 2, 3, 4], { rankAtOnce: 2 })
  expect(await ids({}, 2)).toEqual([4, 3])
  db.run('DELETE FROM links WHERE id = 4')
  db.run('DELETE FROM hits WHERE link_id = 4')
  expect(await ids({}, 2)).toEqual([3, 2])
})
