import type { Database } from 'bun:sqlite'
import { HOUR } from '../lib/clock.ts'

/**
 * What makes a series out of counts that only grow. Before the first hit of an hour is added to a
 * count, a mark keeps what the count was: hits between two marks are their difference, so a series
 * always adds up to its count. The first mark of a UTC day is kept in a table of days, later ones
 * of the same day in a table of hours, and each table is pruned from its old end.
 */

export const HOURS_OF_DAY = 24
/** Whole hours before the current one that can be told apart. */
export const HOURS_KEPT = 72
/** UTC days that can be told apart, the current one included. */
export const DAYS_KEPT = 400

/** Hours since 1970 began. */
export const hourOf = (now: number): number => Math.floor(now / HOUR)
export const dayOf = (hour: number): number => Math.floor(hour / HOURS_OF_DAY)

/** A count of each link, or of each account, and the marks that belong to it. */
export interface CountTables {
  counts: string
  days: string
  hours: string
  /** The column that says whose count it is. */
  id: string
}

export const LINK_COUNTS: CountTables = {
  counts: 'hits',
  days: 'hit_days',
  hours: 'hit_hours',
  id: 'link_id',
}
export const ACCOUNT_COUNTS: CountTables = {
  counts: 'account_hits',
  days: 'account_hit_days',
  hours: 'account_hit_hours',
  id: 'account_id',
}
export const ALL_COUNTS: readonly CountTables[] = [LINK_COUNTS, ACCOUNT_COUNTS]

/** Writes marks. A second one for the same hour changes nothing that a series says. */
export function marker(db: Database, { days, hours, id }: CountTables) {
  const inDays = db.prepare<null, [number, number, number, number]>(
    `INSERT INTO ${days} (day, ${id}, first_hour, count) VALUES (?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
  )
  const inHours = db.prepare<null, [number, number, number]>(
    `INSERT INTO ${hours} (hour, ${id}, count) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
  )
  return (owner: number, hour: number, count: number): void => {
    const day = dayOf(hour)
    const added = inDays.run(day, owner, hour - day * HOURS_OF_DAY, count)
    if (added.changes === 0) inHours.run(hour, owner, count)
  }
}

/** Removes a count and its marks. */
export function countRemover(db: Database, { counts, days, hours, id }: CountTables) {
  const statements = [
    `DELETE FROM ${counts} WHERE ${id} = ?`,
    `${span(days, 'day')} DELETE FROM ${days} WHERE day IN span AND ${id} = ?`,
    `${span(hours, 'hour')} DELETE FROM ${hours} WHERE hour IN span AND ${id} = ?`,
  ].map((sql) => db.prepare<null, [number]>(sql))
  return (owner: number): void => {
    for (const statement of statements) statement.run(owner)
  }
}

/**
 * Every value of the leading column: the few marks of one owner are found by looking at each, and
 * the order of the tables stays that of time, in which they are written and pruned.
 */
export const span = (table: string, column: 'day' | 'hour', from = '0') =>
  `WITH RECURSIVE span(at) AS (
     SELECT max(min(${column}), ${from}) FROM ${table}
     UNION ALL SELECT at + 1 FROM span WHERE at < (SELECT max(${column}) FROM ${table})
   )`

/** Takes the clock back to `hour`: what was counted in later ones becomes its hits. */
export function rewind(db: Database, hour: number): void {
  const day = dayOf(hour)
  for (const { days, hours, id } of ALL_COUNTS) {
    const laterDays = `day >= ?1 AND day * ${HOURS_OF_DAY} + first_hour > ?2`
    const firstLater = `SELECT ${id}, min(count) AS count FROM (
        SELECT ${id}, count FROM ${days} WHERE ${laterDays}
        UNION ALL SELECT ${id}, count FROM ${hours} WHERE hour > ?2
      ) WHERE true GROUP BY ${id}`
    db.query(
      `INSERT INTO ${hours} (hour, ${id}, count) SELECT ?2, * FROM (${firstLater}) WHERE ?1
       ON CONFLICT DO NOTHING`,
    ).run(day, hour)
    db.query(
      `INSERT INTO ${days} (day, first_hour, ${id}, count)
       SELECT ?1, ?2 % ${HOURS_OF_DAY}, * FROM (${firstLater}) WHERE true
       ON CONFLICT DO UPDATE SET first_hour = excluded.first_hour
       WHERE first_hour > excluded.first_hour`,
    ).run(day, hour)
    db.query(`DELETE FROM ${days} WHERE ${laterDays}`).run(day, hour)
    db.query(`DELETE FROM ${hours} WHERE hour > ?`).run(hour)
  }
}

/** Which ids have their mark of the current hour, and a number beside each. */
export class MarkedIds {
  readonly #slots: number
  #ids: Uint32Array
  #values: Uint32Array

  /** `slots`, a power of two, bounds what is remembered: one id takes another's place. */
  constructor(slots: number) {
    this.#slots = slots
    this.#ids = new Uint32Array(slots)
    this.#values = new Uint32Array(slots)
  }

  /** 0 when it is not known. */
  find(id: number): number {
    const slot = id & (this.#slots - 1)
    return this.#ids[slot] === id ? (this.#values[slot] as number) : 0
  }

  set(id: number, value: number): void {
    const slot = id & (this.#slots - 1)
    this.#ids[slot] = id
    this.#values[slot] = value
  }

  clear(): void {
    // New arrays and not zeros written: memory that is never touched takes none.
    this.#ids = new Uint32Array(this.#slots)
    this.#values = new Uint32Array(this.#slots)
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function markWrites(db: Database) {
  const pruners = ALL_COUNTS.flatMap((tables) => [
    { last: oldestDay, remove: pruner(db, tables.days, 'day', tables.id) },
    { last: oldestHour, remove: pruner(db, tables.hours, 'hour', tables.id) },
  ])
  return {
    /**
     * Removes marks that are no longer kept, at most `most` of each table. Returns whether others
     * may be left.
     */
    pruneMarks({ now, most }: { now: number; most: number }): boolean {
      let left = false
      for (const { last, remove } of pruners) if (remove(last(now), most)) left = true
      return left
    },
  }
}

export type MarkWrites = ReturnType<typeof markWrites>

/** The first hour, and the first day, of which `now` still sees the marks. */
export const oldestHour = (now: number): number => hourOf(now) - HOURS_KEPT
export const oldestDay = (now: number): number => dayOf(hourOf(now)) - (DAYS_KEPT - 1)

function pruner(db: Database, table: string, column: 'day' | 'hour', id: string) {
  const find = db.prepare<{ at: number; owner: number }, [number, number]>(
    `SELECT ${column} AS at, ${id} AS owner FROM ${table} WHERE ${column} < ?
     ORDER BY ${column}, ${id} LIMIT 1 OFFSET ?`,
  )
  const removeTo = db.prepare<null, [number, number]>(
    `DELETE FROM ${table} WHERE (${column}, ${id}) <= (?, ?)`,
  )
  const removeOld = db.prepare<null, [number]>(`DELETE FROM ${table} WHERE ${column} < ?`)
  return (oldest: number, most: number): boolean => {
    const last = find.get(oldest, most - 1)
    if (last) removeTo.run(last.at, last.owner)
    else removeOld.run(oldest)
    return last !== null
  }
}
