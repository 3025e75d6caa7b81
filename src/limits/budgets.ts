import type { BudgetGroup, Budgets, Plan } from '../accounts/plans.ts'
import type { Account, AccountId } from '../accounts/store.ts'
import type { Clock, MonotonicClock } from '../lib/clock.ts'
import { SlidingWindow } from './window.ts'

/** Callers remembered per window: see window.ts for what each costs. */
const ADDRESSES_MAX = 393_216
const ACCOUNTS_MAX = 49_152

/** What the headers of a budget without a limit say: the largest 32-bit integer. */
const UNLIMITED = 2_147_483_647

/** An address as the window's 64-bit key. */
export interface AddressKey {
  readonly keyHigh: number
  readonly keyLow: number
}

interface BudgetsOptions {
  plans: Readonly<Record<Plan, Budgets>>
  anonymous: Budgets
  /** Requests of the dashboard, of an account or of an address without a session; 0: no limit. */
  pagesPerMinute: number
  clock: Clock
  monotonic: MonotonicClock
}

/** What an account has spent of a budget in the last 60 seconds. */
export interface Usage {
  /** 0 means no limit: then nothing is counted. */
  limit: number
  used: number
}

/** One of the limiter's windows, for those who run the service. */
export interface LimiterWindow {
  callers: 'account' | 'address'
  budget: BudgetGroup | 'page'
  window: Pick<SlidingWindow, 'size' | 'bytes' | 'refused' | 'overflowed' | 'arenaRefused'>
}

/**
 * HOT PATH. One read and one write window per account, and per address for callers without a valid
 * key. Accounts have windows of their own, so that no flood of addresses can crowd them out.
 */
export class RateLimiter {
  readonly #options: BudgetsOptions
  readonly #accounts: Record<BudgetGroup, SlidingWindow>
  readonly #addresses: Record<BudgetGroup, SlidingWindow>
  readonly #pages = {
    account: new SlidingWindow({ keysMax: ACCOUNTS_MAX }),
    address: new SlidingWindow({ keysMax: ADDRESSES_MAX }),
  }

  /** Of the last `take`: what `X-RateLimit-*` and `Retry-After` say. */
  limit = 0
  remaining = 0
  /** Unix seconds at which the oldest request counted leaves the window. */
  resetAt = 0
  /** Whole seconds until the next request passes; of a refusal only. */
  retryAfter = 0

  constructor(options: BudgetsOptions) {
    this.#options = options
    const windows = (keysMax: number) => ({
      read: new SlidingWindow({ keysMax }),
      write: new SlidingWindow({ keysMax }),
    })
    this.#accounts = windows(ACCOUNTS_MAX)
    this.#addresses = windows(ADDRESSES_MAX)
  }

  windows(): LimiterWindow[] {
    const windows = (['read', 'write'] as const).flatMap((budget): LimiterWindow[] => [
      { callers: 'account', budget, window: this.#accounts[budget] },
      { callers: 'address', budget, window: this.#addresses[budget] },
    ])
    return [
      ...windows,
      { callers: 'account', budget: 'page', window: this.#pages.account },
      { callers: 'address', budget: 'page', window: this.#pages.address },
    ]
  }

  /** Spends nothing. A budget that was lowered may be used up by less than was spent of it. */
  usage({ id, plan }: Account): Record<BudgetGroup, Usage> {
    const { plans, monotonic } = this.#options
    const of = (group: BudgetGroup): Usage => {
      const limit = plans[plan][group]
      if (limit === 0) return { limit, used: 0 }
      const window = this.#accounts[group]
      window.peek(0, id, limit, Math.floor(monotonic()))
      return { limit, used: limit - window.remaining }
    }
    return { read: of('read'), write: of('write') }
  }

  /**
   * Spends one request of the caller's budget; false when there is none left, and then nothing is
   * spent.
   */
  take(group: BudgetGroup, account: Account | undefined, address: AddressKey): boolean {
    const { plans, anonymous, monotonic } = this.#options
    if (account) {
      const window = this.#accounts[group]
      return this.#takeFrom(window, plans[account.plan][group], 0, account.id, monotonic())
    }
    const window = this.#addresses[group]
    return this.#takeFrom(window, anonymous[group], address.keyHigh, address.keyLow, monotonic())
  }

  /** The same for a request of the dashboard: of an account's session, or of nobody's. */
  takePage(account: AccountId | undefined, { keyHigh, keyLow }: AddressKey): boolean {
    const { pagesPerMinute, monotonic } = this.#options
    return account === undefined
      ? this.#takeFrom(this.#pages.address, pagesPerMinute, keyHigh, keyLow, monotonic())
      : this.#takeFrom(this.#pages.account, pagesPerMinute, 0, account, monotonic())
  }

  #takeFrom(
    window: SlidingWindow,
    budget: number,
    keyHigh: number,
    keyLow: number,
    now: number,
  ): boolean {
    const time = this.#options.clock()
    if (budget === 0) {
      this.limit = UNLIMITED
      this.remaining = UNLIMITED
      this.resetAt = Math.ceil(time / 1000)
      return true
    }
    const passes = window.take(keyHigh, keyLow, budget, Math.floor(now))
    this.limit = budget
    this.remaining = window.remaining
    this.resetAt = Math.ceil((time + window.resetAfterMs) / 1000)
    // A refused caller told to wait 0 seconds would come back at once.
    this.retryAfter = Math.max(1, Math.ceil(window.resetAfterMs / 1000))
    return passes
  }
}
