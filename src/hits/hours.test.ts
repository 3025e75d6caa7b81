import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addHour, decodeHours, encodeHours, type HourCount, mergeHours } from './hours.ts'

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
