import { AppError, retryAfter } from '../errors.ts'
import { DAY, MINUTE, type MonotonicClock, SECOND } from '../lib/clock.ts'
import { type Rate, RateGate } from '../lib/rate-gate.ts'
import type { VerifyHooks } from './passwords.ts'

/** Failures. */
const ALLOWANCES = {
  /** One account from one address. */
  pair: { burst: 5, everyMs: MINUTE },
  /** One address, whatever account it tries. */
  address: { burst: 30, everyMs: 30 * SECOND },
  /** One /24 of IPv4 or /48 of IPv6: one customer may own it, and its addresses cost nothing. */
  network: { burst: 120, everyMs: 10 * SECOND },
  /** One account from everywhere, by browsers that have never signed in to it. */
  account: { burst: 50, everyMs: MINUTE },
  /** One browser that has signed in to the account before: only its own failures count. */
  device: { burst: 10, everyMs: MINUTE },
  /** The password, entered again in a session. */
  session: { burst: 5, everyMs: MINUTE },
  /** Codes of two-factor sign-in, by browsers that have never signed in to the account. */
  code: { burst: 5, everyMs: 5 * MINUTE },
  /** Codes of two-factor sign-in, by one browser that has signed in to the account before. */
  codeDevice: { burst: 5, everyMs: MINUTE },
  /** New accounts from one address, where registration is open. */
  registration: { burst: 5, everyMs: 10 * MINUTE },
  /** The same from one network, whose addresses cost nothing. */
  registrationNetwork: { burst: 20, everyMs: 10 * MINUTE },
  /** One link from one address, by every way to send its password. */
  linkPair: { burst: 5, everyMs: MINUTE },
  /** One address, whatever link it tries. */
  linkAddress: { burst: 20, everyMs: 30 * SECOND },
  /** One network, as above. */
  linkNetwork: { burst: 60, everyMs: 10 * SECOND },
  /** One link from everywhere. */
  link: { burst: 100, everyMs: 30 * SECOND },
  /** Searches for a code in logos and presets of one account: each takes up to a second of CPU. */
  qrSearch: { burst: 10, everyMs: 12 * SECOND },
} satisfies Record<string, Rate>

/** `registrations`: new accounts of the whole service. */
export type Gate = keyof typeof ALLOWANCES | 'registrations'
export interface Attempt {
  gate: Gate
  key: string
}

/** Gates that many people share: the success of one leaves the failures of the others counted. */
const SHARED_GATES: readonly Gate[] = [
  'address',
  'network',
  'account',
  'linkAddress',
  'linkNetwork',
  'link',
]

/** Keys per gate. Beyond this the least recently used ones are dropped. */
const KEYS_MAX = 50_000

/** Limits guessing, in bounded memory: an attempt is refused while failures use up its gates. */
export class Throttle {
  readonly #monotonic: MonotonicClock
  readonly #allowances: Readonly<Record<Gate, Rate>>
  readonly #gates = new Map<Gate, RateGate>()

  /** `signUpsPerDay`: at least 1. */
  constructor(monotonic: MonotonicClock, { signUpsPerDay }: { signUpsPerDay: number }) {
    this.#monotonic = monotonic
    const registrations = { burst: signUpsPerDay, everyMs: DAY / signUpsPerDay }
    this.#allowances = { ...ALLOWANCES, registrations }
  }

  /** Throws `too_many_attempts` with the time to wait if any of the gates is closed. */
  require(attempts: readonly Attempt[]): void {
    const waitMs = Math.max(0, ...attempts.map(({ gate, key }) => this.#of(gate).waitMs(key)))
    if (waitMs > 0) throw tooManyAttempts(waitMs)
  }

  /** Counts one more failure for each. Returns the gates that this has closed. */
  count(attempts: readonly Attempt[]): Gate[] {
    return attempts.flatMap(({ gate, key }) => {
      const rate = this.#of(gate)
      const wasOpen = rate.waitMs(key) <= 0
      rate.count(key)
      return wasOpen && rate.waitMs(key) > 0 ? gate : []
    })
  }

  /** Forgets the failures after a success, except at gates that many people share. */
  clear(attempts: readonly Attempt[]): void {
    for (const { gate, key } of attempts) {
      if (!SHARED_GATES.includes(gate)) this.#of(gate).clear(key)
    }
  }

  /**
   * Hooks that apply these gates to the verification of a password. `onClosed` is called with each
   * gate that the failure has closed.
   */
  hooks(attempts: readonly Attempt[], onClosed: (gate: Gate) => void): VerifyHooks {
    return {
      before: () => this.require(attempts),
      after: (fits) => {
        if (fits) this.clear(attempts)
        else this.count(attempts).forEach(onClosed)
      },
    }
  }

  #of(gate: Gate): RateGate {
    return this.#gates.getOrInsertComputed(
      gate,
      () => new RateGate(this.#allowances[gate], this.#monotonic, KEYS_MAX),
    )
  }
}

function tooManyAttempts(waitMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(waitMs / SECOND))
  return new AppError('too_many_attempts', String(seconds), retryAfter(seconds))
}
