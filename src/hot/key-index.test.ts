import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { halfSipHash, KeyIndex, NO_SLOT } from './key-index.ts'
import { SharedArrays } from './shared-arrays.ts'

const newIndex = (keysMax: number, seed = 0) =>
  new KeyIndex(new SharedArrays(new SharedArrayBuffer(2 ** 16)), {
    keysMax,
    seed0: seed,
    seed1: ~seed,
  })

const find = (index: KeyIndex, high: number, low: number) =>
  index.find(index.hash(high, low), high, low)
const add = (index: KeyIndex, high: number, low: number) =>
  index.add(index.hash(high, low), high, low)

test('the hash is HalfSipHash-1-3', () => {
  // The vector for 8 bytes in lib/tests/siphash_kunit.c of Linux, 32-bit build.
  expect(halfSipHash(0x03020100, 0x07060504, 0x03020100, 0x07060504) >>> 0).toBe(0x577999b1)
})

test('two seeds place the same keys differently, so that nobody can aim at one bucket', () => {
  const [one, other] = [newIndex(8, 1), newIndex(8, 2)]
  const hashes = (index: KeyIndex) => Array.from({ length: 8 }, (_, low) => index.hash(0, low))
  expect(hashes(one)).not.toEqual(hashes(other))
})

test('the halves of a key are told apart, and their top bits count', () => {
  const index = newIndex(8)
  const keys: [number, number][] = [
    [1, 2],
    [2, 1],
    [0, 0],
    [0xffffffff, 0],
    [0, 0xffffffff],
    [0x80000000, 0x7fffffff],
  ]
  const slots = keys.map(([high, low]) => add(index, high, low))
  expect(new Set(slots).size).toBe(keys.length)
  expect(keys.map(([high, low]) => find(index, high, low))).toEqual(slots)
  expect(find(index, 0x80000000, 0)).toBe(NO_SLOT)
})

test('under heavy coming and going at full load, it holds exactly what a Map holds', () => {
  // 48 keys in 64 buckets make the long runs, some around the table's end, in which shifting errs.
  const keysMax = 48
  const steps = fc.array(fc.nat({ max: 199 }), { minLength: 400, maxLength: 400 })
  const property = fc.property(fc.nat({ max: 255 }), steps, (seed, lows) => {
    const index = newIndex(keysMax, seed)
    const held = new Map<number, number>()
    for (const low of lows) {
      const slot = held.get(low)
      expect(find(index, 7, low)).toBe(slot ?? NO_SLOT)
      if (slot !== undefined && (held.size === keysMax || low % 2 === 0)) {
        index.remove(slot)
        held.delete(low)
      } else if (slot === undefined && held.size < keysMax) {
        held.set(low, add(index, 7, low))
      }
      expect(index.size).toBe(held.size)
    }
    for (let low = 0; low < 200; low++) expect(find(index, 7, low)).toBe(held.get(low) ?? NO_SLOT)
    expect(new Set(held.values()).size).toBe(held.size)
    expect(index.slotsUsed).toBeLessThanOrEqual(keysMax)
  })
  fc.assert(property, { seed: 4_052_601, numRuns: 100 })
})

test('a full index refuses another key and keeps those it has', () => {
  const index = newIndex(3)
  const slots = [10, 11, 12].map((low) => add(index, 0, low))
  expect(index.isFull).toBe(true)
  expect(add(index, 0, 13)).toBe(NO_SLOT)
  expect([10, 11, 12].map((low) => find(index, 0, low))).toEqual(slots)
})

test.each([0, -1, 1.5, Number.NaN, 2 ** 24 + 1])(
  '%p keys are a mistake of the caller',
  (keysMax) => {
    expect(() => newIndex(keysMax)).toThrow(RangeError)
  },
)
