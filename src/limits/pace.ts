import { type MonotonicClock, monotonicClock } from '../lib/clock.ts'

interface PaceOptions {
  bytesPerSecond: number
  /** Default: the machine's own. */
  monotonic?: MonotonicClock
  /** Resolves so many milliseconds later. Default: `Bun.sleep`. */
  rest?: (ms: number) => Promise<void>
}

/**
 * Spreads the bytes of each account over time: a caller waits until the bytes of its account's
 * earlier calls have had their time. The first call never waits. The caller bounds how many wait.
 */
export class Pace {
  readonly #bytesPerMs: number
  readonly #monotonic: MonotonicClock
  readonly #rest: (ms: number) => Promise<void>
  /** By account: the time up to which its bytes reach. In the order of the last calls. */
  readonly #reach = new Map<number, number>()

  constructor({ bytesPerSecond, monotonic = monotonicClock, rest = Bun.sleep }: PaceOptions) {
    this.#bytesPerMs = bytesPerSecond / 1000
    this.#monotonic = monotonic
    this.#rest = rest
  }

  /** Accounts whose bytes reach into the future, and some whose time has passed. */
  get size(): number {
    return this.#reach.size
  }

  async wait(account: number, bytes: number): Promise<void> {
    const now = this.#monotonic()
    this.#forgetUpTo(now)
    const start = Math.max(this.#reach.get(account) ?? now, now)
    this.#reach.delete(account)
    this.#reach.set(account, start + bytes / this.#bytesPerMs)
    if (start > now) await this.#rest(start - now)
  }

  #forgetUpTo(now: number): void {
    for (const [account, reach] of this.#reach) {
      if (reach > now) return
      this.#reach.delete(account)
    }
  }
}
