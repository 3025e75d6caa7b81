import { expect, test } from 'bun:test'
import { Histogram } from './histogram.ts'

test('a value on a bound belongs to the bucket of that bound, and one above all to the last', () => {
  const histogram = new Histogram([1, 5])
  for (const value of [0, 1, 1.5, 5, 5.1, 1000]) histogram.observe(value)
  expect([...histogram.buckets]).toEqual([2, 2, 2])
  expect(histogram.sum).toBeCloseTo(1012.6)
})
