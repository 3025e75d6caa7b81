import type { Database } from 'bun:sqlite'
import { HOUR } from '../lib/clock.ts'
import {
  ACCOUNT,
  BY_DAY,
  BY_HOUR,
  dayOf,
  HOURS_OF_DAY,
  hourOf,
  LINK,
  oldestDay,
  oldestHour,
  type Scope,
} from './buckets.ts'

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

/** `committed`: the link's or account's whole count when the series was read. */
export interface Series {
  buckets: Bucket[]
  committed: number
}

type Asked<Owner> = SeriesQuery & Owner & { now: number }

export const STEP_MS: Record<Step, number> = { hour: HOUR, day: HOURS_OF_DAY * HOUR }

/** Runs on the reader thread: a series is some hundreds of one-row look-ups. */
export function seriesReads(db: Database) {
  const count = (sql: string) => db.prepare<{ count: number }, [number]>(sql)
  const ofLink = count('SELECT count FROM hits WHERE link_id = ?')
  const ofAccount = count('SELECT count FROM account_hits WHERE account_id = ?')
  const finder = ({ table, column }: typeof BY_HOUR) =>
    db.prepare<{ count: number }, [number, Scope, number]>(
      `SELECT count FROM ${table} WHERE ${column} = ? AND scope = ? AND id = ? AND dimension = ''`,
    )
  const inBucket = { hour: finder(BY_HOUR), day: finder(BY_DAY) }

  const read = (scope: Scope, id: number, query: SeriesQuery & { now: number }): Series => {
    const { first, end } = rangeOf(query)
    const { step } = query
    return db.transaction(() => {
      const buckets: Bucket[] = []
      for (let at = first; at < end; at++) {
        const found = inBucket[step].get(at, scope, id)
        buckets.push({ start: at * STEP_MS[step], count: found?.count ?? 0 })
      }
      const whole = scope === LINK ? ofLink : ofAccount
      return { buckets, committed: whole.get(id)?.count ?? 0 }
    })()
  }

  return {
    /** A bucket for every hour or day, in order. A link without hits has zeros. */
    linkSeries: ({ linkId, ...query }: Asked<{ linkId: number }>): Series =>
      read(LINK, linkId, query),

    /** Hits of every link of the account, those deleted since included. */
    accountSeries: ({ accountId, ...query }: Asked<{ accountId: number }>): Series =>
      read(ACCOUNT, accountId, query),
  }
}

export type SeriesReads = ReturnType<typeof seriesReads>

/** In hours or days since 1970, `end` exclusive: none that is no longer kept, and none ahead. */
function rangeOf({ from, to, step, now }: SeriesQuery & { now: number }) {
  const length = STEP_MS[step]
  const oldest = step === 'hour' ? oldestHour(now) : oldestDay(now)
  const current = step === 'hour' ? hourOf(now) : dayOf(hourOf(now))
  return {
    first: Math.max(Math.floor(from / length), oldest),
    end: Math.min(Math.ceil(to / length), current + 1),
  }
}
