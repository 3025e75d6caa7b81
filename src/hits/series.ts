import type { Database } from 'bun:sqlite'
import { type ScanCalls, scan, write } from '../db/subject.ts'
import { type Clock, HOUR } from '../lib/clock.ts'
import {
  addHour,
  decodeHours,
  encodeHours,
  type HourCount,
  mergeHours,
  newestHour,
  sumOf,
} from './hours.ts'

/**
 * Hits per UTC hour and day. The newest hours are in the row that a flush changes in any case, that
 * of the link in `hits` or of the account in `account_hits`. Older ones have a row for each day, in
 * `hit_days`, in which those of a link are side by side.
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
export type Scope = typeof LINK | typeof ACCOUNT

/**
 * A row has hours of one block of so many days, that of its newest hour. So the days of a link that
 * is rarely followed are stored side by side by one write.
 */
const BLOCK_DAYS = 4
const blockOf = (hour: number): number => Math.floor(dayOf(hour) / BLOCK_DAYS)

/**
 * Adds hits of an hour to the hours of a row in `hits` or `account_hits`. Returns the new value of
 * its column `hours`. Which row has which hour depends on the hits only, not on their order: all
 * hosts of a cluster have the same rows.
 */
export function hourKeeper(db: Database) {
  const addToDays = dayAdder(db)
  return (scope: Scope, id: number, stored: Uint8Array | null, hour: number, count: number) => {
    const newest = newestHour(stored)
    if (stored && newest !== undefined && blockOf(newest) !== blockOf(hour)) {
      // The clock was ahead, or has been set back.
      if (hour < newest) {
        addToDays(scope, id, [[hour, count]])
        return stored
      }
      addToDays(scope, id, decodeHours(stored))
      return encodeHours([[hour, count]])
    }
    return addHour(stored, hour, count)
  }
}

function dayAdder(db: Database) {
  const find = db.prepare<{ hours: Uint8Array | null }, [Scope, number, number]>(
    'SELECT hours FROM hit_days WHERE scope = ? AND id = ? AND day = ?',
  )
  const add = db.prepare<null, [Scope, number, number, number, Uint8Array]>(
    `INSERT INTO hit_days (scope, id, day, count, hours) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT DO UPDATE SET count = count + ?4, hours = ?5`,
  )
  return (scope: Scope, id: number, hours: readonly HourCount[]): void => {
    for (const [day, ofDay] of daysOf(hours)) {
      const base = day * HOURS_OF_DAY
      const stored = decodeHours(find.get(scope, id, day)?.hours, base)
      add.run(scope, id, day, sumOf(ofDay), encodeHours(mergeHours(stored, ofDay), base))
    }
  }
}

const daysOf = (hours: readonly HourCount[]): Map<number, HourCount[]> =>
  Map.groupBy(hours, ([hour]) => dayOf(hour))

/** The first UTC day of which hours or days are kept at `now`. */
export const oldestDay = (step: Step, now: number): number =>
  dayOf(hourOf(now)) - (DAYS_KEPT[step] - 1)

/** Where a sweep over all links and accounts goes on. */
interface SweepPosition {
  scope: number
  id: number
}

interface Sweep {
  now: number
  max: number
  /** Absent: the sweep begins. */
  after?: SweepPosition | undefined
}

/** Rows of older days lose their hours in an earlier sweep, unless there was none for so long. */
const SWEPT_DAYS = 30

export const seriesWrites = {
  /**
   * Removes the expired days and hours of the next `max` links and accounts. Returns where the
   * sweep goes on; undefined at its end.
   */
  prune: write((db) => {
    const next = db.prepare<SweepPosition, [number, number]>(
      'SELECT scope, id FROM hit_days WHERE (scope, id) > (?, ?) ORDER BY scope, id LIMIT 1',
    )
    const removeDays = db.prepare<null, [number, number, number]>(
      'DELETE FROM hit_days WHERE scope = ? AND id = ? AND day < ?',
    )
    const removeHours = db.prepare<null, [number, number, number, number]>(
      `UPDATE hit_days SET hours = NULL
       WHERE scope = ? AND id = ? AND day >= ? AND day < ? AND hours IS NOT NULL`,
    )
    const start: SweepPosition = { scope: LINK, id: 0 }
    return ({ now, max, after }: Sweep): SweepPosition | undefined => {
      const hoursFrom = oldestDay('hour', now)
      let at = after ?? start
      for (let n = 0; n < max; n++) {
        const found = next.get(at.scope, at.id)
        if (!found) return undefined
        at = found
        removeDays.run(at.scope, at.id, oldestDay('day', now))
        removeHours.run(at.scope, at.id, hoursFrom - SWEPT_DAYS, hoursFrom)
      }
      return at
    }
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
  /** Epoch ms: hours of earlier days are kept for a shorter time. */
  now: number
}

interface LinkDaysQuery {
  linkIds: readonly number[]
  days: number
  now: number
}

export const seriesScans = {
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
    const read = dayReader(db)
    return ({ counted, bounds, now }: BarQuery): Series =>
      db.transaction(() => {
        const whole = wholeOf(counted)
        const [from, to] = [dayOf(bounds[0] ?? 0), dayOf((bounds.at(-1) ?? 0) - 1) + 1]
        const days = rowsOf(counted).flatMap(([scope, id]) => read(scope, id, from, to))
        const counts = countBars(bounds, countsOf(days, now))
        return { counts, committed: whole?.count ?? 0, imported: whole?.imported ?? 0 }
      })()
  }),

  /** The first kept UTC day with a hit, as its first hour; undefined if there is none. */
  firstHour: scan((db) => {
    const read = dayReader(db, 'LIMIT 1')
    return ({ counted, now }: { counted: CountedLinks; now: number }): number | undefined => {
      const [from, to] = [oldestDay('day', now), dayOf(hourOf(now)) + 1]
      const readAll = () => rowsOf(counted).flatMap(([scope, id]) => read(scope, id, from, to))
      const days = db.transaction(readAll)()
      const first = days.reduce((least, { day }) => Math.min(least, day), to)
      return first === to ? undefined : first * HOURS_OF_DAY
    }
  }),

  /** Committed hits of the last `days` UTC days, today last. Leaves out links without any. */
  linkDays: scan((db) => {
    const read = dayReader(db)
    return ({ linkIds, days, now }: LinkDaysQuery): Map<number, number[]> => {
      const end = dayOf(hourOf(now)) + 1
      const found = new Map<number, number[]>()
      db.transaction(() => {
        for (const id of linkIds) {
          for (const { day, count } of read(LINK, id, end - days, end)) {
            const counts = found.get(id) ?? new Array<number>(days).fill(0)
            const at = day - end + days
            counts[at] = (counts[at] ?? 0) + count
            found.set(id, counts)
          }
        }
      })()
      return found
    }
  }),
}

/** Hits of a UTC day. One day may have several of them. */
export interface DayCount {
  day: number
  count: number
  /** The hits by hour, as far as they are known. */
  hours: () => readonly HourCount[]
}

/**
 * Reads the hits of a link or account on UTC days, `to` exclusive, inside a transaction of the
 * caller: a flush may move hours from one row to another.
 */
export function dayReader(db: Database, limit = '') {
  const days = db.prepare<
    { day: number; count: number; hours: Uint8Array | null },
    [Scope, number, number, number]
  >(
    `SELECT day, count, hours FROM hit_days
     WHERE scope = ? AND id = ? AND day >= ? AND day < ? AND count > 0 ORDER BY day ${limit}`,
  )
  const newest = (table: string, id: string) =>
    db.prepare<{ hours: Uint8Array | null }, [number]>(`SELECT hours FROM ${table} WHERE ${id} = ?`)
  const newestOf = [newest('hits', 'link_id'), newest('account_hits', 'account_id')] as const
  return (scope: Scope, id: number, from: number, to: number): DayCount[] => {
    const found: DayCount[] = days.all(scope, id, from, to).map(({ day, count, hours }) => ({
      day,
      count,
      hours: () => decodeHours(hours, day * HOURS_OF_DAY),
    }))
    for (const [day, hours] of daysOf(decodeHours(newestOf[scope].get(id)?.hours))) {
      if (day >= from && day < to) found.push({ day, count: sumOf(hours), hours: () => hours })
    }
    return found
  }
}

/** The rows of what is counted. */
export function rowsOf(counted: CountedLinks): [Scope, id: number][] {
  if ('linkIds' in counted) return counted.linkIds.map((id) => [LINK, id])
  return ['linkId' in counted ? [LINK, counted.linkId] : [ACCOUNT, counted.accountId]]
}

/** The first UTC hour of which hours are known at `now`. */
export const firstHourKept = (now: number): number => oldestDay('hour', now) * HOURS_OF_DAY

function countsOf(days: readonly DayCount[], now: number): Counts {
  const byDay = Map.groupBy(days, ({ day }) => day)
  const byHour = new Map<number, number>()
  const unpacked = new Set<number>()
  const unpack = (day: number) => {
    unpacked.add(day)
    for (const [hour, count] of (byDay.get(day) ?? []).flatMap((one) => one.hours())) {
      byHour.set(hour, (byHour.get(hour) ?? 0) + count)
    }
  }
  const kept = firstHourKept(now)
  return {
    ofDay: (day) => byDay.get(day)?.reduce((sum, { count }) => sum + count, 0) ?? 0,
    ofHour(hour) {
      if (hour < kept) return 0
      if (!unpacked.has(dayOf(hour))) unpack(dayOf(hour))
      return byHour.get(hour) ?? 0
    },
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
 * Hits between each two `bounds`, which are hours in ascending order.
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
    const { data, clock } = this.#options
    const bars: Bars = { counts: [], total: 0, imported: 0 }
    const now = clock()
    // Only the bar of the current hour can change meanwhile, and it is read last.
    for (let at = 0; at + 1 < bounds.length; at += barsAtOnce) {
      const part = bounds.slice(at, at + barsAtOnce + 1)
      const read = await data.hits.bars({ counted, bounds: part, now })
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
