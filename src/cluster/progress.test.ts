import { expect, test } from 'bun:test'
import { Progress } from './progress.ts'

test('a host is current until it lacks entries for 5 s, and again when it lacks none for 2 s', () => {
  const progress = new Progress()
  const step = (now: number, head: number, place: number) => {
    progress.see(head, now)
    progress.reach(place, now)
    return progress.isCurrent
  }
  expect(step(0, 10, 5)).toBe(false)
  // It has what was the newest 1 s ago; the next end of the log is ahead.
  expect(step(1000, 20, 10)).toBe(true)
  for (const now of [2000, 4000, 7000]) expect(step(now, 1000, 15)).toBe(true)
  expect(step(7001, 1000, 900)).toBe(false)
  // It has what was the newest 6 s ago.
  expect(step(8000, 1100, 1000)).toBe(false)
  expect(step(8200, 1200, 1050)).toBe(false)
  expect(step(10_100, 1300, 1200)).toBe(true)
})
