import { LRUCache } from 'lru-cache'
import { AppError } from '../errors.ts'
import type { MonotonicClock } from '../lib/clock.ts'
import { MINUTE, SECOND } from '../lib/clock.ts'

/** `burst` attempts at once, then one more each `everyMs`. Only `session` counts a success. */
interface Allowance {
  burst: number
  everyMs: number
}

const ALLOWANCES = {
  /** One account from one address. */
  pair: { burst: 5, everyMs: MINUTE },
  /** One address, whatever it tries. */
  address: { burst: 30, everyMs: 30 * SECOND },
  /** One /24 of IPv4 or /48 of IPv6, which may be one customer's: its addresses cost nothing. */
  network: { burst: 120, everyMs: 10 * SECOND },
  /** One account from everywhere, by browsers that have never signed in to it. */
  account: { burst: 50, everyMs: MINUTE },
  /** A browser that has signed in to the account before: it is held to itself alone. */
  device: { burst: 10, everyMs: MINUTE },
  /** The password asked for again inside a session: every attempt counts, a right one too. */
  session: { burst: 5, everyMs: MINUTE },
  /** Codes of two-factor sign-in, by browsers that have never signed in to the account. */
  code: { burst: 5, everyMs: 5 * MINUTE },
  /** The same, by one browser that has signed in to the account before. */
  codeDevice: { burst: 5, everyMs: MINUTE },
  /** New accounts from one address, where registration is open. */
  registration: { burst: 5, everyMs: 10 * MINUTE },
} as const satisfies Record<string, Allowance>

export type Gate = keyof typeof ALLOWANCES
export interface Attempt {
  gate: Gate
  key: string
}

/** Keys held per gate; the longest unused go first. */
const KEYS_MAX = 50_000

/**
 * Slows guessing down, in bounded memory. Each key has the time until which its failures reach, as
 * in the generic cell rate algorithm (ITU-T I.371): a failure moves it on by `everyMs`, and an
 * attempt is refused while it lies `burst` steps ahead.
 */
export class Throttle {
  readonly #clock: MonotonicClock
  readonly #reach = new Map<Gate, LRUCache<string, number>>()

  constructor(clock: MonotonicClock) {
    this.#clock = clock
  }

  /** Throws `too_many_attempts` with the time to wait while any of the attempts is refused. */
  require(attempts: readonly Attempt[]): void {
    const now = this.#clock()
    let waitMs = 0
    for (const { gate, key } of attempts) {
      const { burst, everyMs } = ALLOWANCES[gate]
      const reach = this.#of(gate).get(key) ?? 0
      waitMs = Math.max(waitMs, reach - (burst - 1) * everyMs - now)
    }
    if (waitMs <= 0) return
    const seconds = Math.max(1, Math.ceil(waitMs / SECOND))
    throw new AppError('too_many_attempts', String(seconds), {
      headers: { 'retry-after': String(seconds) },
    })
  }

  /** Counts one more failure for each. Returns the gates that refuse from now on, and did not. */
  count(attempts: readonly Attempt[]): Gate[] {
    const now = this.#clock()
    const engaged: Gate[] = []
    for (const { gate, key } of attempts) {
      const keys = this.#of(gate)
      const { burst, everyMs } = ALLOWANCES[gate]
      const before = Math.max(keys.get(key) ?? 0, now)
      const refusedFrom = now + (burst - 1) * everyMs
      keys.set(key, before + everyMs)
      if (before <= refusedFrom && before + everyMs > refusedFrom) engaged.push(gate)
    }
    return engaged
  }

  /** Forgets the failures of each. */
  clear(attempts: readonly Attempt[]): void {
    for (const { gate, key } of attempts) this.#of(gate).delete(key)
  }

  #of(gate: Gate): LRUCache<string, number> {
    const found = this.#reach.get(gate)
    if (found) return found
    // Told a size instead of a count, it grows with use.
    const made = new LRUCache<string, number>({ maxSize: KEYS_MAX, sizeCalculation: () => 1 })
    this.#reach.set(gate, made)
    return made
  }
}
