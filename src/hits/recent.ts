import { perConnection } from '../db/subject.ts'
import { MINUTE } from '../lib/clock.ts'
import type { CountedLinks } from './series.ts'

/** Minutes that are remembered, the current one included. */
export const RECENT_MINUTES = 30
/** Links and accounts of a generation. */
const GENERATION_MAX = 5000

/** Most links have hits in one minute only: others have a ring, with minute `m` at `m % 30`. */
interface Row {
  /** The newest minute, since 1970. */
  minute: number
  /** Hits of the newest minute. */
  count: number
  /** Those of the other minutes. */
  ring: Uint32Array | undefined
}

/**
 * Hits per minute of the last half hour, in memory only: a restart begins anew. Runs on the writer
 * thread, which counts the hits of all hosts. Rows are in two generations: when the younger one is
 * full, the older one, whose links had no hits meanwhile, is forgotten.
 */
export class RecentHits {
  #young = new Map<number, Row>()
  #old: ReadonlyMap<number, Row> = new Map()

  add(counted: CountedOne, count: number, now: number): void {
    const key = keyOf(counted)
    const minute = Math.floor(now / MINUTE)
    let row = this.#young.get(key)
    if (!row) {
      row = this.#old.get(key) ?? { minute, count: 0, ring: undefined }
      if (this.#young.size === GENERATION_MAX) {
        this.#old = this.#young
        this.#young = new Map()
      }
      this.#young.set(key, row)
    }
    if (minute > row.minute) advance(row, minute)
    if (minute === row.minute) row.count += count
    else if (minute > row.minute - RECENT_MINUTES) {
      row.ring ??= new Uint32Array(RECENT_MINUTES)
      row.ring[minute % RECENT_MINUTES] = countAt(row, minute) + count
    }
  }

  /** The links with hits since a minute, by the start of their newest one. */
  linksSince(now: number): number[] {
    const minute = Math.floor(now / MINUTE)
    const rows = [...this.#old, ...this.#young]
    const recent = rows.filter(([key, row]) => key > 0 && row.minute >= minute)
    return [...new Set(recent.map(([key]) => key))]
  }

  /** Oldest minute first, the current one last. */
  perMinute({ counted, now }: { counted: CountedLinks; now: number }): number[] {
    const each = 'linkIds' in counted ? counted.linkIds.map((linkId) => ({ linkId })) : [counted]
    const rows = each.flatMap((one) => {
      const key = keyOf(one)
      return this.#young.get(key) ?? this.#old.get(key) ?? []
    })
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
function countAt({ minute: newest, count, ring }: Row, minute: number): number {
  if (minute === newest) return count
  const isRemembered = minute < newest && minute > newest - RECENT_MINUTES
  return isRemembered ? (ring?.[minute % RECENT_MINUTES] ?? 0) : 0
}

/** Makes `minute`, which is later, the newest one. */
function advance(row: Row, minute: number): void {
  const steps = minute - row.minute
  if (steps >= RECENT_MINUTES) row.ring = undefined
  else {
    const ring = row.ring ?? new Uint32Array(RECENT_MINUTES)
    row.ring = ring
    ring[row.minute % RECENT_MINUTES] = row.count
    for (let step = 1; step <= steps; step++) ring[(row.minute + step) % RECENT_MINUTES] = 0
  }
  row.minute = minute
  row.count = 0
}
