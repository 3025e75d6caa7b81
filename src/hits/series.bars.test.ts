import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { countBars } from './series.ts'

/** Counts of hours, and the days that they add up to. `lost`: hits of a day without an hour. */
function counts(hours: ReadonlyMap<number, number>, lost: ReadonlyMap<number, number> = new Map()) {
  const lookups = { hours: 0, days: 0 }
  return {
    lookups,
    ofHour: (hour: number) => {
      lookups.hours++
      return hours.get(hour) ?? 0
    },
    ofDay: (day: number) => {
      lookups.days++
      let sum = lost.get(day) ?? 0
      for (let hour = day * 24; hour < day * 24 + 24; hour++) sum += hours.get(hour) ?? 0
      return sum
    },
  }
}

test('bars of any bounds have the hits of their hours', () => {
  const hour = fc.integer({ min: 0, max: 200 })
  const hits = fc.array(fc.tuple(hour, fc.integer({ min: 1, max: 9 })))
  const bounds = fc.uniqueArray(hour, { minLength: 2, maxLength: 30 })
  fc.assert(
    fc.property(hits, bounds, (entries, unsorted) => {
      const hours = new Map(entries)
      const ascending = unsorted.toSorted((a, b) => a - b)
      const expected = ascending.slice(1).map((end, i) => {
        let sum = 0
        for (let at = ascending[i] ?? 0; at < end; at++) sum += hours.get(at) ?? 0
        return sum
      })
      expect(countBars(ascending, counts(hours))).toEqual(expected)
    }),
  )
})

test('a UTC day within a bar is one lookup, and a day without hits too', () => {
  const busy = counts(new Map(Array.from({ length: 400 * 24 }, (_, hour) => [hour, 1])))
  expect(countBars([0, 24, 48, 14 * 24], busy)).toEqual([24, 24, 12 * 24])
  expect(busy.lookups).toEqual({ hours: 0, days: 14 })
  const quiet = counts(new Map([[30, 1]]))
  expect(countBars([9, 33, 57, 81], quiet)).toEqual([1, 0, 0])
  expect(quiet.lookups).toEqual({ hours: 24, days: 4 })
})

test('hits of a day without hours are in the bar of its noon, and in no bar of an hour', () => {
  const old = counts(new Map(), new Map([[1, 5]]))
  expect(countBars([9, 33, 57], old)).toEqual([0, 5])
  expect(countBars([15, 39, 63], old)).toEqual([5, 0])
  expect(countBars([37, 61], old)).toEqual([0])
  expect(countBars([35, 36, 37, 38], old)).toEqual([0, 0, 0])
})

test('no bounds have no bars', () => {
  expect(countBars([], counts(new Map()))).toEqual([])
  expect(countBars([5], counts(new Map()))).toEqual([])
})
