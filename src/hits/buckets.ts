import type { Database } from 'bun:sqlite'
import { HOUR } from '../lib/clock.ts'

/**
 * Hits of each UTC hour and day: one row per hour (or day) and link or account that had hits in it.
 * The rows lie in the order of time: a flush writes those of its hour side by side, and the oldest
 * are removed from the front. `dimension` is empty for the sum of all hits; a name like `device=tv`
 * would count a part of them beside it.
 */

export const HOURS_OF_DAY = 24
/** Whole hours before the current one that are kept. */
export const HOURS_KEPT = 72
/** UTC days that are kept, the current one included. */
export const DAYS_KEPT = 400

/** Hours since 1970 began. */
export const hourOf = (now: number): number => Math.floor(now / HOUR)
export const dayOf = (hour: number): number => Math.floor(hour / HOURS_OF_DAY)

/** Whose hits a row counts: `id` is a link's or an account's. */
export const LINK = 0
export const ACCOUNT = 1
export type Scope = typeof LINK | typeof ACCOUNT

interface BucketTable {
  table: 'hits_by_hour' | 'hits_by_day'
  column: 'hour' | 'day'
}

export const BY_HOUR: BucketTable = { table: 'hits_by_hour', column: 'hour' }
export const BY_DAY: BucketTable = { table: 'hits_by_day', column: 'day' }

type AddToBuckets = (scope: Scope, id: number, hour: number, count: number) => void

/** Adds hits of one link or account to its hour and its day. */
export function bucketAdder(db: Database): AddToBuckets {
  const upsert = ({ table, column }: BucketTable) =>
    db.prepare<null, [number, Scope, number, number]>(
      `INSERT INTO ${table} (${column}, scope, id, dimension, count) VALUES (?1, ?2, ?3, '', ?4)
       ON CONFLICT DO UPDATE SET count = count + ?4`,
    )
  const addToHour = upsert(BY_HOUR)
  const addToDay = upsert(BY_DAY)
  return (scope, id, hour, count) => {
    addToHour.run(hour, scope, id, count)
    addToDay.run(dayOf(hour), scope, id, count)
  }
}

/** The first hour, and the first day, that is kept at `now`. */
export const oldestHour = (now: number): number => hourOf(now) - HOURS_KEPT
export const oldestDay = (now: number): number => dayOf(hourOf(now)) - (DAYS_KEPT - 1)

/** Runs on the writer thread, inside the transaction of its batch. */
export function bucketWrites(db: Database) {
  const remover = ({ table, column }: BucketTable) =>
    db.prepare<null, [number, number]>(
      `DELETE FROM ${table} WHERE (${column}, scope, id, dimension) IN (
         SELECT ${column}, scope, id, dimension FROM ${table} WHERE ${column} < ?1
         ORDER BY ${column}, scope, id, dimension LIMIT ?2)`,
    )
  const removeHours = remover(BY_HOUR)
  const removeDays = remover(BY_DAY)
  return {
    /**
     * Removes rows that are no longer kept, at most `most` of each table. Returns whether others
     * may be left.
     */
    pruneBuckets({ now, most }: { now: number; most: number }): boolean {
      const hours = removeHours.run(oldestHour(now), most).changes
      const days = removeDays.run(oldestDay(now), most).changes
      return Math.max(hours, days) >= most
    },
  }
}

export type BucketWrites = ReturnType<typeof bucketWrites>
