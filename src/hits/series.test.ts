import { expect, test } from 'bun:test'
import { join } from 'node:path'
import fc from 'fast-check'
import { temporaryFolder } from '../../test/support/folder.ts'
import { dataOn, operationsOn, plainWrites } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { inTransaction, openWritable } from '../db/open.ts'
import { JournalFile } from '../hot/journal-file.ts'
import { HOUR } from '../lib/clock.ts'
import { createLog } from '../lib/log.ts'
import { HitCounts, journalFile, openJournal } from './hits.ts'
import { BucketPruner } from './pruner.ts'
import { type Bucket, DAYS_KEPT, HitSeries, STEP_MS, type Step } from './series.ts'
import { hits } from './subject.ts'

const silent = createLog({ level: 'silent' })
/** 2026-03-01T12:00Z, in hours. */
const NOON = Date.UTC(2026, 2, 1, 12) / HOUR
const LINKS = [1, 2, 3]
const ACCOUNT_OF = new Map([
  [1, 1],
  [2, 1],
  [3, 2],
])

/** Links 1 and 2 of account 1 and link 3 of account 2, a journal and a clock in whole hours. */
function hitService(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  for (const account of new Set(ACCOUNT_OF.values())) {
    db.run('INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, 0)', [account, 'pro'])
  }
  for (const [id, account] of ACCOUNT_OF) {
    db.query(
      `INSERT INTO links (id, code, account_id, passcode_hash, created_at)
       VALUES (?, ?, ?, x'00', 0)`,
    ).run(id, `CODE0${id}`, account)
  }
  const time = { hour: NOON }
  const clock = () => time.hour * HOUR
  const start = () => {
    const journal = openJournal(db, path, silent, 4096, clock)
    const file = JournalFile.open(journalFile(path))
    const host = { id: '', journal: file }
    const writes = operationsOn(db, hits, host)
    const counts = new HitCounts(writes, journal)
    const series = new HitSeries({ data: dataOn(db, { hits }, host), counts, clock })
    return { journal, file, writes, counts, series }
  }
  let running = start()
  return {
    db,
    time,
    clock,
    get counts() {
      return running.counts
    },
    get series() {
      return running.series
    },
    hit(linkId: number, count = 1) {
      for (let n = 0; n < count; n++) running.journal.append(linkId)
    },
    flush() {
      const { journal, writes } = running
      const end = journal.head
      inTransaction(db, () => writes.count({ end, now: clock() }))
      journal.release(end)
    },
    /** The disk takes the whole transaction back. */
    failToFlush() {
      const { journal, writes } = running
      expect(() =>
        inTransaction(db, () => {
          writes.count({ end: journal.head, now: clock() })
          throw new Error('disk full')
        }),
      ).toThrow('disk full')
    },
    kill() {
      running.file.close()
      running = start()
      this.flush()
    },
    prune(max = 2) {
      while (inTransaction(db, () => running.writes.prune({ now: clock(), max })));
    },
    deleteLink: (id: number) =>
      inTransaction(db, () => plainWrites(db).remove(ACCOUNT_OF.get(id) ?? 0, id)),
    rows: (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`),
  }
}

type HitService = ReturnType<typeof hitService>

const oldestKept = (step: Step, now: number) => (Math.floor(now / 24) - DAYS_KEPT[step] + 1) * 24

/** Hits by owner and hour, without a database: what a series must be. */
class SeriesModel {
  readonly #hits = new Map<string, Map<number, number>>()
  #pending: number[] = []
  readonly deleted = new Set<number>()
  /** What pruning has taken, even where the clock went back since. */
  readonly oldest = { hour: 0, day: 0 }

  hit(linkId: number, count: number) {
    for (let n = 0; n < count; n++) this.#pending.push(linkId)
  }

  flush(now: number) {
    for (const linkId of this.#pending) {
      if (this.deleted.has(linkId)) continue
      this.#add(`link ${linkId}`, now)
      this.#add(`account ${ACCOUNT_OF.get(linkId)}`, now)
    }
    this.#pending = []
  }

  drop(linkId: number) {
    this.deleted.add(linkId)
    this.#hits.delete(`link ${linkId}`)
  }

  prune(now: number) {
    for (const step of ['hour', 'day'] as const) {
      this.oldest[step] = Math.max(this.oldest[step], oldestKept(step, now))
    }
  }

  /** By the hour in which each bucket begins; those without hits are left out. */
  series(kind: 'link' | 'account', id: number, step: Step, now: number): Record<number, number> {
    const kept = oldestKept(step, now)
    const buckets: Record<number, number> = {}
    const current = step === 'hour' ? now : Math.floor(now / 24) * 24
    const add = (hour: number, count: number) => {
      const start = step === 'hour' ? hour : Math.floor(hour / 24) * 24
      if (start >= kept && start <= current) buckets[start] = (buckets[start] ?? 0) + count
    }
    for (const [hour, count] of this.#hits.get(`${kind} ${id}`) ?? []) add(hour, count)
    if (kind === 'link') for (const linkId of this.#pending) if (linkId === id) add(now, 1)
    return buckets
  }

  #add(owner: string, hour: number) {
    const hours = this.#hits.get(owner) ?? new Map<number, number>()
    hours.set(hour, (hours.get(hour) ?? 0) + 1)
    this.#hits.set(owner, hours)
  }
}

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
  // A row for the link and one for its account.
  expect(service.rows('hits_by_hour').get()?.n).toBe(2 * (94 * 2 + 13 + 4 * 24 + 13))
  expect(service.rows('hits_by_day').get()?.n).toBe(2 * DAYS_KEPT.day)
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
  const commands: { now: number; max: number }[] = []
  const state = { isFull: false }
  const hits = {
    async prune(command: { now: number; max: number }) {
      commands.push(command)
      if (state.isFull) throw new Error('database or disk is full')
      return commands.length < batches
    },
  }
  const pruner = new BucketPruner({ data: { hits }, clock: () => 77 })
  return { commands, state, pruner }
}

test('pruning begins at the start and goes on until nothing old is left', async () => {
  const { commands, pruner } = setUpPruner(3)
  while (commands.length < 3) await Promise.resolve()
  await pruner.prune()
  pruner.close()
  expect(commands).toEqual(Array(4).fill({ now: 77, max: 4000 }))
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
