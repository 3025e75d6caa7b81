import { expect, test } from 'bun:test'
import { MINUTE } from '../lib/clock.ts'
import { RECENT_MINUTES, RecentHits } from './recent.ts'

const NOW = 1_700_000_000_000

function recent() {
  const hits = new RecentHits()
  const at = (minutes: number) => NOW + minutes * MINUTE
  const read = (minutes = 0, counted = { linkId: 1 }) =>
    hits.perMinute({ counted, now: at(minutes) })
  return { hits, at, read }
}

test('hits are counted in their minute, the current one last', () => {
  const { hits, at, read } = recent()
  hits.add({ linkId: 1 }, 2, at(0))
  hits.add({ linkId: 1 }, 3, at(0))
  hits.add({ linkId: 1 }, 4, at(2))
  expect(read(2).slice(-3)).toEqual([5, 0, 4])
  expect(read(2)).toHaveLength(RECENT_MINUTES)
  expect(read(4).slice(-5)).toEqual([5, 0, 4, 0, 0])
  expect(read(40)).toEqual(new Array(RECENT_MINUTES).fill(0))
})

test('hits older than half an hour are not taken for new ones', () => {
  const { hits, at, read } = recent()
  hits.add({ linkId: 1 }, 2, at(0))
  hits.add({ linkId: 1 }, 5, at(-RECENT_MINUTES))
  hits.add({ linkId: 1 }, 3, at(1 - RECENT_MINUTES))
  expect(read()).toEqual([3, ...new Array(RECENT_MINUTES - 2).fill(0), 2])
})

test('after half an hour a minute is counted anew', () => {
  const { hits, at, read } = recent()
  for (let minute = 0; minute <= 35; minute++) hits.add({ linkId: 1 }, minute, at(minute))
  expect(read(35)).toEqual(Array.from({ length: RECENT_MINUTES }, (_, i) => i + 6))
  hits.add({ linkId: 1 }, 1, at(200))
  expect(read(200)).toEqual([...new Array(RECENT_MINUTES - 1).fill(0), 1])
})

test('a clock that is set back adds to its minute, or to none', () => {
  const { hits, at, read } = recent()
  hits.add({ linkId: 1 }, 1, at(10))
  hits.add({ linkId: 1 }, 2, at(8))
  hits.add({ linkId: 1 }, 9, at(-90))
  expect(read(10).slice(-3)).toEqual([2, 0, 1])
})

test('a link and an account with the same id are told apart, and few of them are remembered', () => {
  const { hits, at, read } = recent()
  hits.add({ linkId: 1 }, 1, at(0))
  hits.add({ accountId: 1 }, 7, at(0))
  expect(read().at(-1)).toBe(1)
  for (let id = 2; id < 20_000; id++) hits.add({ linkId: id }, 1, at(0))
  expect(read().at(-1)).toBe(0)
  expect(read(0, { linkId: 19_999 }).at(-1)).toBe(1)
})

test('a link with hits is remembered, however many others come and go', () => {
  const { hits, at, read } = recent()
  for (let id = 2; id < 40_000; id++) {
    hits.add({ linkId: id }, 1, at(0))
    if (id % 4000 === 0) hits.add({ linkId: 1 }, 1, at(0))
  }
  expect(read().at(-1)).toBe(9)
})
