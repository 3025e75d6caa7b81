import type { Database } from 'bun:sqlite'
import { type Clock, HOUR, MINUTE } from '../lib/clock.ts'
import type { Caller } from '../lib/thread.ts'

/**
 * Hits per UTC hour and day, in buckets: one row per hour (or day) and link or account with hits in
 * it. Rows are ordered by time: a flush writes the rows of its hour side by side, and pruning
 * removes the oldest from the front. `dimension` is empty for all hits; a value such as `device=tv`
 * would count a part of them in the same table.
 */

export type Step = 'hour' | 'day'

export const HOURS_OF_DAY = 24
/** Whole hours before the current one that are kept. */
export const HOURS_KEPT = 72
/** UTC days that are kept, the current one included. */
export const DAYS_KEPT = 400

export const STEP_MS: Record<Step, number> = { hour: HOUR, day: HOURS_OF_DAY * HOUR }

/** Hours since 1970 began. */
export const hourOf = (now: number): number => Math.floor(now / HOUR)
export const dayOf = (hour: number): number => Math.floor(hour / HOURS_OF_DAY)

/** Whose hits a row counts: its `id` is a link's or an account's. */
export const LINK = 0
export const ACCOUNT = 1
type Scope = typeof LINK | typeof ACCOUNT

interface BucketTable {
  table: 'hits_by_hour' | 'hits_by_day'
  column: Step
}

const BY_HOUR: BucketTable = { table: 'hits_by_hour', column: 'hour' }
const BY_DAY: BucketTable = { table: 'hits_by_day', column: 'day' }

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

/** The first hour or day that is kept at `now`, and the current one. */
function keptRange(step: Step, now: number): { oldest: number; current: number } {
  const hour = hourOf(now)
  if (step === 'hour') return { oldest: hour - HOURS_KEPT, current: hour }
  return { oldest: dayOf(hour) - (DAYS_KEPT - 1), current: dayOf(hour) }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function bucketWrites(db: Database) {
  const remover = ({ table, column }: BucketTable) => {
    const remove = db.prepare<null, [number, number]>(
      `DELETE FROM ${table} WHERE (${column}, scope, id, dimension) IN (
         SELECT ${column}, scope, id, dimension FROM ${table} WHERE ${column} < ?1
         ORDER BY ${column}, scope, id, dimension LIMIT ?2)`,
    )
    return (now: number, max: number) => remove.run(keptRange(column, now).oldest, max).changes
  }
  const pruneHours = remover(BY_HOUR)
  const pruneDays = remover(BY_DAY)
  return {
    /** Removes at most `max` expired rows of each table. Returns whether more may be left. */
    pruneBuckets({ now, max }: { now: number; max: number }): boolean {
      return Math.max(pruneHours(now, max), pruneDays(now, max)) >= max
    },
  }
}

export type BucketWrites = ReturnType<typeof bucketWrites>

const PRUNE_INTERVAL_MS = 10 * MINUTE
/** Rows of each table per transaction: another write waits about 10 ms at most. */
const PRUNED_MAX = 4000

interface PrunerOptions {
  writer: Caller<BucketWrites>
  clock: Clock
}

/** Removes expired buckets while no other write waits. */
export class BucketPruner {
  readonly #options: PrunerOptions
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: PrunerOptions) {
    this.#options = options
    void this.#pruneRepeatedly()
  }

  /** Removes everything that has expired by now. Throws if the disk refuses. */
  async prune(): Promise<void> {
    const { writer, clock } = this.#options
    const command = { now: clock(), max: PRUNED_MAX }
    let isMoreLeft = true
    while (isMoreLeft && !this.#isClosed) {
      isMoreLeft = await writer.call('pruneBuckets', command, { background: true })
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #pruneRepeatedly(): Promise<void> {
    // After an error the next interval retries: expired buckets do no harm.
    await this.prune().catch(() => {})
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#pruneRepeatedly(), PRUNE_INTERVAL_MS)
  }
}

/**
 * Epoch ms, `to` exclusive. Both are widened to whole hours or days (UTC) and narrowed to the range
 * that is kept: 72 hours before the current one, 400 days, nothing in the future.
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
interface Series {
  buckets: Bucket[]
  committed: number
}

type QueryAt = SeriesQuery & { now: number }

interface LinkDaysQuery {
  linkIds: readonly number[]
  days: number
  now: number
}

/** Runs on the reader thread: a series takes some hundred one-row lookups. */
export function seriesReads(db: Database) {
  const count = (sql: string) => db.prepare<{ count: number }, [number]>(sql)
  const ofLink = count('SELECT count FROM hits WHERE link_id = ?')
  const ofAccount = count('SELECT count FROM account_hits WHERE account_id = ?')
  const finder = ({ table, column }: BucketTable) =>
    db.prepare<{ count: number }, [number, Scope, number]>(
      `SELECT count FROM ${table} WHERE ${column} = ? AND scope = ? AND id = ? AND dimension = ''`,
    )
  const inBucket = { hour: finder(BY_HOUR), day: finder(BY_DAY) }
  // One statement for each day: the rows of a day are side by side.
  const ofDay = db.prepare<{ id: number; count: number }, [number, string]>(
    `SELECT id, count FROM hits_by_day
     WHERE day = ? AND scope = ${LINK} AND id IN (SELECT value FROM json_each(?))
       AND dimension = ''`,
  )

  const read = (scope: Scope, id: number, { from, to, step, now }: QueryAt): Series => {
    const length = STEP_MS[step]
    const { oldest, current } = keptRange(step, now)
    const first = Math.max(Math.floor(from / length), oldest)
    const end = Math.min(Math.ceil(to / length), current + 1)
    return db.transaction(() => {
      const buckets: Bucket[] = []
      for (let at = first; at < end; at++) {
        const found = inBucket[step].get(at, scope, id)
        buckets.push({ start: at * length, count: found?.count ?? 0 })
      }
      const whole = scope === LINK ? ofLink : ofAccount
      return { buckets, committed: whole.get(id)?.count ?? 0 }
    })()
  }

  return {
    /** A bucket for every hour or day, in order. A link without hits has zeros. */
    linkSeries: ({ linkId, ...query }: QueryAt & { linkId: number }): Series =>
      read(LINK, linkId, query),

    /** Hits of every link of the account, deleted ones included. */
    accountSeries: ({ accountId, ...query }: QueryAt & { accountId: number }): Series =>
      read(ACCOUNT, accountId, query),

    /** Committed hits of the last `days` UTC days, today last. Leaves out links without any. */
    linkDays({ linkIds, days, now }: LinkDaysQuery): Map<number, number[]> {
      const ids = JSON.stringify(linkIds)
      const { current } = keptRange('day', now)
      const found = new Map<number, number[]>()
      db.transaction(() => {
        for (let at = 0; at < days; at++) {
          for (const { id, count } of ofDay.all(current - days + 1 + at, ids)) {
            const counts = found.get(id) ?? new Array<number>(days).fill(0)
            counts[at] = count
            found.set(id, counts)
          }
        }
      })()
      return found
    },
  }
}

export type SeriesReads = ReturnType<typeof seriesReads>

interface HitSeriesOptions {
  reader: Caller<SeriesReads>
  /** Current totals, pending hits included. */
  counts: { of(linkIds: readonly number[]): ReadonlyMap<number, number> }
  clock: Clock
}

/** Hits per UTC hour or day. Every array has a bucket for each, also for those without hits. */
export class HitSeries {
  readonly #options: HitSeriesOptions

  constructor(options: HitSeriesOptions) {
    this.#options = options
  }

  /**
   * Pending hits are in the current bucket: if the series reaches it, the buckets since the link's
   * first hit add up to its `hit_count`.
   */
  async ofLink(linkId: number, query: SeriesQuery): Promise<Bucket[]> {
    const { reader, counts, clock } = this.#options
    const now = clock()
    const { buckets, committed } = await reader.call('linkSeries', { ...query, linkId, now })
    const last = buckets.at(-1)
    const pending = (counts.of([linkId]).get(linkId) ?? 0) - committed
    // Negative: the link was deleted after the series was read.
    if (last && pending > 0 && now < last.start + STEP_MS[query.step]) last.count += pending
    return buckets
  }

  /** As `linkDays`, of up to a page of links in one read. */
  ofLinks(linkIds: readonly number[], days: number): Promise<ReadonlyMap<number, number[]>> {
    const { reader, clock } = this.#options
    return reader.call('linkDays', { linkIds, days, now: clock() })
  }

  /** Of all the account's links, deleted ones included. Excludes pending hits. */
  async ofAccount(accountId: number, query: SeriesQuery): Promise<Bucket[]> {
    const { reader, clock } = this.#options
    const { buckets } = await reader.call('accountSeries', { ...query, accountId, now: clock() })
    return buckets
  }
}
