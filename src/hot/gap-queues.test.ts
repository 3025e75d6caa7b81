import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { GapQueues } from './gap-queues.ts'
import { SharedArrays } from './shared-arrays.ts'

const newQueues = (queues: number, arenaBytesMax: number) =>
  new GapQueues(new SharedArrays(new SharedArrayBuffer(2 ** 21)), queues, arenaBytesMax)

const CHUNK_COST_BYTES = 36

const value = fc.oneof(fc.constantFrom(0, 1, 59_999, 65_535), fc.nat({ max: 65_535 }))

const step = fc.record({
  queue: fc.nat({ max: 3 }),
  act: fc.constantFrom('push', 'push', 'push', 'shift', 'shift', 'sum', 'clear' as const),
  values: fc.array(value, { maxLength: 40, size: 'max' }),
})

test('queues in one arena give back what was pushed, in order, and never more than the arena', () => {
  const property = fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
    const arenaBytesMax = 12 * CHUNK_COST_BYTES
    const queues = newQueues(4, arenaBytesMax)
    const expected: number[][] = [[], [], [], []]
    for (const { queue, act, values } of steps) {
      const model = expected[queue] ?? []
      if (act === 'push') {
        for (const value of values) {
          if (!queues.hasRoom(queue)) break
          queues.push(queue, value)
          model.push(value)
        }
      } else if (act === 'shift') {
        for (const _ of values) {
          if (model.length > 0) expect(queues.shift(queue)).toBe(model.shift() as number)
        }
      } else if (act === 'sum') {
        const first = model.slice(0, values.length)
        const sum = first.reduce((total, value) => total + value, 0)
        expect(queues.sum(queue, first.length)).toBe(sum)
      } else {
        queues.clear(queue)
        model.length = 0
      }
      expect(queues.arenaBytes).toBeLessThanOrEqual(arenaBytesMax)
    }
    for (const [queue, model] of expected.entries()) {
      expect(model.map(() => queues.shift(queue))).toEqual(model)
    }
    // Every chunk has come back: one queue can fill the whole arena.
    let pushed = 0
    for (; queues.hasRoom(0); pushed++) queues.push(0, 1)
    expect(pushed).toBe(12 * 16)
  })
  fc.assert(property, { seed: 4_052_602, numRuns: 300 })
})

test('sixteen values take a chunk', () => {
  const queues = newQueues(1, 1 << 20)
  for (let i = 0; i < 1600; i++) queues.push(0, i)
  expect(queues.arenaBytes).toBe(100 * CHUNK_COST_BYTES)
})

test('an arena without a single chunk has room for nothing', () => {
  expect(newQueues(1, CHUNK_COST_BYTES - 1).hasRoom(0)).toBe(false)
  expect(newQueues(1, CHUNK_COST_BYTES).hasRoom(0)).toBe(true)
})

test.each([-1, Number.NaN, 2 ** 30 + 1])(
  'an arena of %p bytes is a mistake of the caller',
  (bytes) => {
    expect(() => newQueues(1, bytes)).toThrow(RangeError)
  },
)
