import { perConnection } from '../db/subject.ts'
import { MINUTE } from '../lib/clock.ts'
import type { CountedLinks } from './series.ts'

/** Minutes that are remembered, the current one included. */
export const RECENT_MINUTES = 30
/** Links and accounts with hits; of more, the longest without hits are forgotten. */
const OWNERS_MAX = 10_000

interface Row {
  /** The newest minute, since 1970. */
  minute: number
  /** A ring: minute `m` is at `m % RECENT_MINUTES`. */
  counts: Uint32Array
}

/**
 * Hits per minute of the last half hour, in memory only: a restart begins anew. Runs on the writer
 * thread, which counts the hits of all hosts.
 */
export class RecentHits {
  readonly #rows = new Map<number, Row>()

  add(counted: CountedOne, count: number, now: number): void {
    const key = keyOf(counted)
    const minute = Math.floor(now / MINUTE)
    const row = this.#rows.get(key) ?? { minute, counts: new Uint32Array(RECENT_MINUTES) }
    forget(row, minute)
    const at = minute % RECENT_MINUTES
    if (minute > row.minute - RECENT_MINUTES) row.counts[at] = (row.counts[at] ?? 0) + count
    // The most recently followed ones are last.
    this.#rows.delete(key)
    this.#rows.set(key, row)
    if (this.#rows.size <= OWNERS_MAX) return
    const [oldest] = this.#rows.keys()
    if (oldest !== undefined) this.#rows.delete(oldest)
  }

  /** Oldest minute first, the current one last. */
  perMinute({ counted, now }: { counted: CountedLinks; now: number }): number[] {
    const each = 'linkIds' in counted ? counted.linkIds.map((linkId) => ({ linkId })) : [counted]
    const rows = each.flatMap((one) => this.#rows.get(keyOf(one)) ?? [])
    const minute = Math.floor(now / MINUTE)
    return Array.from({ length: RECENT_MINUTES }, (_, i) => {
      const wanted = minute - RECENT_MINUTES + 1 + i
      return rows.reduce((sum, row) => sum + countAt(row, wanted), 0)
    })
  }
}

/** Recent hits that the writer thread has counted on its connection. */
export const recentHits = perConnection(() => new RecentHits())

type CountedOne = Exclude<CountedLinks, { linkIds: readonly number[] }>

/** Link ids are positive, and so are those of accounts. */
const keyOf = (counted: CountedOne): number =>
  'linkId' in counted ? counted.linkId : -counted.accountId

/** Hits in a minute since 1970; 0 for one that is forgotten. */
const countAt = (row: Row, minute: number): number =>
  minute <= row.minute && minute > row.minute - RECENT_MINUTES
    ? (row.counts[minute % RECENT_MINUTES] ?? 0)
    : 0

/** Clears the minutes between the newest one and `minute`. */
function forget(row: Row, minute: number): void {
  const steps = Math.min(RECENT_MINUTES, minute - row.minute)
  for (let step = 1; step <= steps; step++) row.counts[(row.minute + step) % RECENT_MINUTES] = 0
  row.minute = Math.max(row.minute, minute)
}
