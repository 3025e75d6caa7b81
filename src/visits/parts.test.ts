import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addSums, decodeSums, emptySums, encodeSums, keyLimit } from './parts.ts'
import { NUMBERED, OTHER, VALUES_MAX, VISIT_KINDS, visitKey } from './values.ts'

const key = fc
  .tuple(
    fc.constantFrom(...VISIT_KINDS),
    fc.oneof(fc.string({ unit: 'grapheme', maxLength: 64 }), fc.constantFrom(...NUMBERED.referrer)),
  )
  .map(([kind, value]) => visitKey(kind, value.toWellFormed()))
const count = fc.integer({ min: 1, max: 2 ** 48 })
const sums = fc.record({
  known: count,
  observed: count,
  counts: fc.array(fc.tuple(key, count), { maxLength: 50 }).map((pairs) => new Map(pairs)),
})

test('sums are read as they were written, in one order of bytes', () => {
  fc.assert(
    fc.property(sums, (some) => {
      const bytes = encodeSums(some)
      expect(decodeSums(bytes)).toEqual(some)
      const reversed = { ...some, counts: new Map([...some.counts].reverse()) }
      expect(encodeSums(reversed)).toEqual(bytes)
    }),
  )
})

test('damaged bytes are a RangeError, and never an endless loop', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        decodeSums(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError)
      }
    }),
  )
})

test('values beyond the limit of a row count as other, and the sum is kept', () => {
  const row = emptySums()
  const { link: max } = VALUES_MAX.referrer
  for (let i = 0; i < 3 * max; i++) {
    const counts = new Map([
      [visitKey('referrer', `${i}.example`), 1],
      [visitKey('device', 'phone'), 1],
    ])
    addSums(row, { known: 1, observed: 1, counts }, keyLimit(row.counts, 'link'))
  }
  const referrers = [...row.counts.keys()].filter((one) => one.startsWith('0'))
  expect(referrers).toHaveLength(max + 1)
  expect(row.counts.get(visitKey('referrer', OTHER))).toBe(2 * max)
  expect(row.counts.get(visitKey('device', 'phone'))).toBe(3 * max)
  expect(encodeSums(row).length).toBeLessThan(8192)
})

test('a row of the longest referrers has at most 8 kB', () => {
  const row = emptySums()
  for (let i = 0; i < 200; i++) {
    const value = `${i}`.padStart(64, 'x')
    const counts = new Map([[visitKey('referrer', value), 1]])
    addSums(row, { known: 1, observed: 1, counts }, keyLimit(row.counts, 'link'))
  }
  expect(encodeSums(row).length).toBeLessThan(8192)
})

test('no value has two places, because the places are stored', () => {
  for (const kind of VISIT_KINDS) {
    expect(new Set(NUMBERED[kind]).size).toBe(NUMBERED[kind].length)
  }
})
