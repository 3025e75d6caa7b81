import { expect, test } from 'bun:test'
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts'
import { ATTEMPTS_MAX, nextAttemptAt } from './schedule.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const after = (attempt: number, random = 0.5) => {
  const at = nextAttemptAt({ attempt, now: NOW, status: 500, random })
  return at === null ? null : at - NOW
}

test('attempts follow each other as Standard Webhooks proposes, ten in all', () => {
  const delays = Array.from({ length: ATTEMPTS_MAX }, (_, i) => after(i + 1))
  const hours = [2, 5, 10, 14, 20, 24].map((n) => n * HOUR)
  expect(delays).toEqual([5 * SECOND, 5 * MINUTE, 30 * MINUTE, ...hours, null])
})

test('a delay varies by a fifth of itself', () => {
  expect([after(4, 0), after(4, 1)]).toEqual([1.6 * HOUR, 2.4 * HOUR])
})

test.each([
  [429, '120', 2 * MINUTE],
  [503, '120', 2 * MINUTE],
  [503, new Date(NOW + HOUR).toUTCString(), HOUR],
  // Longer than a day.
  [429, '999999', DAY],
  // Shorter than the schedule.
  [429, '1', 5 * SECOND],
  [429, '0', 5 * SECOND],
  // No such statuses, and no such texts.
  [500, '120', 5 * SECOND],
  [null, '120', 5 * SECOND],
  [429, 'soon', 5 * SECOND],
  [429, '-5', 5 * SECOND],
  [429, '1e5', 5 * SECOND],
  [429, '2026-03-02', 5 * SECOND],
  [429, new Date(NOW - HOUR).toUTCString(), 5 * SECOND],
  [429, undefined, 5 * SECOND],
])('after %p with Retry-After: %p the next attempt is due in %p ms', (status, retryAfter, ms) => {
  expect(nextAttemptAt({ attempt: 1, now: NOW, status, retryAfter, random: 0.5 })).toBe(NOW + ms)
})
