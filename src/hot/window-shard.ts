import { CallerSlots, type CallerSlotsOptions } from './caller-slots.ts'
import { GapQueues } from './gap-queues.ts'
import { NO_SLOT } from './key-index.ts'
import { Lock } from './lock.ts'
import type { SharedArrays } from './shared-arrays.ts'
import {
  ARENA_REFUSED,
  OVERFLOWED,
  REFUSED,
  RESETS,
  UNCOUNTED,
  WindowCounters,
} from './window-counters.ts'

/** A request at `t` is counted from `t` up to, but not at, `t + WINDOW_MS`. */
export const WINDOW_MS = 60_000

// The record of a slot. OLDER and NEWER link the stored keys in the order of their newest request.
const NEWEST_MS = 0
const OLDEST_MS = 1
const COUNT = 2
const OLDER = 3
const NEWER = 4
/** 1 while the overflow bucket may count requests of the key. */
const SHARED = 5
const RECORD_FIELDS = 6

/** Times are 31-bit milliseconds since an origin, which moves before they overflow. */
const TIME_MAX_MS = 2 ** 31 - 1
/** The origin lies two windows back: 0 is outside the window, and counted times are above 0. */
const ORIGIN_LAG_MS = 2 * WINDOW_MS
/** One more than a call can add, so that expired keys do not accumulate. */
const RELEASES_PER_CALL = 2
/** Expired keys may hold chunks that a live key needs. */
const RELEASES_WHEN_ARENA_FULL = 64
/**
 * Cells, chosen by 14 bits of a key's hash, with the time at which the overflow bucket last let a
 * key of the cell pass. The four bits above may choose the shard.
 */
const CELLS = 2 ** 14
const CELL_SHIFT = 14
const cellOf = (hash: number) => (hash >>> CELL_SHIFT) & (CELLS - 1)

/** The overflow bucket: the record that newcomers share when no slot is free. */
const OVERFLOW = NO_SLOT
/** Its OLDER and NEWER are the two ends of the chain. */
const ENDS = OVERFLOW * RECORD_FIELDS

// The last result of #expiryMs, so that the queue of a caller far over a lowered budget is not
// summed by each call. A budget of 0 stands for "none".
const SUMMED_SLOT = 0
const SUMMED_BUDGET = 1
const SUMMED_MS = 2
const WORDS = 3

const LATEST_MS = 0
const ORIGIN_MS = 1
const TIMES = 2

// The decision about a request.
const PASSES = 0
const SPENT = 1
const NO_MEMORY = 2
type Verdict = typeof PASSES | typeof SPENT | typeof NO_MEMORY

export interface WindowShardOptions extends CallerSlotsOptions {
  arenaBytesMax: number
  failsOpen: boolean
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

/** Whether a request is within its budget, and what is left of the budget. */
export interface Decision {
  readonly allowed: boolean
  /** Requests left in the window, without the one that has just been counted. */
  readonly remaining: number
  /**
   * Milliseconds until the oldest counted request leaves the window, 0 if none is counted. Of a
   * refusal: until the next request with this budget is allowed; in the overflow bucket, unless
   * another newcomer comes first.
   */
  readonly resetAfterMs: number
}

/**
 * HOT PATH. A part of the callers of a `SlidingWindow`. `take`, `peek` and `clear` need the lock,
 * and do not throw. All state is in shared memory. `hash` is always the key's `callerHash`.
 *
 * A caller's times are stored as its oldest, its newest, and a queue of the gaps between them. When
 * `keysMax` callers are stored, only those without a request in the window are removed.
 */
export class WindowShard {
  readonly lock: Lock
  readonly counters: WindowCounters
  /** Returned by `take` and `peek`. */
  readonly #decision: Mutable<Decision> = { allowed: false, remaining: 0, resetAfterMs: 0 }
  readonly #contents: Uint8Array
  readonly #words: Int32Array
  readonly #times: Float64Array
  readonly #slots: CallerSlots
  readonly #records: Int32Array
  readonly #gaps: GapQueues
  readonly #cells: Int32Array
  readonly #failsOpen: boolean
  /** The record that a peek uses for a key that is not stored. */
  readonly #blank: number

  /** `thread`: the number of the calling thread. */
  constructor(memory: SharedArrays, options: WindowShardOptions, thread: number) {
    const { keysMax, arenaBytesMax, failsOpen } = options
    this.lock = new Lock(memory.int32(1), 0, thread)
    this.counters = new WindowCounters(memory)
    this.#failsOpen = failsOpen
    this.#blank = keysMax + 1
    const contents = memory.bytes
    this.#words = memory.int32(WORDS)
    this.#times = memory.float64(TIMES)
    this.#slots = new CallerSlots(memory, options)
    this.#records = memory.int32((keysMax + 2) * RECORD_FIELDS)
    this.#gaps = new GapQueues(memory, keysMax + 2, arenaBytesMax)
    this.#cells = memory.int32(CELLS)
    this.#contents = memory.since(contents)
  }

  /** Prepares memory that is zero. */
  initialize(): void {
    this.#times.fill(Number.NEGATIVE_INFINITY)
  }

  /** Removes all callers, whatever the memory contains. The counters remain. */
  clear(): void {
    this.#contents.fill(0)
    this.initialize()
    this.counters.increment(RESETS)
  }

  /** Number of keys: those with a request in the window, and some that are about to be removed. */
  get size(): number {
    return this.#slots.size
  }

  /** The highest memory use so far. */
  get bytes(): number {
    const records = this.#slots.slotsUsed * (8 + 4 * RECORD_FIELDS)
    return this.#slots.bytes + records + this.#gaps.arenaBytes + this.#cells.byteLength
  }

  take(hash: number, keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    const now = this.#advance(nowMs)
    let slot = this.#slots.find(hash, keyHigh, keyLow)
    if (slot === NO_SLOT) slot = this.#admit(hash, keyHigh, keyLow, now)
    if (slot === OVERFLOW) {
      this.counters.increment(OVERFLOWED)
      if (this.#failsOpen) return this.#passUncounted(budget)
    }
    const verdict = this.#decide(slot, hash, budget, now)
    if (verdict === NO_MEMORY && this.#failsOpen) return this.#passUncounted(budget)
    this.#decision.allowed = verdict === PASSES
    if (verdict === PASSES) this.#spend(slot, hash, now)
    else this.counters.increment(REFUSED)
    return this.#decision
  }

  peek(hash: number, keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    const now = this.#advance(nowMs)
    let slot = this.#slots.find(hash, keyHigh, keyLow)
    const isNewcomer = slot === NO_SLOT
    if (isNewcomer && (this.#failsOpen || !this.#slots.isFull)) slot = this.#begin(this.#blank, now)
    const verdict = this.#decide(slot, hash, budget, now)
    this.#decision.allowed = verdict === PASSES || (verdict === NO_MEMORY && this.#failsOpen)
    return this.#decision
  }

  /** The decision for a caller that did not get the lock. */
  passUnlocked(budget: number): Decision {
    this.counters.incrementUnlocked()
    return this.#pass(budget)
  }

  #passUncounted(budget: number): Decision {
    this.counters.increment(UNCOUNTED)
    return this.#pass(budget)
  }

  #pass(budget: number): Decision {
    this.#decision.allowed = true
    this.#decision.remaining = budget
    this.#decision.resetAfterMs = 0
    return this.#decision
  }

  /** The time since the origin. Releases a few keys that have nothing left in the window. */
  #advance(nowMs: number): number {
    const times = this.#times
    if (nowMs > (times[LATEST_MS] as number)) times[LATEST_MS] = nowMs
    const latestMs = times[LATEST_MS] as number
    if (latestMs - (times[ORIGIN_MS] as number) > TIME_MAX_MS) this.#moveOrigin(latestMs)
    const now = (latestMs - (times[ORIGIN_MS] as number)) | 0
    const records = this.#records
    const releases = this.#gaps.isFull ? RELEASES_WHEN_ARENA_FULL : RELEASES_PER_CALL
    for (let i = 0; i < releases; i++) {
      const slot = records[ENDS + NEWER] as number
      const newest = records[slot * RECORD_FIELDS + NEWEST_MS] as number
      if (slot === OVERFLOW || newest > now - WINDOW_MS) break
      this.#unlink(slot)
      this.#gaps.clear(slot)
      this.#slots.remove(slot)
    }
    return now
  }

  /** A slot for a key that is not stored, if one is free, else the overflow bucket. */
  #admit(hash: number, keyHigh: number, keyLow: number, now: number): number {
    const slot = this.#slots.add(hash, keyHigh, keyLow)
    if (slot === NO_SLOT) return OVERFLOW
    this.#begin(slot, now)
    this.#linkNewest(slot)
    return slot
  }

  #begin(slot: number, now: number): number {
    const at = slot * RECORD_FIELDS
    this.#records[at + NEWEST_MS] = now
    this.#records[at + OLDEST_MS] = now
    this.#records[at + COUNT] = 0
    // ENDS is the record of the overflow bucket: while it counts requests, some may be of this key.
    this.#records[at + SHARED] = this.#records[ENDS + COUNT] === 0 ? 0 : 1
    return slot
  }

  /** Decides about one more request, and sets `#decision` to the state before it. */
  #decide(slot: number, hash: number, budget: number, now: number): Verdict {
    const count = this.#countNow(slot, now)
    const shared = this.#sharedNow(slot, hash, now)
    const left = budget - count - shared
    if (left > 0 && (count === 0 || this.#gaps.hasRoom(slot))) {
      this.#decision.remaining = left
      this.#decision.resetAfterMs = count === 0 ? 0 : this.#expiryMs(slot, 0, budget) - now
      return PASSES
    }
    let passes = now
    if (left > 0) {
      this.counters.increment(ARENA_REFUSED)
      passes = (this.#records[slot * RECORD_FIELDS + NEWEST_MS] as number) + WINDOW_MS
    } else {
      if (count >= budget) passes = this.#expiryMs(slot, count - budget, budget)
      if (shared > 0) passes = Math.max(passes, this.#passedAtMs(hash) + WINDOW_MS)
    }
    this.#decision.remaining = 0
    this.#decision.resetAfterMs = passes - now
    return left > 0 ? NO_MEMORY : SPENT
  }

  #spend(slot: number, hash: number, now: number): void {
    const records = this.#records
    const at = slot * RECORD_FIELDS
    if (records[at + COUNT] === 0) records[at + OLDEST_MS] = now
    else this.#gaps.push(slot, now - (records[at + NEWEST_MS] as number))
    records[at + NEWEST_MS] = now
    records[at + COUNT] = (records[at + COUNT] as number) + 1
    // The cached sum of `#expiryMs` is out of date.
    if (slot === this.#words[SUMMED_SLOT]) this.#words[SUMMED_BUDGET] = 0
    if (slot === OVERFLOW) {
      this.#cells[cellOf(hash)] = now
    } else if (slot !== records[ENDS + OLDER]) {
      this.#unlink(slot)
      this.#linkNewest(slot)
    }
    this.#decision.remaining--
    this.#decision.resetAfterMs = (records[at + OLDEST_MS] as number) + WINDOW_MS - now
  }

  /** Drops requests that have left the window, and returns the number of those in it. */
  #countNow(slot: number, now: number): number {
    const records = this.#records
    const at = slot * RECORD_FIELDS
    const edge = now - WINDOW_MS
    let oldest = records[at + OLDEST_MS] as number
    if (oldest > edge) return records[at + COUNT] as number
    if ((records[at + NEWEST_MS] as number) <= edge) {
      this.#gaps.clear(slot)
      records[at + COUNT] = 0
      return 0
    }
    let count = records[at + COUNT] as number
    while (oldest <= edge) {
      oldest += this.#gaps.shift(slot)
      count--
    }
    records[at + OLDEST_MS] = oldest
    records[at + COUNT] = count
    return count
  }

  /** When the request after the `earlier` oldest ones leaves the window. */
  #expiryMs(slot: number, earlier: number, budget: number): number {
    const oldest = this.#records[slot * RECORD_FIELDS + OLDEST_MS] as number
    if (earlier === 0) return oldest + WINDOW_MS
    const words = this.#words
    if (slot !== words[SUMMED_SLOT] || budget !== words[SUMMED_BUDGET]) {
      words[SUMMED_SLOT] = slot
      words[SUMMED_BUDGET] = budget
      words[SUMMED_MS] = oldest + this.#gaps.sum(slot, earlier)
    }
    return (words[SUMMED_MS] as number) + WINDOW_MS
  }

  /**
   * Requests in the overflow bucket that may be of this key: all of them, if it let the key, or
   * another one of the same cell, pass within the window. Otherwise a newcomer that gets a slot of
   * its own could spend its budget a second time.
   */
  #sharedNow(slot: number, hash: number, now: number): number {
    const at = slot * RECORD_FIELDS + SHARED
    if (this.#records[at] === 0) return 0
    const mayHavePassed = this.#passedAtMs(hash) > now - WINDOW_MS
    if (mayHavePassed) return this.#countNow(OVERFLOW, now)
    this.#records[at] = 0
    return 0
  }

  /** When the overflow bucket last let a key of this cell pass. */
  #passedAtMs(hash: number): number {
    return this.#cells[cellOf(hash)] as number
  }

  #linkNewest(slot: number): void {
    const records = this.#records
    const older = records[ENDS + OLDER] as number
    records[slot * RECORD_FIELDS + OLDER] = older
    records[slot * RECORD_FIELDS + NEWER] = OVERFLOW
    records[older * RECORD_FIELDS + NEWER] = slot
    records[ENDS + OLDER] = slot
  }

  #unlink(slot: number): void {
    const records = this.#records
    const older = records[slot * RECORD_FIELDS + OLDER] as number
    const newer = records[slot * RECORD_FIELDS + NEWER] as number
    records[older * RECORD_FIELDS + NEWER] = newer
    records[newer * RECORD_FIELDS + OLDER] = older
  }

  /** Runs every 24 days and visits all used records, which takes a millisecond or two. */
  #moveOrigin(latestMs: number): void {
    const originMs = Math.floor(latestMs) - ORIGIN_LAG_MS
    const byMs = originMs - (this.#times[ORIGIN_MS] as number)
    this.#times[ORIGIN_MS] = originMs
    // Before the first call all times are 0, and their pages stay untouched.
    if (byMs === Number.POSITIVE_INFINITY) return
    const records = this.#records
    for (let slot = OVERFLOW; slot <= this.#slots.slotsUsed; slot++) {
      const at = slot * RECORD_FIELDS
      records[at + NEWEST_MS] = earlier(byMs, records[at + NEWEST_MS])
      records[at + OLDEST_MS] = earlier(byMs, records[at + OLDEST_MS])
    }
    for (let cell = 0; cell < CELLS; cell++) this.#cells[cell] = earlier(byMs, this.#cells[cell])
    this.#words[SUMMED_BUDGET] = 0
  }
}

const earlier = (byMs: number, timeMs = 0) => Math.max(0, timeMs - byMs)
