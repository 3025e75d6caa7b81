import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import {
  type HitService,
  hitService,
  LINKS,
  NOON,
  SeriesModel,
} from '../../test/support/hit-series.ts'
import { HOUR } from '../lib/clock.ts'
import { BucketPruner } from './pruner.ts'
import { type Bucket, DAYS_KEPT, STEP_MS, type Step } from './series.ts'

const DAY = 24 * HOUR

const sum = (buckets: readonly Bucket[]) => buckets.reduce((total, { count }) => total + count, 0)
const filled = (buckets: readonly Bucket[]) =>
  Object.fromEntries(
    buckets.filter(({ count }) => count !== 0).map(({ start, count }) => [start / HOUR, count]),
  )
/** Hours that a test reads before the current one. */
const HOURS_READ = 100
/** Every kept day, or the last hours. */
const allOf = (step: Step, { time }: HitService) => ({
  from: step === 'day' ? 0 : (time.hour - HOURS_READ) * HOUR,
  to: Number.MAX_SAFE_INTEGER,
  step,
})
const link = (linkId: number) => ({ linkId })
const account = (accountId: number) => ({ accountId })

const steps = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ hit: fc.constantFrom(...LINKS), count: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 5, arbitrary: fc.constant('flush' as const) },
  { weight: 4, arbitrary: fc.record({ hours: fc.constantFrom(-2, -1, 1, 1, 1, 3, 20, 49, 73) }) },
  { weight: 1, arbitrary: fc.record({ hours: fc.constantFrom(24 * 30, 24 * 399) }) },
  { weight: 1, arbitrary: fc.constant('kill' as const) },
  { weight: 1, arbitrary: fc.constant('fail to flush' as const) },
  { weight: 2, arbitrary: fc.constant('prune' as const) },
  { weight: 1, arbitrary: fc.record({ drop: fc.constantFrom(...LINKS) }) },
)

test('any run of hits, flushes, kills, hours, deletions and prunings gives the series of a plain list', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 50 }), async (run) => {
      using folder = temporaryFolder()
      const service = hitService(folder.path)
      service.db.run('PRAGMA synchronous = OFF')
      const model = new SeriesModel()
      for (const step of run) {
        const now = service.time.hour
        if (step === 'flush' || step === 'kill') {
          service[step]()
          model.flush(now)
        } else if (step === 'fail to flush') {
          service.failToFlush()
        } else if (step === 'prune') {
          service.prune()
          model.prune(now)
        } else if ('hit' in step) {
          service.hit(step.hit, step.count)
          model.hit(step.hit, step.count)
        } else if ('drop' in step) {
          service.deleteLink(step.drop)
          model.drop(step.drop)
        } else {
          service.time.hour += step.hours
        }
        await compare(service, model)
      }
      service.db.close()
    }),
    { seed: 20260301, numRuns: 40 },
  )
})

async function compare(service: HitService, model: SeriesModel) {
  const { series, time, counts } = service
  const now = time.hour
  for (const step of ['hour', 'day'] as const) {
    const first = Math.max(model.oldest[step], step === 'hour' ? now - HOURS_READ : 0)
    const notPruned = (buckets: Record<number, number>) =>
      Object.fromEntries(Object.entries(buckets).filter(([start]) => Number(start) >= first))
    for (const linkId of LINKS) {
      if (model.deleted.has(linkId)) continue
      const buckets = await series.buckets(link(linkId), allOf(step, service))
      const expected = model.series('link', linkId, step, now)
      expect(notPruned(filled(buckets))).toEqual(notPruned(expected))
      const all = counts.ofLink(linkId)
      expect(sum(buckets)).toBeLessThanOrEqual(all)
    }
    for (const accountId of [1, 2]) {
      const buckets = await series.buckets(account(accountId), allOf(step, service))
      const expected = model.series('account', accountId, step, now)
      expect(notPruned(filled(buckets))).toEqual(notPruned(expected))
    }
  }
}

test('a series has a bucket for every hour or day that was asked for and is kept', async () => {
  using folder = temporaryFolder()
  const { series, clock, hit, flush, time, db } = hitService(folder.path)
  hit(1, 2)
  flush()
  time.hour += 30
  hit(1, 5)
  const lengths = async (from: number, to: number, step: Step) => {
    const buckets = await series.buckets(link(1), { from, to, step })
    buckets.forEach(({ start }, i) => {
      expect(start).toBe((buckets[0]?.start ?? 0) + i * STEP_MS[step])
      expect(start % STEP_MS[step]).toBe(0)
    })
    return [buckets.length, sum(buckets)]
  }
  const now = clock()
  expect(await lengths(0, now + 1, 'hour')).toEqual([(DAYS_KEPT.hour - 1) * 24 + 19, 7])
  expect(await lengths(0, now + DAY, 'day')).toEqual([DAYS_KEPT.day, 7])
  expect(await lengths(now - 30 * HOUR, now, 'hour')).toEqual([30, 2])
  expect(await lengths(now - 30 * HOUR + 1, now - 29 * HOUR - 1, 'hour')).toEqual([1, 2])
  expect(await lengths(now - 29 * HOUR, now, 'hour')).toEqual([29, 0])
  expect(await lengths(now, now + 1, 'hour')).toEqual([1, 5])
  expect(await lengths(now, now - DAY, 'day')).toEqual([0, 0])
  expect(await lengths(now + 5 * DAY, now + 9 * DAY, 'day')).toEqual([0, 0])
  db.close()
})

test('hits of a deleted link stay in the series of its account, and no more are added', async () => {
  using folder = temporaryFolder()
  const service = hitService(folder.path)
  for (let hour = 0; hour < 60; hour++) {
    service.hit(1)
    service.hit(2)
    service.flush()
    service.time.hour++
  }
  service.hit(1)
  service.flush()
  service.hit(1, 4)
  expect(service.deleteLink(1)).toMatchObject({ id: 1 })
  service.flush()
  expect(sum(await service.series.buckets(link(2), allOf('day', service)))).toBe(60)
  expect(sum(await service.series.buckets(account(1), allOf('day', service)))).toBe(121)
  expect(service.counts.of([1]).get(1)).toBe(0)
  expect(service.counts.total()).toBe(125)
  service.db.close()
})

test('a link that is followed for 430 days keeps 400 days, and the hours of 100', async () => {
  using folder = temporaryFolder()
  const service = hitService(folder.path)
  service.db.run('PRAGMA synchronous = OFF')
  const follow = (times: number, hoursBetween: number) => {
    for (let n = 0; n < times; n++) {
      service.time.hour += hoursBetween
      service.hit(1, hoursBetween)
      service.flush()
      if (n % 4 === 0) service.prune(3)
    }
  }
  follow(425 * 2, 12)
  follow(5 * 24, 1)
  service.prune(3)
  const { series } = service
  // A row for the link and one for its account; the newest days are in other rows.
  const rows = service.rows('hit_days').get()?.n ?? 0
  expect(rows).toBeWithin(2 * (DAYS_KEPT.day - 4), 2 * DAYS_KEPT.day)
  expect(service.rows('hit_days WHERE hours IS NOT NULL').get()?.n).toBe(
    rows - 2 * (DAYS_KEPT.day - DAYS_KEPT.hour),
  )
  const days = await series.buckets(link(1), allOf('day', service))
  const counts = [...Array<number>(394).fill(24), 35, 24, 24, 24, 24, 13]
  expect(days.map(({ count }) => count)).toEqual(counts)
  const hours = await series.buckets(link(1), allOf('hour', service))
  expect(hours.every(({ count }) => count === 1)).toBe(true)
  service.db.close()
})

test('a hit belongs to the hour that the clock showed, ahead or back, and none is lost', async () => {
  using folder = temporaryFolder()
  const service = hitService(folder.path)
  const at = async (hour: number, hits: number) => {
    service.time.hour = hour
    service.hit(1, hits)
    service.flush()
    return filled(await service.series.buckets(link(1), allOf('hour', service)))
  }
  expect(await at(NOON, 1)).toEqual({ [NOON]: 1 })
  const years = 9 * 365 * 24
  expect(await at(NOON + years, 10)).toEqual({ [NOON + years]: 10 })
  expect(await at(NOON + 1, 100)).toEqual({ [NOON]: 1, [NOON + 1]: 100 })
  expect(await at(NOON - 1, 1000)).toEqual({ [NOON - 1]: 1000 })
  expect(await at(NOON + 2, 0)).toEqual({ [NOON - 1]: 1000, [NOON]: 1, [NOON + 1]: 100 })
  expect(service.counts.of([1]).get(1)).toBe(1111)
  service.db.close()
})

test('after 100 days, the hours of a day are not shown, wherever they are stored', async () => {
  using folder = temporaryFolder()
  const service = hitService(folder.path)
  for (const later of [0, 10]) {
    service.time.hour = NOON + 24 * later
    service.hit(1)
    service.flush()
  }
  const read = async (from: number, hours: number) =>
    (await service.series.bars(link(1), [from, from + hours])).counts
  const shown = () => Promise.all([read(NOON, 1), read(NOON + 240, 1), read(NOON - 12, 24)])
  service.time.hour = NOON + 24 * 99
  expect(await shown()).toEqual([[1], [1], [1]])
  service.time.hour = NOON + 24 * 100
  expect(await shown()).toEqual([[0], [1], [1]])
  service.time.hour = NOON + 24 * 110
  expect(await shown()).toEqual([[0], [0], [1]])
  service.db.close()
})

test('the last days of a page of links are one read, today last, without links that have none', async () => {
  using folder = temporaryFolder()
  const service = hitService(folder.path)
  service.hit(1, 2)
  service.hit(3)
  service.flush()
  service.time.hour += 48
  service.hit(1)
  service.flush()
  service.hit(2)
  expect(await service.series.ofLinks([1, 2, 3], 3)).toEqual(
    new Map([
      [1, [2, 0, 1]],
      [3, [1, 0, 0]],
    ]),
  )
  expect(await service.series.ofLinks([1], 2)).toEqual(new Map([[1, [0, 1]]]))
  expect(await service.series.ofLinks([], 30)).toEqual(new Map())
  service.db.close()
})

/** A writer that has so many batches of old buckets to remove. */
function setUpPruner(batches: number) {
  const commands: { now: number; max: number; after?: unknown }[] = []
  const state = { isFull: false }
  const hits = {
    async prune(command: (typeof commands)[number]) {
      commands.push(command)
      if (state.isFull) throw new Error('database or disk is full')
      return commands.length < batches ? { scope: 0, id: commands.length } : undefined
    },
  }
  const history = { prune: async () => 0 }
  const pruner = new BucketPruner({ data: { hits, history }, clock: () => 77 })
  return { commands, state, pruner }
}

test('pruning begins at the start and goes on until nothing old is left', async () => {
  const { commands, pruner } = setUpPruner(3)
  while (commands.length < 3) await Promise.resolve()
  await pruner.prune()
  pruner.close()
  const steps = [undefined, { scope: 0, id: 1 }, { scope: 0, id: 2 }, undefined]
  expect(commands).toEqual(steps.map((after) => ({ now: 77, max: 1000, after })))
})

test('pruning ends with the service, and a disk that refuses does not end it', async () => {
  const { commands, state, pruner } = setUpPruner(1000)
  state.isFull = true
  expect(pruner.prune()).rejects.toThrow('disk is full')
  await pruner.prune().catch(() => {})
  state.isFull = false
  const running = pruner.prune()
  pruner.close()
  await running
  expect(commands.length).toBeLessThan(10)
})
