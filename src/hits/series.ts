import type { Database } from 'bun:sqlite'
import { type ScanCalls, scan, write } from '../db/subject.ts'
import { type Clock, HOUR } from '../lib/clock.ts'

/**
 * Hits per UTC hour and day, in buckets: one row per hour (or day) and link or account with hits in
 * it. Rows are ordered by time: a flush writes the rows of its hour side by side, and pruning
 * removes the oldest from the front.
 */

export type Step = 'hour' | 'day'

export const HOURS_OF_DAY = 24
/** UTC days whose hours, and whose days, are kept, the current one included (decision 021). */
export const DAYS_KEPT: Record<Step, number> = { hour: 100, day: 400 }

export const STEP_MS: Record<Step, number> = { hour: HOUR, day: HOURS_OF_DAY * HOUR }

/** Hours since 1970 began. */
export const hourOf = (now: number): number => Math.floor(now / HOUR)
export const dayOf = (hour: number): number => Math.floor(hour / HOURS_OF_DAY)

/** The values of `scope`: the `id` of a row is that of a link or of an account. */
export const LINK = 0
export const ACCOUNT = 1
type Scope = typeof LINK | typeof ACCOUNT

type AddToBuckets = (scope: Scope, id: number, hour: number, count: number) => void

/** Adds hits of one link or account to its hour and its day. */
export function bucketAdder(db: Database): AddToBuckets {
  const upsert = (step: Step) =>
    db.prepare<null, [number, Scope, number, number]>(
      `INSERT INTO hits_by_${step} (${step}, scope, id, count)
       VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET count = count + ?4`,
    )
  const addToHour = upsert('hour')
  const addToDay = upsert('day')
  return (scope, id, hour, count) => {
    addToHour.run(hour, scope, id, count)
    addToDay.run(dayOf(hour), scope, id, count)
  }
}

/** Remove all buckets of the account `?1`, at most 2,800: one look-up for each hour and day. */
export const REMOVE_BUCKETS = (['hour', 'day'] as const).map(
  (step) =>
    `WITH RECURSIVE steps (at) AS (
       SELECT min(${step}) FROM hits_by_${step} UNION ALL
       SELECT (SELECT min(${step}) FROM hits_by_${step} WHERE ${step} > at)
       FROM steps WHERE at IS NOT NULL)
     DELETE FROM hits_by_${step}
     WHERE ${step} IN (SELECT at FROM steps) AND scope = ${ACCOUNT} AND id = ?1`,
)

/** The first UTC day of which hours or days are kept at `now`. */
export const oldestDay = (step: Step, now: number): number =>
  dayOf(hourOf(now)) - (DAYS_KEPT[step] - 1)

export const seriesWrites = {
  /** Removes at most `max` expired rows of each table. Returns whether more may be left. */
  prune: write({
    prepare(db) {
      const prune = (step: Step) =>
        db.prepare<null, [number, number]>(
          `DELETE FROM hits_by_${step} WHERE (${step}, scope, id) IN (
             SELECT ${step}, scope, id FROM hits_by_${step} WHERE ${step} < ?1
             ORDER BY ${step}, scope, id LIMIT ?2)`,
        )
      const pruneHours = prune('hour')
      const pruneDays = prune('day')
      const pruneVisits = db.prepare<null, [number, number]>(
        `DELETE FROM visits_by_day WHERE (scope, id, day) IN (
           SELECT scope, id, day FROM visits_by_day WHERE day < ?1
           ORDER BY day, scope, id LIMIT ?2)`,
      )
      return ({ now, max }: { now: number; max: number }): boolean => {
        const hours = pruneHours.run(oldestDay('hour', now) * HOURS_OF_DAY, max).changes
        const days = pruneDays.run(oldestDay('day', now), max).changes
        const visits = pruneVisits.run(oldestDay('day', now), max).changes
        return Math.max(hours, days, visits) >= max
      }
    },
  }),
}

/**
 * Epoch ms, `to` exclusive. Both are widened to whole hours or days (UTC) and narrowed to the range
 * that is kept: 100 days of hours, 400 days, nothing in the future.
 */
export interface SeriesQuery {
  from: number
  to: number
  step: Step
}

export interface Bucket {
  /** Epoch ms: when the UTC hour or day begins. */
  start: number
  count: number
}

/**
 * `committed`: the link's or account's whole count when the series was read; `imported`: the part
 * of it that has no dates.
 */
interface Series {
  counts: number[]
  committed: number
  imported: number
}

/** A link, some links of an account, or an account with the links that it has deleted. */
export type CountedLinks =
  | { linkId: number }
  | { linkIds: readonly number[] }
  | { accountId: number }
/** Links of one report. */
export const REPORT_LINKS_MAX = 500
/** Links of a report per call to the reader thread: other lists wait for about 3 ms. */
export const REPORT_LINKS_AT_ONCE = 100

/**
 * Bars of any length: `bounds` are the UTC hours at which they begin, ascending, and the end of the
 * last one.
 */
interface BarQuery {
  counted: CountedLinks
  bounds: readonly number[]
}

interface LinkDaysQuery {
  linkIds: readonly number[]
  days: number
  now: number
}

export const seriesScans = {
  /** A bar costs at most 25 one-row lookups a UTC day. */
  bars: scan((db) => {
    const whole = (sql: string) => db.prepare<{ count: number; imported: number }, [number]>(sql)
    const ofLink = whole('SELECT count, imported FROM hits WHERE link_id = ?')
    const ofAccount = whole('SELECT count, imported FROM account_hits WHERE account_id = ?')
    const ofLinks = db.prepare<{ count: number; imported: number }, [string]>(
      `SELECT coalesce(sum(count), 0) AS count, coalesce(sum(imported), 0) AS imported
       FROM hits WHERE link_id IN (SELECT value FROM json_each(?))`,
    )
    const wholeOf = (counted: CountedLinks) => {
      if ('linkId' in counted) return ofLink.get(counted.linkId)
      if ('accountId' in counted) return ofAccount.get(counted.accountId)
      return ofLinks.get(JSON.stringify(counted.linkIds))
    }
    const hitsOfHour = bucketFinder(db, 'hour')
    const hitsOfDay = bucketFinder(db, 'day')
    return ({ counted, bounds }: BarQuery): Series =>
      db.transaction(() => {
        const whole = wholeOf(counted)
        const counts = countBars(bounds, {
          ofHour: (hour) => hitsOfHour(hour, counted),
          ofDay: (day) => hitsOfDay(day, counted),
        })
        return { counts, committed: whole?.count ?? 0, imported: whole?.imported ?? 0 }
      })()
  }),

  /** The first kept UTC day with a hit, as its first hour; undefined if there is none. */
  firstHour: scan((db) => {
    const hitsOfDay = bucketFinder(db, 'day')
    return ({ counted, now }: { counted: CountedLinks; now: number }): number | undefined => {
      const current = dayOf(hourOf(now))
      for (let day = oldestDay('day', now); day <= current; day++) {
        if (hitsOfDay(day, counted) > 0) return day * HOURS_OF_DAY
      }
      return undefined
    }
  }),

  /** Committed hits of the last `days` UTC days, today last. Leaves out links without any. */
  linkDays: scan((db) => {
    // One statement for each day: the rows of a day are side by side.
    const linksOfDay = db.prepare<{ id: number; count: number }, [number, string]>(
      `SELECT id, count FROM hits_by_day
       WHERE day = ? AND scope = ${LINK} AND id IN (SELECT value FROM json_each(?))`,
    )
    return ({ linkIds, days, now }: LinkDaysQuery): Map<number, number[]> => {
      const ids = JSON.stringify(linkIds)
      const current = dayOf(hourOf(now))
      const found = new Map<number, number[]>()
      db.transaction(() => {
        for (let at = 0; at < days; at++) {
          for (const { id, count } of linksOfDay.all(current - days + 1 + at, ids)) {
            const counts = found.get(id) ?? new Array<number>(days).fill(0)
            counts[at] = count
            found.set(id, counts)
          }
        }
      })()
      return found
    }
  }),
}

/** Finds the hits of one hour or day; 0 without a row. */
function bucketFinder(db: Database, step: Step): (at: number, counted: CountedLinks) => number {
  const find = db.prepare<{ count: number }, [number, Scope, number]>(
    `SELECT count FROM hits_by_${step}
     WHERE ${step} = ? AND scope = ? AND id = ?`,
  )
  const sum = db.prepare<{ count: number | null }, [number, string]>(
    `SELECT sum(count) AS count FROM hits_by_${step} WHERE ${step} = ? AND scope = ${LINK}
       AND id IN (SELECT value FROM json_each(?))`,
  )
  return (at, counted) => {
    if ('linkIds' in counted) return sum.get(at, JSON.stringify(counted.linkIds))?.count ?? 0
    const row =
      'linkId' in counted
        ? find.get(at, LINK, counted.linkId)
        : find.get(at, ACCOUNT, counted.accountId)
    return row?.count ?? 0
  }
}

/** Counts of one link or account. Hours and days are those of UTC, from 1970. */
interface Counts {
  ofHour: (hour: number) => number
  ofDay: (day: number) => number
}

/**
 * Shorter bars show only hours: the hits of a day without hours would be a spike in one of them.
 */
const LONG_BAR_HOURS = 12

/**
 * Hits between each two `bounds`, which are hours in ascending order. A UTC day within one bar is
 * one lookup, every other day with hits is 25.
 *
 * Hits of a day that are in none of its hours belong to the bar with the day's noon: hours are kept
 * for a shorter time than days.
 */
export function countBars(bounds: readonly number[], { ofHour, ofDay }: Counts): number[] {
  const counts = Array<number>(Math.max(0, bounds.length - 1)).fill(0)
  const endOf = (bar: number) => bounds[bar + 1] ?? 0
  /** The bar of the last added hour: -1 before the first bar, `counts.length` after the last. */
  let bar = -1
  const moveTo = (hour: number) => {
    while (bar < counts.length && endOf(bar) <= hour) bar++
  }
  const add = (to: number, count: number) => {
    if (to >= 0 && to < counts.length) counts[to] = (counts[to] ?? 0) + count
  }

  const [first = 0] = bounds
  const end = bounds.at(-1) ?? 0
  for (let start = first - (first % HOURS_OF_DAY); start < end; start += HOURS_OF_DAY) {
    const total = ofDay(start / HOURS_OF_DAY)
    if (total === 0) continue
    moveTo(start)
    if (bar >= 0 && endOf(bar) >= start + HOURS_OF_DAY) {
      add(bar, total)
      continue
    }
    let rest = total
    let noonBar = -1
    for (let hour = start; hour < start + HOURS_OF_DAY; hour++) {
      const count = ofHour(hour)
      moveTo(hour)
      add(bar, count)
      rest -= count
      if (hour === start + HOURS_OF_DAY / 2) noonBar = bar
    }
    const isLong = endOf(noonBar) - (bounds[noonBar] ?? 0) >= LONG_BAR_HOURS
    if (rest > 0 && isLong) add(noonBar, rest)
  }
  return counts
}

interface HitSeriesOptions {
  data: { hits: ScanCalls<typeof seriesScans> }
  /** Current totals, pending hits included. */
  counts: { ofLink(id: number): number }
  clock: Clock
}

/** Bars per call to the reader thread: other lists wait for about 3 ms at most. */
const BARS_AT_ONCE = 100

interface Bars {
  counts: number[]
  total: number
  imported: number
}

/** Hits over time. */
export class HitSeries {
  readonly #options: HitSeriesOptions

  constructor(options: HitSeriesOptions) {
    this.#options = options
  }

  /**
   * The hits between each two `bounds`, which are UTC hours. A link's pending hits are in the bar
   * of the current hour, if there is one; those of an account are left out. `total`: of all
   * time; `imported`: those of them that have no date.
   */
  async bars(counted: CountedLinks, bounds: readonly number[]): Promise<Bars> {
    if ('linkIds' in counted) return this.#groupBars(counted.linkIds, bounds)
    const { clock } = this.#options
    const current = hourOf(clock())
    const { counts: all, total, imported } = await this.#read(counted, bounds, BARS_AT_ONCE)
    if ('accountId' in counted) return { counts: all, total, imported }
    // The link may have been deleted after the series was read.
    const pending = Math.max(0, this.#options.counts.ofLink(counted.linkId) - total)
    const last = all.length - 1
    const isOpen = current >= (bounds[last] ?? 0) && current < (bounds[last + 1] ?? 0)
    if (isOpen) all[last] = (all[last] ?? 0) + pending
    return { counts: all, total: total + pending, imported }
  }

  async #read(counted: CountedLinks, bounds: readonly number[], barsAtOnce: number): Promise<Bars> {
    const { data } = this.#options
    const bars: Bars = { counts: [], total: 0, imported: 0 }
    // Only the bar of the current hour can change meanwhile, and it is read last.
    for (let at = 0; at + 1 < bounds.length; at += barsAtOnce) {
      const part = bounds.slice(at, at + barsAtOnce + 1)
      const read = await data.hits.bars({ counted, bounds: part })
      bars.counts.push(...read.counts)
      bars.total = read.committed
      bars.imported = read.imported
    }
    return bars
  }

  /** Leaves out pending hits. */
  async #groupBars(linkIds: readonly number[], bounds: readonly number[]): Promise<Bars> {
    const sums: Bars = {
      counts: Array(Math.max(0, bounds.length - 1)).fill(0),
      total: 0,
      imported: 0,
    }
    for (let at = 0; at < linkIds.length; at += REPORT_LINKS_AT_ONCE) {
      const part = linkIds.slice(at, at + REPORT_LINKS_AT_ONCE)
      const barsAtOnce = Math.max(1, Math.floor(BARS_AT_ONCE / part.length))
      const read = await this.#read({ linkIds: part }, bounds, barsAtOnce)
      sums.counts = sums.counts.map((count, i) => count + (read.counts[i] ?? 0))
      sums.total += read.total
      sums.imported += read.imported
    }
    return sums
  }

  /** Like `linkDays`, for up to one page of links. */
  ofLinks(linkIds: readonly number[], days: number): Promise<ReadonlyMap<number, number[]>> {
    const { data, clock } = this.#options
    return data.hits.linkDays({ linkIds, days, now: clock() })
  }

  /** The first kept UTC day with a committed hit, as its first hour; undefined without hits. */
  firstHit(counted: CountedLinks): Promise<number | undefined> {
    const { data, clock } = this.#options
    return data.hits.firstHour({ counted, now: clock() })
  }

  /**
   * A bucket for every UTC hour or day, also for those without hits. Those of a link since its
   * first hit add up to its `hit_count`, if the series reaches the present.
   */
  async buckets(counted: CountedLinks, query: SeriesQuery): Promise<Bucket[]> {
    const starts = hoursOf(query, this.#options.clock())
    if (starts.length < 2) return []
    const { counts } = await this.bars(counted, starts)
    return counts.map((count, i) => ({ start: (starts[i] ?? 0) * HOUR, count }))
  }
}

/** The hours at which the buckets of a query begin, and the end of the last one. */
function hoursOf({ from, to, step }: SeriesQuery, now: number): number[] {
  const hours = STEP_MS[step] / HOUR
  const current = Math.floor(hourOf(now) / hours)
  const oldest = oldestDay(step, now) * (HOURS_OF_DAY / hours)
  const first = Math.max(Math.floor(from / STEP_MS[step]), oldest)
  const end = Math.min(Math.ceil(to / STEP_MS[step]), current + 1)
  return Array.from({ length: Math.max(0, end - first + 1) }, (_, i) => (first + i) * hours)
}
