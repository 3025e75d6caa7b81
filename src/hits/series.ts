import type { Database } from 'bun:sqlite'
import { HOUR } from '../lib/clock.ts'
import {
  ACCOUNT_COUNTS,
  type CountTables,
  dayOf,
  HOURS_OF_DAY,
  hourOf,
  LINK_COUNTS,
  oldestDay,
  oldestHour,
  span,
} from './marks.ts'

export type Step = 'hour' | 'day'

/**
 * Epoch ms, `to` exclusive; both are widened to whole hours or days (UTC) and narrowed to what is
 * kept: hours from 72 before the current one, 400 days, nothing after the current hour or day.
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

/** `committed`: the whole count of which this is the series, when it was read. */
export interface Series {
  buckets: Bucket[]
  committed: number
}

type Asked<Owner> = SeriesQuery & Owner & { now: number }

const HOURS: Record<Step, number> = { hour: 1, day: HOURS_OF_DAY }
export const STEP_MS: Record<Step, number> = { hour: HOUR, day: HOURS_OF_DAY * HOUR }

/** Runs on the reader thread: a series is some hundreds of rows. */
export function seriesReads(db: Database) {
  const ofLink = seriesReader(db, LINK_COUNTS)
  const ofAccount = seriesReader(db, ACCOUNT_COUNTS)
  return {
    /** A bucket for every hour or day, in order. A link without hits, or none, has zeros. */
    linkSeries: ({ linkId, ...query }: Asked<{ linkId: number }>): Series => ofLink(linkId, query),

    /** Hits of every link of the account, those deleted since included. */
    accountSeries: ({ accountId, ...query }: Asked<{ accountId: number }>): Series =>
      ofAccount(accountId, query),
  }
}

export type SeriesReads = ReturnType<typeof seriesReads>

interface CountMark {
  hour: number
  /** What was counted before that hour. */
  count: number
}

function seriesReader(db: Database, { counts, days, hours, id }: CountTables) {
  const count = db.prepare<{ count: number }, [number]>(
    `SELECT count FROM ${counts} WHERE ${id} = ?`,
  )
  const ofDays = db.prepare<CountMark, [number, number]>(
    `${span(days, 'day', '?2')}
     SELECT day * ${HOURS_OF_DAY} + first_hour AS hour, count FROM span CROSS JOIN ${days}
     ON day = at AND ${id} = ?1`,
  )
  const ofHours = db.prepare<CountMark, [number, number]>(
    `${span(hours, 'hour', '?2')}
     SELECT hour, count FROM span CROSS JOIN ${hours} ON hour = at AND ${id} = ?1`,
  )

  return (owner: number, query: SeriesQuery & { now: number }): Series => {
    const { first, end } = rangeOf(query)
    const length = HOURS[query.step]
    const { committed, marks } = db.transaction(() => {
      const marks = ofDays.all(owner, dayOf(first))
      if (query.step === 'hour') marks.push(...ofHours.all(owner, first))
      return { committed: count.get(owner)?.count ?? 0, marks }
    })()
    // An hour can have two marks: the first is the lower one.
    marks.sort((a, b) => a.hour - b.hour || a.count - b.count)

    let next = 0
    const before = (hour: number) => {
      while (next < marks.length && (marks[next] as CountMark).hour < hour) next++
      return marks[next]?.count ?? committed
    }
    const buckets: Bucket[] = []
    let from = before(first)
    for (let hour = first; hour < end; hour += length) {
      // Hits of a clock that was ahead belong to now.
      const to = hour + length > hourOf(query.now) ? committed : before(hour + length)
      buckets.push({ start: hour * HOUR, count: to - from })
      from = to
    }
    return { buckets, committed }
  }
}

/** In hours since 1970, `end` exclusive: whole steps, and none that is no longer kept. */
function rangeOf({ from, to, step, now }: SeriesQuery & { now: number }) {
  const length = HOURS[step]
  const oldest = step === 'hour' ? oldestHour(now) : oldestDay(now) * HOURS_OF_DAY
  const down = (hour: number) => Math.floor(hour / length) * length
  const last = down(hourOf(now)) + length
  return {
    first: Math.max(down(hourOf(from)), oldest),
    end: Math.min(down(Math.ceil(to / HOUR) + length - 1), last),
  }
}
