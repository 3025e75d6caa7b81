import { expect, test } from 'bun:test'
import { describeRate } from './progress.ts'

const total = 200_000
const RATES = [
  [{ done: 1000, total, before: 1000, elapsedMs: 0 }, '1,000 of 200,000 rows'],
  [{ done: 1000, total, before: 0, elapsedMs: 0 }, '1,000 of 200,000 rows'],
  [{ done: 1000, total, before: 1000, elapsedMs: 500 }, '1,000 of 200,000 rows'],
  [{ done: 0, total: 0, before: 0, elapsedMs: 0 }, '0 of 0 rows'],
  [
    { done: 7400, total, before: 1000, elapsedMs: 1000 },
    '7,400 of 200,000 rows, 6,400/s, 31 s left',
  ],
  [{ done: 7400, before: 1000, elapsedMs: 1000 }, '7,400 rows, 6,400/s'],
] as const
test.each(RATES)('progress %o has a rate only once there is one', (counted, text) => {
  expect(describeRate({ ...counted, unit: 'rows' })).toBe(text)
})
