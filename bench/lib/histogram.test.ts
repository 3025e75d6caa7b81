import { expect, test } from 'bun:test'
import { Histogram } from './histogram.ts'

const of = (values: Iterable<number>) => {
  const histogram = new Histogram()
  for (const value of values) histogram.record(value)
  return histogram
}

/** Values spread evenly over the logarithm from 1 to 2^40, in a fixed scrambled order. */
function spread(count: number): number[] {
  return Array.from({ length: count }, (_, i) => 2 ** (39.99 * (((i * 7919) % count) / count)))
}

test('a single value of any size is read back at most 1 % off', () => {
  for (const value of spread(10_000)) {
    const one = of([value, value * 1.5, value * 2])
    expect(Math.abs(one.percentile(1) - value) / value).toBeLessThan(0.01)
  }
})

test('percentiles are those of the sorted values, by nearest rank and at most 1 % off', () => {
  const values = spread(20_000)
  const histogram = of(values)
  const sorted = values.toSorted((a, b) => a - b)
  for (const percent of [0, 0.01, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100]) {
    const exact = sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0
    expect(Math.abs(histogram.percentile(percent) - exact) / exact).toBeLessThan(0.01)
  }
})

test('one slow value in a thousand is beyond the 99.9th percentile and is the greatest', () => {
  const histogram = of([...Array<number>(999).fill(100), 50_000])
  expect(histogram.percentile(99.9)).toBeCloseTo(100, 0)
  expect(histogram.percentile(99.91)).toBe(50_000)
  expect(histogram.percentile(100)).toBe(50_000)
})

test('count, least, greatest and mean are exact', () => {
  const histogram = of([3, 1000.25, 7])
  expect(histogram).toMatchObject({ count: 3, min: 3, max: 1000.25 })
  expect(histogram.mean).toBeCloseTo(1010.25 / 3, 10)
})

test('merged histograms answer as one that saw all values', () => {
  const values = spread(5000)
  const merged = of(values.slice(1234))
  merged.merge(of(values.slice(0, 1234)))
  merged.merge(new Histogram())
  const whole = of(values)
  expect(merged.toJSON().slots).toEqual(whole.toJSON().slots)
  expect(merged).toMatchObject({ count: whole.count, min: whole.min, max: whole.max })
})

test('a histogram survives its way through JSON', () => {
  for (const histogram of [of(spread(1000)), new Histogram()]) {
    const back = Histogram.fromJson(JSON.parse(JSON.stringify(histogram)))
    expect(back.toJSON()).toEqual(histogram.toJSON())
    back.record(5)
    expect(back.count).toBe(histogram.count + 1)
    expect(back.min).toBeGreaterThan(0)
  }
})

test('an empty histogram answers 0', () => {
  const empty = new Histogram()
  expect([empty.percentile(99), empty.min, empty.max, empty.mean, empty.count]).toEqual(
    Array(5).fill(0),
  )
})

test('values outside the range count at its ends, and what is no number is refused', () => {
  const histogram = of([0, -5, 2 ** 50])
  expect(histogram).toMatchObject({ count: 3, min: 1, max: 2 ** 40 - 1 })
  expect(() => histogram.record(Number.NaN)).toThrow(RangeError)
  expect(() => histogram.percentile(101)).toThrow(RangeError)
})
