import { expect, test } from 'bun:test'
import { SourceLimit } from './source-limit.ts'
import { visitKey } from './values.ts'

const HOUR_MS = 3600 * 1000
const NOON = 20_000 * 24 * HOUR_MS + 12 * HOUR_MS
const OTHER = visitKey('referrer', 'other')

/** `stored`: how many of these sources, followed once each, are stored. */
function limitAt(now = NOON) {
  const limit = new SourceLimit()
  limit.setTime(now)
  const isStored = (link: number, name: string | number) =>
    limit.limit(link, visitKey('referrer', `source-${name}`)) !== OTHER
  const stored = (link: number, count: number, name = '') =>
    Array.from({ length: count }, (_, n) => isStored(link, name + n)).filter(Boolean).length
  return { limit, isStored, stored }
}

test('a few sources of a link are stored at once, others from their second hit, 20 in a day', () => {
  const { limit, isStored, stored } = limitAt()
  expect(stored(1, 30)).toBe(12)
  expect(stored(1, 30)).toBe(20)
  // Stored sources stay so, and others do not follow.
  for (let time = 0; time < 3; time++) expect(stored(1, 30)).toBe(20)
  expect(isStored(2, 0)).toBe(true)
  limit.setTime(NOON + 11 * HOUR_MS)
  expect(stored(1, 5, 'late')).toBe(0)
  limit.setTime(NOON + 12 * HOUR_MS)
  expect(stored(1, 5, 'late')).toBe(5)
})

test('all links together store 2,000 new sources in an hour, and one more for each other link', () => {
  const { limit, stored } = limitAt()
  let total = 0
  for (let link = 1; link <= 250; link++) total += stored(link, 10)
  expect(total).toBe(2000 + 50)
  expect(stored(1000, 10)).toBe(1)
  limit.setTime(NOON + HOUR_MS)
  expect(stored(1000, 11)).toBe(11)
})

test('scans of numbered labels count apart, also more than the sources of a link', () => {
  const { limit, stored } = limitAt()
  const scan = (link: number, word: string) => {
    for (const kind of ['referrer', 'scan'] as const) limit.limit(link, visitKey(kind, word))
    return limit.limit(link, visitKey('scan', word)) === visitKey('scan', word)
  }
  const numbers = Array.from({ length: 60 }, (_, n) => n + 1)
  expect(numbers.filter((n) => scan(1, `table-${n}`))).toEqual(numbers)
  // Other words of scans have the limits of sources, and numbers those of the hour.
  const words = numbers.map((n) => `word${n}`)
  expect(words.filter((word) => scan(2, word))).toHaveLength(20)
  for (let link = 10; link <= 250; link++) stored(link, 10)
  scan(3, 'table-1')
  expect(scan(3, 'table-2')).toBe(false)
})

test('visits without a source, and all other values, have no limit', () => {
  const { limit, stored } = limitAt()
  stored(1, 40)
  for (const key of [
    visitKey('referrer', 'direct'),
    visitKey('country', 'NO'),
    visitKey('bot', 'x'),
  ])
    expect(limit.limit(1, key)).toBe(key)
})
