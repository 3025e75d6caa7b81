import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Hold, SharedBudget } from './shared-budget.ts'

const MAX = 1000
const OVERLOADED = { code: 'overloaded', status: 503 }

/** A budget whose clock stands still unless a test changes it. */
function budgetAt(time = { now: 0 }) {
  const budget = new SharedBudget(MAX, () => time.now)
  const ended: Hold[] = []
  const hold = (holder: string | number, bytes: number) => {
    const it = budget.hold(holder, () => void ended.push(it))
    it.take(bytes)
    return it
  }
  return { budget, time, ended, hold }
}

test('when the budget is full, the oldest hold of the largest holder ends', () => {
  const { budget, hold, ended } = budgetAt()
  const [, oldest] = [hold('small', 200), hold('large', 300), hold('large', 500)]
  hold('new', 100)
  expect(ended).toEqual([oldest])
  expect(oldest.isEnded).toBe(true)
  expect(() => oldest.take(1)).toThrow(expect.objectContaining(OVERLOADED))
  expect(budget.total).toBe(800)
})

test('a hold that grows ends itself if its holder holds most', () => {
  const { budget, hold, ended } = budgetAt()
  const growing = hold('large', 600)
  const other = hold('other', 400)
  expect(() => growing.take(1)).toThrow(expect.objectContaining(OVERLOADED))
  expect(ended).toEqual([growing])
  other.take(600)
  expect(budget.total).toBe(MAX)
})

test('of holders that hold as much, the one that needs more yields', () => {
  const { hold, ended } = budgetAt()
  const [first] = [hold('a', 500), hold('b', 500)]
  hold('a', 100)
  expect(ended).toEqual([first])
})

test('a hold without progress for 8 s ends first, and only when room is needed', () => {
  const { time, hold, ended } = budgetAt()
  const [stalled, read] = [hold('small', 100), hold('large', 800)]
  time.now = 7999
  read.progress()
  time.now = 8000
  hold('new', 100)
  expect(ended).toEqual([])
  hold('new', 50)
  expect(ended).toEqual([stalled])
})

test('a released hold leaves nothing, however often it is released', () => {
  const { budget, hold } = budgetAt()
  const held = hold('a', 10)
  for (const _ of [1, 2]) held[Symbol.dispose]()
  expect(budget.total).toBe(0)
})

const step = fc.record({
  holder: fc.integer({ min: 0, max: 5 }),
  kind: fc.constantFrom('begin', 'grow', 'release', 'wait'),
  bytes: fc.integer({ min: 1, max: MAX }),
  pick: fc.nat(),
})

test('who holds nothing is admitted, who holds most yields, and the total exceeds by one hold', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { budget, time, hold, ended } = budgetAt()
      let holds: Hold[] = []
      const heldBy = (holder: number | string) =>
        holds.reduce((sum, one) => sum + (one.holder === holder ? one.bytes : 0), 0)
      for (const { holder, kind, bytes, pick } of steps) {
        const picked = holds[pick % Math.max(1, holds.length)]
        const isStalled = holds.some(({ progressAt }) => time.now - progressAt >= 8000)
        const largest = Math.max(0, ...holds.map((one) => heldBy(one.holder)))
        const sizes = new Map(holds.map((one) => [one, heldBy(one.holder)]))
        ended.length = 0
        if (kind === 'wait') time.now += 5000
        // The first call of a hold must not throw, whatever others hold.
        if (kind === 'begin') holds.push(hold(holder, bytes))
        if (kind === 'grow' && picked) {
          try {
            picked.take(bytes)
          } catch (error) {
            expect(error).toMatchObject(OVERLOADED)
            expect(ended).toContain(picked)
          }
        }
        if (kind === 'release') picked?.[Symbol.dispose]()
        const [first] = ended
        if (first && !isStalled) expect(sizes.get(first)).toBe(largest)
        holds = holds.filter((one) => one.bytes > 0)
        const sum = holds.reduce((total, one) => total + one.bytes, 0)
        expect(budget.total).toBe(sum)
        expect(sum).toBeLessThanOrEqual(MAX + Math.max(0, ...holds.map((one) => one.bytes)))
      }
    }),
    { numRuns: 500 },
  )
})
