import { expect, test } from 'bun:test'
import { halfSipHash } from './key-index.ts'
import { SlidingWindow, type SlidingWindowOptions } from './sliding-window.ts'
import { WINDOW_MS } from './window-shard.ts'

const newWindow = (options: SlidingWindowOptions) =>
  new SlidingWindow(SlidingWindow.allocate(options))

/** How many of `times` requests in a row pass. */
function passed(window: SlidingWindow, key: number, budget: number, now: number, times = 1) {
  let count = 0
  for (let i = 0; i < times; i++) if (window.take(key, 0, budget, now).allowed) count++
  return count
}

// spec: Limits | Rate window
test('a request is counted for 60,000 ms and not a millisecond longer', () => {
  const window = newWindow({ keysMax: 4 })
  expect(window.take(1, 0, 1, 1000)).toEqual({ allowed: true, remaining: 0, resetAfterMs: 60_000 })
  expect(window.take(1, 0, 1, 60_999)).toEqual({ allowed: false, remaining: 0, resetAfterMs: 1 })
  expect(window.take(1, 0, 1, 61_000).allowed).toBe(true)
})

// design: 4.4 a 429 takes no slot
test('a refused request takes no slot', () => {
  const window = newWindow({ keysMax: 4 })
  expect(passed(window, 1, 2, 0, 2)).toBe(2)
  for (let now = 1; now < WINDOW_MS; now += 100) expect(passed(window, 1, 2, now)).toBe(0)
  expect(passed(window, 1, 2, WINDOW_MS, 3)).toBe(2)
})

test('callers have budgets of their own', () => {
  const window = newWindow({ keysMax: 4 })
  expect(passed(window, 1, 3, 0, 5)).toBe(3)
  expect(passed(window, 2, 5, 0, 9)).toBe(5)
})

test('peek tells what take would do and spends nothing', () => {
  const window = newWindow({ keysMax: 4 })
  const whole = { allowed: true, remaining: 5, resetAfterMs: 0 }
  expect(window.peek(1, 0, 5, 0)).toEqual(whole)
  expect(window.size).toBe(0)
  passed(window, 1, 5, 0, 5)
  const refusal = { allowed: false, remaining: 0, resetAfterMs: 40_000 }
  expect(window.peek(1, 0, 5, 20_000)).toEqual(refusal)
  expect(window.peek(1, 0, 5, WINDOW_MS)).toEqual(whole)
})

test('after a downgrade, the next request passes when enough old ones have left', () => {
  const window = newWindow({ keysMax: 4 })
  for (let now = 0; now < 5000; now++) window.take(1, 0, 6000, now)
  const resetAfterMs = 4700 + WINDOW_MS - 5000
  expect(window.take(1, 0, 300, 5000)).toEqual({ allowed: false, remaining: 0, resetAfterMs })
  expect(window.take(1, 0, 300, 4700 + WINDOW_MS - 1).allowed).toBe(false)
  const last = { allowed: true, remaining: 0, resetAfterMs: 1 }
  expect(window.take(1, 0, 300, 4700 + WINDOW_MS)).toEqual(last)
})

test('an upgrade counts at once', () => {
  const window = newWindow({ keysMax: 4 })
  expect(passed(window, 1, 60, 0, 61)).toBe(60)
  expect(passed(window, 1, 600, 1, 600)).toBe(540)
})

test('a budget of a million is exact, and takes 2.25 bytes for each request', () => {
  const window = newWindow({ keysMax: 4 })
  const budget = 1_000_000
  let count = 0
  for (let now = 0; count < budget; now++) count += passed(window, 1, budget, now, 20)
  expect(passed(window, 1, budget, 50_000, 20)).toBe(0)
  expect(window.peek(1, 0, budget, 50_000).resetAfterMs).toBe(10_000)
  expect(passed(window, 1, budget, WINDOW_MS, 30)).toBe(20)
  expect(window.bytes).toBeLessThan(budget * (36 / 16) + 100_000)
})

test('a key that was idle for 65,536 ms, or for 49 days, does not read old times as new ones', () => {
  for (const idleMs of [65_535, 65_536, 65_537, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1]) {
    const window = newWindow({ keysMax: 4 })
    expect(passed(window, 1, 50, 7, 60)).toBe(50)
    expect(passed(window, 1, 50, 7 + idleMs, 60)).toBe(50)
  }
})

test('what is counted stays counted while the origin of times moves', () => {
  const window = newWindow({ keysMax: 4 })
  const edge = 2 ** 31 - 1 - 2 * WINDOW_MS
  passed(window, 9, 1, 0)
  for (let now = edge - 40; now < edge; now++) passed(window, 1, 50, now)
  expect(passed(window, 1, 50, edge + 1, 20)).toBe(10)
  expect(window.peek(1, 0, 50, edge + 1).resetAfterMs).toBe(WINDOW_MS - 41)
  expect(passed(window, 1, 50, edge - 40 + WINDOW_MS, 20)).toBe(1)
})

test('a request that has left the window before the origin moves does not come back', () => {
  for (const lagMs of [WINDOW_MS, 2 * WINDOW_MS]) {
    const window = newWindow({ keysMax: 4 })
    passed(window, 9, 1, 0)
    const moved = 2 ** 31 - lagMs
    for (const ageMs of [119_998, 59_999]) passed(window, 1, 2, moved - ageMs)
    passed(window, 9, 1, moved)
    const decision = { allowed: true, remaining: 1, resetAfterMs: 1 }
    expect(window.peek(1, 0, 2, moved)).toEqual(decision)
  }
})

test('the wait after a downgrade stays true while the origin moves', () => {
  const window = newWindow({ keysMax: 4 })
  passed(window, 9, 1, 0)
  const moved = 2 ** 31 - 2 * WINDOW_MS
  for (let ageMs = 40; ageMs > 0; ageMs--) passed(window, 1, 40, moved - ageMs)
  for (const now of [moved - 1, moved]) {
    const resetAfterMs = moved - 10 + WINDOW_MS - now
    expect(window.take(1, 0, 10, now)).toEqual({ allowed: false, remaining: 0, resetAfterMs })
  }
})

test('a clock that goes back counts as standing still', () => {
  const window = newWindow({ keysMax: 4 })
  expect(window.take(1, 0, 2, 5000).allowed).toBe(true)
  expect(window.take(1, 0, 2, 1000).allowed).toBe(true)
  const refusal = { allowed: false, remaining: 0, resetAfterMs: WINDOW_MS }
  expect(window.take(1, 0, 2, 2000)).toEqual(refusal)
})

test('a caller at its limit stays refused while newcomers flood the table', () => {
  const window = newWindow({ keysMax: 64 })
  expect(passed(window, 1, 3, 0, 4)).toBe(3)
  for (let key = 2; key < 20_000; key++) {
    window.take(key, key, 3, key)
    expect(window.take(1, 0, 3, key).allowed).toBe(false)
  }
  expect(window.size).toBe(64)
  expect(window.take(1, 0, 3, WINDOW_MS).allowed).toBe(true)
})

test('keys with nothing left in the window make room before anyone is sent to the overflow', () => {
  const window = newWindow({ keysMax: 64 })
  for (let minute = 0; minute < 20; minute++) {
    for (let key = 0; key < 64; key++) {
      expect(passed(window, minute * 64 + key, 3, minute * WINDOW_MS + key, 4)).toBe(3)
    }
  }
  expect(window).toMatchObject({ size: 64, overflowed: 0 })
})

test('an early key that is still in use is kept, and one that has gone quiet makes room', () => {
  const window = newWindow({ keysMax: 2 })
  window.take(1, 0, 5, 0)
  window.take(2, 0, 5, 1)
  window.take(1, 0, 5, 50_000)
  expect(passed(window, 3, 5, 1 + WINDOW_MS, 9)).toBe(5)
  expect(window.overflowed).toBe(0)
  expect(window.peek(1, 0, 5, 1 + WINDOW_MS)).toMatchObject({ allowed: true, remaining: 4 })
})

test('when every key is live, newcomers share one budget and no one else loses anything', () => {
  const window = newWindow({ keysMax: 2 })
  window.take(1, 0, 3, 0)
  window.take(2, 0, 3, 0)
  expect([3, 4, 5, 6, 7].map((key) => passed(window, key, 3, 1))).toEqual([1, 1, 1, 0, 0])
  expect(window).toMatchObject({ size: 2, overflowed: 5 })
  expect(window.peek(7, 0, 3, 1)).toMatchObject({ remaining: 0, resetAfterMs: WINDOW_MS })
  expect(passed(window, 8, 5, 2, 9)).toBe(2)
  expect(passed(window, 1, 3, 2, 9)).toBe(2)
})

test('a newcomer that passed through the overflow does not get its budget twice', () => {
  const window = newWindow({ keysMax: 1 })
  window.take(1, 0, 3, 0)
  expect(passed(window, 2, 3, 50_000, 9)).toBe(3)
  // Key 1 has left the window: key 2 gets a slot, but its three requests are still counted.
  expect(passed(window, 2, 3, 70_000, 9)).toBe(0)
  expect(window.size).toBe(1)
  expect(window.peek(2, 0, 3, 70_000).resetAfterMs).toBe(40_000)
  expect(passed(window, 2, 3, 109_999, 9)).toBe(0)
  expect(passed(window, 2, 3, 110_000, 9)).toBe(3)
})

test('a newcomer that the overflow never let pass has its whole budget once there is a slot', () => {
  const window = newWindow({ keysMax: 1, random: (length) => new Uint8Array(length) })
  window.take(1, 0, 3, 0)
  expect(passed(window, 2, 3, 50_000, 9)).toBe(3)
  expect(passed(window, 3, 3, 50_000, 9)).toBe(0)
  expect(passed(window, 3, 3, 70_000, 9)).toBe(3)
})

test('a caller with a slot of its own loses nothing, though a newcomer falls into its cell', () => {
  const zeros = (length: number) => new Uint8Array(length)
  const cell = (key: number) => (halfSipHash(key, 0, 0, 0) >>> 14) & 0x3fff
  let twin = 2
  while (cell(twin) !== cell(1)) twin++

  const early = newWindow({ keysMax: 1, random: zeros })
  early.take(1, 0, 3, 0)
  expect(passed(early, twin, 3, 1, 9)).toBe(3)
  expect(passed(early, 1, 3, 1, 9)).toBe(2)

  // Key 1 comes through the overflow and gets a slot at 60,000; its mark is gone at 61,000.
  const late = newWindow({ keysMax: 2, random: zeros })
  late.take(-1, 0, 3, 0)
  late.take(-2, 0, 3, 0)
  expect([1000, WINDOW_MS].map((now) => passed(late, 1, 3, now))).toEqual([1, 1])
  expect(passed(late, -3, 3, WINDOW_MS)).toBe(1)
  expect(late.peek(1, 0, 3, 61_000)).toMatchObject({ allowed: true, remaining: 2 })
  expect(passed(late, twin, 3, 62_000, 9)).toBe(3)
  expect(passed(late, 1, 3, 62_000, 9)).toBe(2)
})

test('with a full arena a caller is refused rather than let over its budget, until it has left', () => {
  const window = newWindow({ keysMax: 8, arenaBytesMax: 36 })
  expect(passed(window, 1, 100, 0, 50)).toBe(16 + 1)
  expect(window.arenaRefused).toBe(33)
  expect(window.peek(1, 0, 100, 0)).toMatchObject({ remaining: 0, resetAfterMs: WINDOW_MS })
  // A first request needs nothing of the arena, a second one does.
  expect(passed(window, 2, 100, 1, 2)).toBe(1)
  expect(passed(window, 2, 100, WINDOW_MS, 2)).toBe(2)
})

test('chunks of expired keys serve the live ones, however many keys expired before them', () => {
  const window = newWindow({ keysMax: 40, arenaBytesMax: 36 })
  for (let key = 0; key < 30; key++) window.take(key, 0, 9, key)
  passed(window, 30, 9, 30, 9)
  expect(passed(window, 31, 9, 31, 9)).toBe(1)
  expect(passed(window, 32, 9, 30 + WINDOW_MS, 9)).toBe(9)
})

test('a caller takes at most 128 bytes and 2.25 for each request counted', () => {
  for (const count of [1, 2, 10, 17, 33, 40, 49, 60, 100, 240, 300, 3000]) {
    const window = newWindow({ keysMax: 384 })
    const empty = window.bytes
    let lastMs = 0
    for (let round = 0; round < 2 * count; round++) {
      lastMs = Math.floor((round * WINDOW_MS) / count)
      for (let key = 0; key < 100; key++) window.take(key, 0, count + 1, lastMs)
    }
    expect(window.peek(99, 0, count + 1, lastMs).remaining).toBe(1)
    // The buckets are there from the start: 16/3 bytes for each key that may come.
    expect((window.bytes - empty) / 100 + 16 / 3).toBeLessThanOrEqual(128 + 2.25 * count)
  }
})

test('memory does not grow from minute to minute', () => {
  const window = newWindow({ keysMax: 1000 })
  const minute = (at: number) => {
    for (let turn = 0; turn < 60; turn++) {
      for (let key = 0; key < 500; key++) window.take(at, key, 50, at * WINDOW_MS + turn * 1000)
    }
    return window.bytes
  }
  const [, second] = [minute(0), minute(1)]
  for (let at = 2; at < 12; at++) expect(minute(at)).toBeLessThanOrEqual(second as number)
})

test('a caller gives memory back as its requests leave, without going quiet', () => {
  const window = newWindow({ keysMax: 4, arenaBytesMax: 80 * 36 })
  for (let now = 0; now < 1000; now++) expect(window.take(1, 0, 1001, now).allowed).toBe(true)
  expect(window.take(1, 0, 1001, 50_000).allowed).toBe(true)
  expect(passed(window, 2, 1000, 50_000, 1000)).toBeLessThan(300)
  expect(window.take(1, 0, 1001, 999 + WINDOW_MS)).toMatchObject({ allowed: true, remaining: 999 })
  expect(passed(window, 3, 900, 999 + WINDOW_MS, 1000)).toBe(900)
})

test.each([0, -1, Number.NaN])('a budget of %p is a mistake of the caller', (budget) => {
  const window = newWindow({ keysMax: 4 })
  expect(() => window.take(1, 0, budget, 0)).toThrow(RangeError)
  expect(() => window.peek(1, 0, budget, 0)).toThrow(RangeError)
})
