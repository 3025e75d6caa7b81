import { LRUCache } from 'lru-cache'
import { type MonotonicClock, monotonicClock } from './clock.ts'

export interface Rate {
  /** What passes without a pause. */
  burst: number
  /** Beyond the burst, one more passes each `everyMs`. */
  everyMs: number
}

/**
 * One rate for each key, by the generic cell rate algorithm (ITU-T I.371), in bounded memory. What
 * was counted for a key reaches up to a time, by `everyMs` for each; the next one must wait while
 * that time lies `burst` steps ahead.
 */
export class RateGate {
  readonly #rate: Rate
  readonly #monotonic: MonotonicClock
  readonly #reach: LRUCache<string, number>

  /** Beyond `keysMax`, the least recently used keys are dropped. */
  constructor(rate: Rate, monotonic = monotonicClock, keysMax = 1) {
    this.#rate = rate
    this.#monotonic = monotonic
    // With `maxSize` instead of `max`, the cache grows with use instead of reserving its memory.
    this.#reach = new LRUCache({ maxSize: keysMax, sizeCalculation: () => 1 })
  }

  /** Milliseconds until as much as `cost` more may pass; not positive: at once. */
  waitMs(key: string, cost = 1): number {
    const { burst, everyMs } = this.#rate
    const aheadMs = (this.#reach.get(key) ?? 0) - this.#monotonic()
    return Math.max(aheadMs, 0) + (cost - burst) * everyMs
  }

  count(key: string, cost = 1): void {
    const from = Math.max(this.#reach.get(key) ?? 0, this.#monotonic())
    this.#reach.set(key, from + cost * this.#rate.everyMs)
  }

  /** Forgets what was counted for the key. */
  clear(key: string): void {
    this.#reach.delete(key)
  }
}
