import { expect } from 'bun:test'
import type { RedisClient } from 'bun'
import fc from 'fast-check'
import { Redis } from '../../test/support/redis.ts'
import { testWith } from '../../test/support/tools.ts'
import windowScript from './window.lua' with { type: 'text' }

const WINDOW_MS = 60_000
const SEED = 5_120_033
const RUNS = Number(process.env.LIMITER_RUNS ?? 100)

/** The script on a clock of the test. */
const SCRIPT = windowScript.replace("redis.call('TIME')", '{ARGV[4], ARGV[5]}')

const charge = (
  client: RedisClient,
  key: string,
  step: { limit: number; amount: number },
  ms: number,
) => {
  const micros = `${ms % 1000}999`.padStart(6, '0')
  const time = [String(Math.floor(ms / 1000)), micros]
  const args = [String(step.limit), String(step.amount), String(WINDOW_MS), ...time]
  return client.send('EVAL', [SCRIPT, '1', key, ...args]) as Promise<number[]>
}

/** A plain log of times. Where the clock was set back, time stands still since the last request. */
class Model {
  #times: number[] = []
  #offset = 0

  charge({ limit, amount }: { limit: number; amount: number }, clock: number): number[] {
    const newest = this.#times.at(-1) ?? 0
    if (newest > clock + this.#offset) this.#offset = newest - clock
    const now = clock + this.#offset
    const times = this.#times.filter((time) => time > now - WINDOW_MS)
    this.#times = times
    const leavesMs = (index: number) => (times[index] ?? now - WINDOW_MS) + WINDOW_MS - now
    const left = Math.max(0, limit - times.length)
    const excess = times.length + amount - limit
    if (amount > 0 && excess > 0) {
      const waitMs = times.length === 0 ? WINDOW_MS : leavesMs(Math.min(excess, times.length) - 1)
      return [0, left, waitMs]
    }
    for (let i = 0; i < amount; i++) times.push(now)
    return [1, Math.max(0, limit - times.length), leavesMs(0)]
  }
}

const step = fc.record({
  limit: fc.oneof({ weight: 8, arbitrary: fc.constant(9) }, fc.integer({ min: 1, max: 20 })),
  amount: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, fc.constantFrom(0, 2, 5, 25)),
  advanceMs: fc.oneof(
    fc.constantFrom(0, 0, 1, 59_999, 60_000, 60_001, -1, -50, -86_400_000),
    fc.nat({ max: 20_000 }),
  ),
  times: fc.integer({ min: 1, max: 12 }),
})

testWith('redis')(
  'the window agrees with a plain log of times, also when limits change and the clock is set back',
  async () => {
    await using redis = await Redis.start()
    const client = redis.connect()
    let key = 0
    const starts = fc.constantFrom(1_772_366_400_000, 415 * 2 ** 32 - 30_000)
    const steps = fc.array(step, { maxLength: 40, size: 'max' })
    const property = fc.asyncProperty(starts, steps, async (start, all) => {
      const model = new Model()
      let clock = start
      key++
      for (const each of all) {
        clock += each.advanceMs
        for (let i = 0; i < each.times; i++) {
          const reply = await charge(client, String(key), each, clock)
          expect(reply).toEqual(model.charge(each, clock))
        }
      }
    })
    await fc.assert(property, { seed: SEED, numRuns: RUNS })
    client.close()
  },
)

testWith('redis')(
  'a caller with the highest limit takes at most 60,000 entries, and its key expires',
  async () => {
    await using redis = await Redis.start()
    const client = redis.connect()
    const limit = 1_000_000
    const start = 1_772_366_400_000
    const calls = Array.from({ length: 70_000 }, (_, i) =>
      charge(client, 'busy', { limit, amount: i % 2 === 0 ? 14 : 15 }, start + i),
    )
    const replies = await Promise.all(calls)
    expect(replies.at(-1)).toEqual([1, limit - (60_000 * 29) / 2, 1])
    expect(await client.send('LLEN', ['busy'])).toBe(60_001)
    expect(await client.send('MEMORY', ['USAGE', 'busy'])).toBeLessThan(800_000)
    expect(await client.send('PTTL', ['busy'])).toBeWithin(1, WINDOW_MS + 1)
    const slow = await charge(client, 'busy', { limit: 10, amount: 1 }, start + 70_000)
    expect(slow).toEqual([0, 0, 59_999])
    client.close()
  },
)
