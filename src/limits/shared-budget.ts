import { AppError, retryAfter } from '../errors.ts'
import { type MonotonicClock, monotonicClock, SECOND } from '../lib/clock.ts'

/** An account's id, or the network of an anonymous client. */
export type Holder = number | string

const RETRY_AFTER_SECONDS = 5
/** A hold without progress for this time ends before any other when room is needed. */
const STALLED_MS = 8 * SECOND

interface Usage {
  bytes: number
  /** Holds in the order of their beginning. */
  readonly holds: Set<Hold>
}

/**
 * Memory that all clients share. A holder that holds nothing is always admitted, and the one that
 * holds most yields: when the budget is full, stalled holds end first, then the oldest hold of the
 * largest holder. The total exceeds the maximum by at most one hold (decision 038).
 */
export class SharedBudget {
  readonly #bytesMax: number
  readonly #monotonic: MonotonicClock
  readonly #usages = new Map<Holder, Usage>()
  #total = 0

  constructor(bytesMax: number, monotonic: MonotonicClock = monotonicClock) {
    this.#bytesMax = bytesMax
    this.#monotonic = monotonic
  }

  get total(): number {
    return this.#total
  }

  /**
   * Initially holds no bytes. `onEnd` is called if the hold ends for another one: it must stop the
   * request or response that uses the memory.
   */
  hold(holder: Holder, onEnd: () => void = () => {}): Hold {
    return new Hold(this, holder, onEnd)
  }

  /** For `Hold`, like the next three. Ends holds until `bytes` more fit or `by` has ended. */
  makeRoom(by: Hold, bytes: number): void {
    const now = this.#monotonic()
    while (this.#total + bytes > this.#bytesMax && !by.isEnded) {
      const next = this.#findStalled(by, now) ?? this.#oldestOfLargest(by.holder)
      if (!next) return
      next.end()
    }
  }

  add(hold: Hold, bytes: number): void {
    const usage = this.#usages.getOrInsertComputed(hold.holder, () => {
      return { bytes: 0, holds: new Set<Hold>() }
    })
    usage.holds.add(hold)
    usage.bytes += bytes
    hold.bytes += bytes
    this.#total += bytes
    this.noteProgress(hold)
  }

  noteProgress(hold: Hold): void {
    hold.progressAt = this.#monotonic()
  }

  remove(hold: Hold): void {
    const usage = this.#usages.get(hold.holder)
    if (!usage?.holds.delete(hold)) return
    usage.bytes -= hold.bytes
    this.#total -= hold.bytes
    if (usage.holds.size === 0) this.#usages.delete(hold.holder)
  }

  #findStalled(by: Hold, now: number): Hold | undefined {
    for (const { holds } of this.#usages.values()) {
      for (const hold of holds) {
        if (hold !== by && now - hold.progressAt >= STALLED_MS) return hold
      }
    }
    return undefined
  }

  /** The holder that needs room yields to others that hold as much. */
  #oldestOfLargest(holder: Holder): Hold | undefined {
    let largest = this.#usages.get(holder)
    for (const usage of this.#usages.values()) {
      if (!largest || usage.bytes > largest.bytes) largest = usage
    }
    return largest?.holds.values().next().value
  }
}

/** Bytes of one request or response. `dispose` releases them, and can be called twice. */
export class Hold implements Disposable {
  readonly holder: Holder
  readonly #budget: SharedBudget
  readonly #onEnd: () => void
  bytes = 0
  /** When the client last sent or read something. */
  progressAt = 0
  #isEnded = false

  constructor(budget: SharedBudget, holder: Holder, onEnd: () => void) {
    this.#budget = budget
    this.holder = holder
    this.#onEnd = onEnd
  }

  /** It has ended for another one. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /**
   * Holds more bytes; counts as progress. Other holds may end. Throws `overloaded` if this one has
   * ended, which never happens at the first call.
   */
  take(bytes: number): void {
    this.#budget.makeRoom(this, bytes)
    this.requireHeld()
    this.#budget.add(this, bytes)
  }

  /** The client has read a part of the response. */
  progress(): void {
    this.#budget.noteProgress(this)
  }

  /** Throws `overloaded` if the hold has ended. */
  requireHeld(): void {
    if (this.#isEnded) throw new AppError('overloaded', '', retryAfter(RETRY_AFTER_SECONDS))
  }

  /** For the budget. */
  end(): void {
    this.#isEnded = true
    this[Symbol.dispose]()
    this.#onEnd()
  }

  [Symbol.dispose](): void {
    this.#budget.remove(this)
    this.bytes = 0
  }
}
