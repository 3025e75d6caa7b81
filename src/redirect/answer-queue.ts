import type { MonotonicClock } from '../lib/clock.ts'
import type { AddressUsage } from './connection-limits.ts'

/** The time of a tick is 2 ms. Input of earlier ticks has the last part in any case. */
const ARRIVED_MS = 1.5
const WAITING_MS = 0.5
/** No further input is begun in the last part of a tick: most input is short, and cutting costs. */
const LAST_MS = 0.25
/** Time after which a callback tells when the tick ends: one for each tick would cost too much. */
const UNWATCHED_MS = 0.75
/** Reading the clock for each answer would cost too much. */
const ANSWERS_PER_READING = 4

interface QueuedConnection {
  readonly usage: AddressUsage
  /** Answers some of its input, and calls `add` if there is more. */
  resume(): void
}

/**
 * Bounds the time for which a tick of the event loop answers requests, over all connections of a
 * thread. Input beyond it waits here, and so does all further input of its address. Addresses are
 * served round-robin; many clients connect from a trusted proxy, so each of its connections counts
 * as an address.
 */
export class AnswerQueue {
  readonly #monotonic: MonotonicClock
  readonly #waiting = new Map<object, QueuedConnection[]>()
  #answers = 0
  /** When the last tick that was watched has ended; of one that is watched, when to end. */
  #time = 0
  #isWatched = false
  #isEnding = false
  #isSpent = false

  constructor(monotonic: MonotonicClock) {
    this.#monotonic = monotonic
  }

  /** HOT PATH. Call it after each answer. Returns whether the time of the tick is over. */
  spend(): boolean {
    if (++this.#answers % ANSWERS_PER_READING !== 0) return this.#isSpent
    const now = this.#monotonic()
    if (this.#isWatched) {
      this.#isEnding = now >= this.#time - LAST_MS
      this.#isSpent = now >= this.#time
    } else if (now - this.#time >= UNWATCHED_MS) this.#watch(now - UNWATCHED_MS)
    return this.#isSpent
  }

  /** HOT PATH. Adds a connection whose input arrives now if it has to wait. */
  takes(connection: QueuedConnection): boolean {
    if (!this.#isEnding && !this.#waiting.has(keyOf(connection))) return false
    this.add(connection)
    return true
  }

  /** Calls `resume` later. */
  add(connection: QueuedConnection): void {
    this.#waiting.getOrInsertComputed(keyOf(connection), () => []).push(connection)
    if (!this.#isWatched) this.#watch(this.#monotonic())
  }

  #watch(start: number): void {
    this.#isWatched = true
    this.#time = start + ARRIVED_MS
    // After all other events of the tick.
    setImmediate(() => this.#endTick())
  }

  #start(): void {
    this.#isEnding = false
    this.#isSpent = false
  }

  #endTick(): void {
    this.#time = Math.max(this.#time, this.#monotonic()) + WAITING_MS
    this.#start()
    // An address that is set again comes last.
    for (const [key, connections] of this.#waiting) {
      this.#waiting.delete(key)
      const connection = connections.shift()
      if (connections.length > 0) this.#waiting.set(key, connections)
      connection?.resume()
      this.spend()
      if (this.#isEnding) break
    }
    this.#start()
    this.#isWatched = false
    this.#time = this.#monotonic()
    if (this.#waiting.size > 0) this.#watch(this.#time)
  }
}

const keyOf = (connection: QueuedConnection): object =>
  connection.usage.isProxy ? connection : connection.usage
