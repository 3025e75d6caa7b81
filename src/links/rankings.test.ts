import { expect, test } from 'bun:test'
import { Thread } from '../lib/thread.ts'
import type { AccountFilter } from './link-sources.ts'
import type { RankSlice } from './ranked.ts'
import { Rankings } from './rankings.ts'

const ACCOUNT: AccountFilter = { accountId: 1 }
const SEARCH: AccountFilter = { accountId: 1, search: 'shop' }

/** Each ranking has one link, whose hits are the number of slices that were read until then. */
function setUp(slicesOfAll = 2, slicesOfSearch = 5, matching = new Set<number>()) {
  let now = 0
  const read = { all: 0, search: 0 }
  const answer = (kind: keyof typeof read, slices: number, { below = slices }: RankSlice) => {
    read[kind]++
    const next = below > 1 ? below - 1 : undefined
    return { best: next ? [] : [{ id: 7, count: read[kind] }], next }
  }
  const reader = Thread.inProcess({
    rankSlice: (part: RankSlice) => answer('all', slicesOfAll, part),
    rankMatchesSlice: (part: RankSlice) => answer('search', slicesOfSearch, part),
    matchesAmong: ({ ids }: { ids: readonly number[] }) => ids.filter((id) => matching.has(id)),
  })
  const rankings = new Rankings({ reader, monotonic: () => now })
  const hits = async (query = ACCOUNT, ranks = 1) => (await rankings.find(query, ranks))[0]?.count
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  const wait = (ms: number) => {
    now += ms
  }
  return { rankings, hits, read, wait, settle }
}

test('a ranking of many links is used again for ten seconds', async () => {
  for (const query of [ACCOUNT, SEARCH]) {
    const { hits, wait } = setUp()
    const first = await hits(query)
    wait(9999)
    expect(await hits(query)).toBe(first)
  }
})

test('an older one is used while it is renewed', async () => {
  for (const query of [ACCOUNT, SEARCH]) {
    const { hits, wait, settle } = setUp()
    const first = (await hits(query)) ?? 0
    wait(10_000)
    expect(await hits(query)).toBe(first)
    expect(await hits(query)).toBe(first)
    for (let n = 0; n < 20; n++) await settle()
    expect(await hits(query)).toBe(2 * first)
  }
})

test('one older than a minute is not used', async () => {
  const { hits, wait } = setUp()
  expect(await hits()).toBe(2)
  wait(60_000)
  expect(await hits()).toBe(4)
})

test('a ranking of few links is not kept', async () => {
  const { hits } = setUp(1, 4)
  expect([await hits(), await hits()]).toEqual([1, 2])
  expect([await hits(SEARCH), await hits(SEARCH)]).toEqual([4, 8])
})

test('each account, filter and depth has a ranking of its own', async () => {
  const { hits, read } = setUp()
  await hits()
  await hits({ accountId: 2 })
  expect(read).toEqual({ all: 4, search: 0 })
  await hits(ACCOUNT, 1001)
  expect(read).toEqual({ all: 6, search: 0 })
  await hits(SEARCH)
  await hits({ ...SEARCH, search: 'shops' })
  expect(read).toEqual({ all: 6, search: 10 })
})

test('requests at the same time share one ranking of all links', async () => {
  const { hits, read } = setUp()
  expect(await Promise.all([hits(), hits(), hits()])).toEqual([2, 2, 2])
  expect(read.all).toBe(2)
})

test('a ranking that was dropped is read again', async () => {
  const { rankings, hits } = setUp()
  await hits()
  rankings.drop(ACCOUNT)
  expect(await hits()).toBe(4)
})

test('the ranking of a search stops with its request', async () => {
  const { rankings, read } = setUp()
  const aborter = new AbortController()
  const found = rankings.find(SEARCH, 1, aborter.signal)
  aborter.abort()
  await expect(found).rejects.toMatchObject({ code: 'search_timeout' })
  expect(read.search).toBeLessThan(5)
})

test('the first links of a common search are found among the first of all links', async () => {
  const { hits, read, rankings } = setUp(2, 9, new Set([7]))
  expect(await hits(SEARCH)).toBe(2)
  expect(read).toEqual({ all: 2, search: 4 })
  expect(await hits(SEARCH)).toBe(2)
  // The second one is not among them.
  expect(await rankings.find(SEARCH, 2)).toEqual([{ id: 7, count: 13 }])
  expect(read).toEqual({ all: 4, search: 13 })
})
