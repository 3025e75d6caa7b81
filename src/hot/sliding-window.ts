import { CallerSlots, type CallerSlotsOptions } from './caller-slots.ts'
import { GapQueues } from './gap-queues.ts'
import { NO_SLOT } from './key-index.ts'

/** A request at `t` is counted from `t` up to, but not at, `t + WINDOW_MS`. */
export const WINDOW_MS = 60_000

// A slot's record. OLDER and NEWER chain the held keys by their newest request.
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
/** One more than a call can add, so expired keys never accumulate. */
const RELEASES_PER_CALL = 2
/** Expired keys may hold chunks that a live key needs. */
const RELEASES_WHEN_ARENA_FULL = 64
/**
 * Cells, chosen by 14 bits of a key's hash, with the time at which the overflow bucket last let a
 * key of the cell pass.
 */
const CELLS = 2 ** 14
const CELL_SHIFT = 32 - 14

// The decision about a request.
const PASSES = 0
const SPENT = 1
const NO_MEMORY = 2
type Verdict = typeof PASSES | typeof SPENT | typeof NO_MEMORY

interface SlidingWindowOptions extends CallerSlotsOptions {
  /**
   * Callers held at once, from 1 to 16,777,216: as many as are told apart within a minute. Each
   * takes 40 bytes; the table has a power of two of buckets of 4 bytes, at least 4/3 as many as
   * callers. 196,608 callers take 8.5 MiB, 393,216 take 17, and 786,432 take 34.
   */
  keysMax: number
  /**
   * Bytes for the times of requests. Default: 12 MiB. The first request of a caller in a window
   * takes none, the others two bytes each, in chunks of 16 that take 36 bytes. Altogether, a caller
   * of k requests takes at most 128 + 2.25k bytes (if `keysMax` is three quarters of a power of
   * two).
   */
  arenaBytesMax?: number
  /**
   * Lets a request pass that cannot be counted because no slot or memory is left. For callers that
   * must not be refused, even if some of them exceed the budget.
   */
  failsOpen?: boolean
}

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
 * HOT PATH. An exact log of each caller's requests in the last 60 seconds, in bounded memory: never
 * more than the budget in any 60 seconds, never a refusal under it. No clock of its own, and
 * nothing is allocated after construction. The cost of a call does not depend on the number of
 * keys. Each request is dropped once, by a call after it has left the window.
 *
 * A caller's times are stored as its oldest, its newest, and a queue of the gaps between them. When
 * `keysMax` callers are held, only those without a request in the window are removed. If there are
 * none, newcomers share one overflow bucket: it may refuse them too early, but no caller gets more
 * than its budget. When the arena is full, a caller with requests in the window is refused until
 * they have left. Both happen in a flood only; `overflowed` and `arenaRefused` count them. With
 * `failsOpen`, such requests pass without being counted; `uncounted` counts them.
 *
 * `take` and `peek` return the same object each time: read it before the next call.
 */
export class SlidingWindow {
  /** Number of refused takes. */
  refused = 0
  /** Number of takes, passed or refused, of callers for which no slot was left. */
  overflowed = 0
  /** Number of takes and peeks under the budget for which the arena had no room. */
  arenaRefused = 0
  /** Number of takes that passed without being counted. */
  uncounted = 0

  readonly #decision = { allowed: false, remaining: 0, resetAfterMs: 0 }
  readonly #slots: CallerSlots
  readonly #gaps: GapQueues
  readonly #records: Int32Array
  readonly #failsOpen: boolean
  /** The overflow bucket: the slot that newcomers share when no other is free. */
  readonly #overflow: number
  /** The index of its record, whose OLDER and NEWER are the two ends of the chain. */
  readonly #ends: number
  /** The slot that a peek uses for a key that is not held. */
  readonly #blank: number
  readonly #cells = new Int32Array(CELLS)
  #latestMs = Number.NEGATIVE_INFINITY
  #originMs = Number.NEGATIVE_INFINITY
  // The last result of #leavesMs, so that the queue of a caller far over a lowered budget is not
  // summed by each call.
  #summedSlot = NO_SLOT
  #summedBudget = 0
  #summedMs = 0

  constructor(options: SlidingWindowOptions) {
    const { keysMax, arenaBytesMax = 12 * 2 ** 20, failsOpen = false } = options
    this.#slots = new CallerSlots(options)
    this.#failsOpen = failsOpen
    this.#gaps = new GapQueues(keysMax + 2, arenaBytesMax)
    this.#records = new Int32Array((keysMax + 2) * RECORD_FIELDS)
    this.#overflow = keysMax
    this.#blank = keysMax + 1
    this.#ends = keysMax * RECORD_FIELDS
    this.#records[this.#ends + OLDER] = this.#overflow
    this.#records[this.#ends + NEWER] = this.#overflow
  }

  /** Keys held: those with a request in the window, and some that are about to be removed. */
  get size(): number {
    return this.#slots.size
  }

  /** The highest memory use so far. */
  get bytes(): number {
    const records = this.#slots.slotsUsed * (8 + 4 * RECORD_FIELDS)
    return this.#slots.bytes + records + this.#gaps.arenaBytes + this.#cells.byteLength
  }

  /**
   * Spends one request of the key, given as two 32-bit halves; a refusal spends nothing. `budget`
   * is at least 1 and may change from call to call. `nowMs` is in whole milliseconds and monotonic:
   * an earlier time counts as the latest one given.
   */
  take(keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    const now = this.#advance(nowMs)
    let slot = this.#slots.find(keyHigh, keyLow)
    if (slot === NO_SLOT) slot = this.#admit(keyHigh, keyLow, now)
    if (slot === this.#overflow) {
      this.overflowed++
      if (this.#failsOpen) return this.#passUncounted(budget)
    }
    const verdict = this.#decide(slot, keyHigh, keyLow, budget, now)
    if (verdict === NO_MEMORY && this.#failsOpen) return this.#passUncounted(budget)
    this.#decision.allowed = verdict === PASSES
    if (verdict === PASSES) this.#spend(slot, keyHigh, keyLow, now)
    else this.refused++
    return this.#decision
  }

  /** The decision about a take at this moment. Spends nothing. */
  peek(keyHigh: number, keyLow: number, budget: number, nowMs: number): Decision {
    const now = this.#advance(nowMs)
    let slot = this.#slots.find(keyHigh, keyLow)
    if (slot === NO_SLOT && this.#slots.isFull && !this.#failsOpen) slot = this.#overflow
    if (slot === NO_SLOT) slot = this.#begin(this.#blank, now)
    const verdict = this.#decide(slot, keyHigh, keyLow, budget, now)
    this.#decision.allowed = verdict === PASSES || (verdict === NO_MEMORY && this.#failsOpen)
    return this.#decision
  }

  /**
   * Whether the key has spent its budget, in its own slot or its group's. Spends nothing. False for
   * a newcomer, even if the overflow bucket has nothing left.
   */
  isSpent(keyHigh: number, keyLow: number, budget: number, nowMs: number): boolean {
    const now = this.#advance(nowMs)
    const slot = this.#slots.find(keyHigh, keyLow)
    return slot !== NO_SLOT && this.#decide(slot, keyHigh, keyLow, budget, now) === SPENT
  }

  #passUncounted(budget: number): Decision {
    this.uncounted++
    this.#decision.allowed = true
    this.#decision.remaining = budget
    this.#decision.resetAfterMs = 0
    return this.#decision
  }

  /** The time since the origin. Releases a few keys that have nothing left in the window. */
  #advance(nowMs: number): number {
    if (nowMs > this.#latestMs) this.#latestMs = nowMs
    if (this.#latestMs - this.#originMs > TIME_MAX_MS) this.#moveOrigin()
    const now = (this.#latestMs - this.#originMs) | 0
    const records = this.#records
    const releases = this.#gaps.isFull ? RELEASES_WHEN_ARENA_FULL : RELEASES_PER_CALL
    for (let i = 0; i < releases; i++) {
      const slot = records[this.#ends + NEWER] as number
      const newest = records[slot * RECORD_FIELDS + NEWEST_MS] as number
      if (slot === this.#overflow || newest > now - WINDOW_MS) break
      this.#unlink(slot)
      this.#gaps.clear(slot)
      this.#slots.remove(slot)
    }
    return now
  }

  /** A slot for a key that is not held, if one is free, else the overflow bucket. */
  #admit(keyHigh: number, keyLow: number, now: number): number {
    if (this.#slots.isFull) return this.#overflow
    const slot = this.#begin(this.#slots.add(keyHigh, keyLow), now)
    this.#linkNewest(slot)
    return slot
  }

  #begin(slot: number, now: number): number {
    const at = slot * RECORD_FIELDS
    this.#records[at + NEWEST_MS] = now
    this.#records[at + OLDEST_MS] = now
    this.#records[at + COUNT] = 0
    this.#records[at + SHARED] = this.#records[this.#ends + COUNT] === 0 ? 0 : 1
    return slot
  }

  /** Decides about one more request, and sets `#decision` to the state before it. */
  #decide(slot: number, keyHigh: number, keyLow: number, budget: number, now: number): Verdict {
    if (!(budget >= 1)) throw new RangeError('a budget is at least 1')
    const count = this.#countNow(slot, now)
    const shared = this.#sharedNow(slot, keyHigh, keyLow, now)
    const left = budget - count - shared
    if (left > 0 && (count === 0 || this.#gaps.hasRoom(slot))) {
      this.#decision.remaining = left
      this.#decision.resetAfterMs = count === 0 ? 0 : this.#leavesMs(slot, 0, budget) - now
      return PASSES
    }
    let passes = now
    if (left > 0) {
      this.arenaRefused++
      passes = (this.#records[slot * RECORD_FIELDS + NEWEST_MS] as number) + WINDOW_MS
    } else {
      if (count >= budget) passes = this.#leavesMs(slot, count - budget, budget)
      if (shared > 0) passes = Math.max(passes, this.#passedAtMs(keyHigh, keyLow) + WINDOW_MS)
    }
    this.#decision.remaining = 0
    this.#decision.resetAfterMs = passes - now
    return left > 0 ? NO_MEMORY : SPENT
  }

  #spend(slot: number, keyHigh: number, keyLow: number, now: number): void {
    const records = this.#records
    const at = slot * RECORD_FIELDS
    if (records[at + COUNT] === 0) records[at + OLDEST_MS] = now
    else this.#gaps.push(slot, now - (records[at + NEWEST_MS] as number))
    records[at + NEWEST_MS] = now
    records[at + COUNT] = (records[at + COUNT] as number) + 1
    if (slot === this.#summedSlot) this.#summedSlot = NO_SLOT
    if (slot === this.#overflow) {
      this.#cells[this.#slots.hash(keyHigh, keyLow) >>> CELL_SHIFT] = now
    } else if (slot !== records[this.#ends + OLDER]) {
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
  #leavesMs(slot: number, earlier: number, budget: number): number {
    const oldestLeaves = (this.#records[slot * RECORD_FIELDS + OLDEST_MS] as number) + WINDOW_MS
    if (earlier === 0) return oldestLeaves
    if (slot !== this.#summedSlot || budget !== this.#summedBudget) {
      this.#summedSlot = slot
      this.#summedBudget = budget
      this.#summedMs = oldestLeaves + this.#gaps.sum(slot, earlier)
    }
    return this.#summedMs
  }

  /**
   * Requests in the overflow bucket that may be of this key: all of them, if it let the key, or
   * another one of the same cell, pass within the window. Otherwise a newcomer that gets a slot of
   * its own could spend its budget a second time.
   */
  #sharedNow(slot: number, keyHigh: number, keyLow: number, now: number): number {
    const at = slot * RECORD_FIELDS + SHARED
    if (this.#records[at] === 0) return 0
    const mayHavePassed = this.#passedAtMs(keyHigh, keyLow) > now - WINDOW_MS
    if (mayHavePassed) return this.#countNow(this.#overflow, now)
    this.#records[at] = 0
    return 0
  }

  /** When the overflow bucket last let a key of this cell pass. */
  #passedAtMs(keyHigh: number, keyLow: number): number {
    return this.#cells[this.#slots.hash(keyHigh, keyLow) >>> CELL_SHIFT] as number
  }

  #linkNewest(slot: number): void {
    const records = this.#records
    const older = records[this.#ends + OLDER] as number
    records[slot * RECORD_FIELDS + OLDER] = older
    records[slot * RECORD_FIELDS + NEWER] = this.#overflow
    records[older * RECORD_FIELDS + NEWER] = slot
    records[this.#ends + OLDER] = slot
  }

  #unlink(slot: number): void {
    const records = this.#records
    const older = records[slot * RECORD_FIELDS + OLDER] as number
    const newer = records[slot * RECORD_FIELDS + NEWER] as number
    records[older * RECORD_FIELDS + NEWER] = newer
    records[newer * RECORD_FIELDS + OLDER] = older
  }

  /** Runs every 24 days and visits all used records, which takes a millisecond or two. */
  #moveOrigin(): void {
    const originMs = Math.floor(this.#latestMs) - ORIGIN_LAG_MS
    const byMs = originMs - this.#originMs
    const records = this.#records
    for (let slot = -1; slot < this.#slots.slotsUsed; slot++) {
      const at = (slot === -1 ? this.#overflow : slot) * RECORD_FIELDS
      records[at + NEWEST_MS] = earlier(byMs, records[at + NEWEST_MS])
      records[at + OLDEST_MS] = earlier(byMs, records[at + OLDEST_MS])
    }
    for (let cell = 0; cell < CELLS; cell++) this.#cells[cell] = earlier(byMs, this.#cells[cell])
    this.#summedSlot = NO_SLOT
    this.#originMs = originMs
  }
}

const earlier = (byMs: number, timeMs = 0) => Math.max(0, timeMs - byMs)
