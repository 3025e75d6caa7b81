import { type MonotonicClock, monotonicClock } from '../lib/clock.ts'

interface PaceOptions {
  bytesPerSecond: number
  /** Default: the machine's clock. */
  monotonic?: MonotonicClock
  /** Resolves after `ms`. Default: `Bun.sleep`. */
  sleep?: (ms: number) => Promise<void>
}

/**
 * Spreads the bytes of each account over time: a call waits until the time for the bytes of the
 * account's earlier calls has passed. The first call never waits. The caller bounds how many wait.
 */
export class Pace {
  readonly #bytesPerMs: number
  readonly #monotonic: MonotonicClock
  readonly #sleep: (ms: number) => Promise<void>
  /** By account: when the time for its bytes so far has passed. Ordered by last call. */
  readonly #reach = new Map<number, number>()

  constructor({ bytesPerSecond, monotonic = monotonicClock, sleep = Bun.sleep }: PaceOptions) {
    this.#bytesPerMs = bytesPerSecond / 1000
    this.#monotonic = monotonic
    this.#sleep = sleep
  }

  /** Number of accounts in memory: those that must wait, and some whose wait is over. */
  get size(): number {
    return this.#reach.size
  }

  async wait(account: number, bytes: number): Promise<void> {
    const now = this.#monotonic()
    this.#forgetUpTo(now)
    const start = Math.max(this.#reach.get(account) ?? now, now)
    this.#reach.delete(account)
    this.#reach.set(account, start + bytes / this.#bytesPerMs)
    if (start > now) await this.#sleep(start - now)
  }

  #forgetUpTo(now: number): void {
    for (const [account, reach] of this.#reach) {
      if (reach > now) return
      this.#reach.delete(account)
    }
  }
}
