import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { SlidingWindow, type SlidingWindowOptions } from './sliding-window.ts'
import { type Decision, WINDOW_MS } from './window-shard.ts'

const newWindow = (options: SlidingWindowOptions) =>
  new SlidingWindow(SlidingWindow.allocate(options))

/** A failing run prints its seed and path: put them here to see it again. */
const SEED = 4_052_600
const RUNS = Number(process.env.WINDOW_RUNS ?? 100)

const seededBytes = (length: number) => new Uint8Array(length).fill(5)

const start = fc.constantFrom(0, 12_345, 2 ** 31 - 150_000, 1_790_000_000_000)

/** Short steps, the edges of the window, of 16 bits and of the moving origin, and long absences. */
const advanceMs = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 40 }) },
  { weight: 3, arbitrary: fc.nat({ max: 20_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 59_998, max: 60_002 }) },
  { weight: 1, arbitrary: fc.integer({ min: 65_534, max: 65_538 }) },
  { weight: 1, arbitrary: fc.constantFrom(119_999, 131_072, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 5) },
)

const step = (keys: number) =>
  fc.record({
    key: fc.nat({ max: keys - 1 }),
    budget: fc.constantFrom(1, 2, 3, 7, 40, 120),
    advanceMs,
    takes: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 45 }), fc.constant(90)),
  })
const steps = (keys: number) => fc.array(step(keys), { minLength: 1, maxLength: 60, size: 'max' })

/** The requests of each caller that passed, as plain lists: slow, and plainly right. */
class Log {
  readonly #times = new Map<number, number[]>()

  /** Times in the window, oldest first. */
  counted(key: number, now: number): number[] {
    return (this.#times.get(key) ?? []).filter((time) => time > now - WINDOW_MS)
  }

  add(key: number, now: number): void {
    this.#times.set(key, [...this.counted(key, now), now])
  }
}

/** The decision that a take or a peek must return, given the counted times before it. */
function expectedDecision(times: number[], budget: number, now: number): Decision {
  if (times.length < budget) {
    return {
      allowed: true,
      remaining: budget - times.length,
      resetAfterMs: times[0] === undefined ? 0 : times[0] + WINDOW_MS - now,
    }
  }
  const last = times[times.length - budget] as number
  return { allowed: false, remaining: 0, resetAfterMs: last + WINDOW_MS - now }
}

// spec: Limits | Rate window
test('it agrees with a plain log: never over the budget, never a refusal under it, every figure exact', () => {
  const property = fc.property(start, steps(5), (startMs, all) => {
    const window = newWindow({ keysMax: 8, random: seededBytes })
    const log = new Log()
    let now = startMs
    for (const { key, budget, advanceMs, takes } of all) {
      now += advanceMs
      for (let i = 0; i < takes; i++) {
        const before = expectedDecision(log.counted(key, now), budget, now)
        if (i < 2) expect(window.peek(key, ~key, budget, now)).toEqual(before)
        const decision = window.take(key, ~key, budget, now)
        if (decision.allowed) log.add(key, now)
        const after = expectedDecision(log.counted(key, now), budget + 1, now)
        const expected = before.allowed ? { ...after, remaining: before.remaining - 1 } : before
        expect(decision).toEqual(expected)
      }
    }
    expect(window.overflowed).toBe(0)
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

// design: 4.5 after Retry-After seconds the next request passes
test('after a refusal, the next request passes at resetAfterMs and not a millisecond sooner', () => {
  const property = fc.property(start, steps(3), (startMs, all) => {
    const window = newWindow({ keysMax: 8, random: seededBytes })
    let now = startMs
    for (const { key, budget, advanceMs, takes } of all) {
      now += advanceMs
      for (let i = 0; i < takes; i++) window.take(0, key, budget, now)
      const decision = window.take(0, key, budget, now)
      if (decision.allowed) continue
      const until = now + decision.resetAfterMs
      const refusal = { allowed: false, remaining: 0, resetAfterMs: 1 }
      expect(window.peek(0, key, budget, until - 1)).toEqual(refusal)
      expect(window.peek(0, key, budget, until).allowed).toBe(true)
      now = until
    }
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

interface ModelOptions {
  keysMax: number
  /** The group of a key as another number; the key itself where it has none. */
  groupOf?: (key: number) => number
  failsOpen?: boolean
}

/** Callers in slots of their own or their group's, and in the overflow bucket, as plain lists. */
class CrowdedModel {
  readonly #keysMax: number
  readonly #groupOf: (key: number) => number
  readonly #failsOpen: boolean
  /** The keys with a slot: when they last passed (or came), and whether they may be shared. */
  readonly #held = new Map<number, { newest: number; shared: boolean }>()
  readonly #own = new Log()
  readonly #overflow: { group: number; time: number }[] = []

  constructor({ keysMax, groupOf = (key) => key, failsOpen = false }: ModelOptions) {
    this.#keysMax = keysMax
    this.#groupOf = groupOf
    this.#failsOpen = failsOpen
  }

  take(key: number, budget: number, now: number): boolean {
    for (const [held, { newest }] of this.#held) {
      if (newest <= now - WINDOW_MS) this.#held.delete(held)
    }
    const group = this.#groupOf(key)
    const inOverflow = this.#overflow.filter(({ time }) => time > now - WINDOW_MS)
    const marked = inOverflow.some((request) => request.group === group)
    let held = this.#held.has(key) || !this.#held.has(group) ? key : group
    if (!this.#held.has(held) && this.#held.size < this.#keysMax) {
      if (this.#held.size > this.#keysMax / 2) held = group
      this.#held.set(held, { newest: now, shared: marked })
    }
    const slot = this.#held.get(held)
    if (!slot && this.#failsOpen) return true
    if (slot && !marked) slot.shared = false
    const own = slot ? this.#own.counted(held, now).length : 0
    const shared = !slot || slot.shared ? inOverflow.length : 0
    if (own + shared >= budget) return false
    if (slot) {
      this.#own.add(held, now)
      slot.newest = now
    } else this.#overflow.push({ group, time: now })
    return true
  }
}

/** Eight callers as keys of addresses: three /64 of each of two /48, and two of IPv4. */
const addressKey = (n: number): [number, number] =>
  n < 6 ? [0x2001_0db8, ((n % 2) << 16) | (n >> 1)] : [0xffff_0001, n]
const networkOf = (n: number) => (n < 6 ? 100 + (n % 2) : n)

/** Each call releases two expired keys: afterwards, up to four are. */
function releaseExpired(window: SlidingWindow, now: number): void {
  for (let i = 0; i < 2; i++) window.peek(0xffff_0001, 99, 1, now)
}

test('with more callers than slots, none gets more than its budget and only newcomers suffer', () => {
  const keysMax = fc.integer({ min: 1, max: 4 })
  const property = fc.property(keysMax, start, steps(8), (keysMax, startMs, all) => {
    const window = newWindow({ keysMax, random: seededBytes })
    const model = new CrowdedModel({ keysMax })
    const log = new Log()
    let now = startMs
    for (const { key, budget, advanceMs, takes } of all) {
      now += advanceMs
      for (let i = 0; i < takes; i++) {
        const counted = log.counted(key, now).length
        const couldPass = window.peek(key, 0, budget, now).allowed
        const { allowed: passes, remaining } = window.take(key, 0, budget, now)
        expect(couldPass).toBe(passes)
        if (passes) {
          expect(counted).toBeLessThan(budget)
          expect(remaining).toBeLessThan(budget - counted)
          log.add(key, now)
        }
        expect(passes).toBe(model.take(key, budget, now))
      }
      expect(window.size).toBeLessThanOrEqual(keysMax)
    }
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

test('with a full arena, no caller gets more than its budget and a refusal ends when it says', () => {
  const arenaBytesMax = fc.constantFrom(0, 36, 72, 180)
  const property = fc.property(arenaBytesMax, start, steps(5), (arenaBytesMax, startMs, all) => {
    const window = newWindow({ keysMax: 8, arenaBytesMax, random: seededBytes })
    const log = new Log()
    let now = startMs
    for (const { key, budget, advanceMs, takes } of all) {
      now += advanceMs
      for (let i = 0; i < takes; i++) {
        const counted = log.counted(key, now).length
        const refusedBefore = window.arenaRefused
        const decision = window.take(0, key, budget, now)
        if (decision.allowed) {
          expect(decision.remaining).toBe(budget - counted - 1)
          expect(decision.remaining).toBeGreaterThanOrEqual(0)
          log.add(key, now)
        } else {
          if (counted < budget) expect(window.arenaRefused).toBe(refusedBefore + 1)
          expect(decision.remaining).toBe(0)
          expect(decision.resetAfterMs).toBeGreaterThan(0)
          expect(decision.resetAfterMs).toBeLessThanOrEqual(WINDOW_MS)
        }
      }
      if (advanceMs % 2 === 0) continue
      const next = window.peek(0, key, budget, now)
      if (next.allowed) continue
      now += next.resetAfterMs
      expect(window.peek(0, key, budget, now).allowed).toBe(true)
    }
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

test('under pressure new IPv6 networks are counted by /48: none is over its budget, those held are exact', () => {
  const keysMax = fc.integer({ min: 1, max: 4 })
  // Half of the runs take only, so that expired keys stay longer than the model would keep them.
  const inStep = fc.boolean()
  const property = fc.property(
    inStep,
    keysMax,
    start,
    steps(8),
    (inStep, keysMax, startMs, all) => {
      const options = { keysMax, areAddresses: true, random: seededBytes }
      const window = newWindow(options)
      const model = new CrowdedModel({ keysMax, groupOf: networkOf })
      const log = new Log()
      let now = startMs
      for (const { key, budget, advanceMs, takes } of all) {
        now += advanceMs
        const [high, low] = addressKey(key)
        if (inStep) releaseExpired(window, now)
        for (let i = 0; i < takes; i++) {
          const counted = log.counted(key, now).length
          const couldPass = inStep && window.peek(high, low, budget, now).allowed
          const passes = window.take(high, low, budget, now).allowed
          if (passes) {
            expect(counted).toBeLessThan(budget)
            log.add(key, now)
          }
          if (!inStep) continue
          expect(couldPass).toBe(passes)
          expect(passes).toBe(model.take(key, budget, now))
        }
        expect(window.size).toBeLessThanOrEqual(keysMax)
      }
    },
  )
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

test('a window that fails open refuses nobody under the budget, and those with a slot exactly at it', () => {
  const keysMax = fc.integer({ min: 1, max: 4 })
  const arenaBytesMax = fc.constantFrom(0, 36, 72, 1 << 20)
  const property = fc.property(
    keysMax,
    arenaBytesMax,
    start,
    steps(8),
    (keysMax, arenaBytesMax, startMs, all) => {
      const common = { keysMax, failsOpen: true }
      const window = newWindow({
        ...common,
        areAddresses: true,
        arenaBytesMax,
        random: seededBytes,
      })
      const model = new CrowdedModel({ ...common, groupOf: networkOf })
      const ofNetwork = new Log()
      let now = startMs
      for (const { key, budget, advanceMs, takes } of all) {
        now += advanceMs
        const [high, low] = addressKey(key)
        releaseExpired(window, now)
        for (let i = 0; i < takes; i++) {
          const passedBefore = ofNetwork.counted(networkOf(key), now).length
          const couldPass = window.peek(high, low, budget, now).allowed
          const passes = window.take(high, low, budget, now).allowed
          expect(couldPass).toBe(passes)
          if (!passes) expect(passedBefore).toBeGreaterThanOrEqual(budget)
          if (passes) ofNetwork.add(networkOf(key), now)
          if (arenaBytesMax > 100) expect(passes).toBe(model.take(key, budget, now))
        }
      }
      if (arenaBytesMax > 100) expect(window.uncounted).toBe(window.overflowed)
    },
  )
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})
