import type { AnonymousBudgets, BudgetGroup, Budgets, Plan } from '../accounts/plans.ts'
import type { Account, AccountId } from '../accounts/store.ts'
import { IPV6_GROUPS } from '../hot/ipv6-groups.ts'
import { SlidingWindow } from '../hot/sliding-window.ts'
import type { Clock, MonotonicClock } from '../lib/clock.ts'

/** Callers remembered per window: see window.ts for what each costs. */
const ADDRESSES_MAX = 393_216
const ACCOUNTS_MAX = 49_152

/** Addresses beyond their reads that ask for codes not in memory, and what each may have read. */
const LOOK_UP_ADDRESSES_MAX = 49_152
const LOOK_UP_BYTES_MAX = 2 ** 20
const LOOK_UPS_PER_MINUTE = 60

/** What the headers of a budget without a limit say: the largest 32-bit integer. */
const UNLIMITED = 2_147_483_647

/** An address as the window's 64-bit key. */
export interface AddressKey {
  readonly keyHigh: number
  readonly keyLow: number
}

interface BudgetsOptions {
  plans: Readonly<Record<Plan, Budgets>>
  anonymous: AnonymousBudgets
  /** Requests of the dashboard, of an account or of an address without a session; 0: no limit. */
  pagesPerMinute: number
  /** Addresses told apart at once; tests pass fewer. */
  addressesMax?: number | undefined
  clock: Clock
  monotonic: MonotonicClock
}

/** What an account has spent of a budget in the last 60 seconds. */
export interface Usage {
  /** 0 means no limit: then nothing is counted. */
  limit: number
  used: number
}

/** What a request may be charged to. A redirect of an account is charged to its reads. */
export type Charge = BudgetGroup | 'redirect'

/** One of the limiter's windows, for operators. */
export interface LimiterWindow {
  callers: 'account' | 'address'
  budget: Charge | 'look_up' | 'page'
  window: Pick<
    SlidingWindow,
    'size' | 'bytes' | 'refused' | 'overflowed' | 'arenaRefused' | 'uncounted'
  >
}

/**
 * HOT PATH. One read and one write window per account, and per address for callers without a valid
 * key, where redirects that find their link have a third. Accounts have windows of their own, so
 * that no flood of addresses can crowd them out. Redirects fail open: when more addresses come than
 * can be counted, links go on working.
 */
export class RateLimiter {
  readonly #options: BudgetsOptions
  readonly #accounts: Record<BudgetGroup, SlidingWindow>
  readonly #addresses: Record<Charge, SlidingWindow>
  readonly #lookUps: SlidingWindow
  readonly #pages: Record<'account' | 'address', SlidingWindow>

  /** Of the last `take`: what `X-RateLimit-*` and `Retry-After` say. */
  limit = 0
  remaining = 0
  /** Unix seconds at which the oldest request counted leaves the window. */
  resetAt = 0
  /** Whole seconds until the next request passes; of a refusal only. */
  retryAfter = 0

  constructor(options: BudgetsOptions) {
    this.#options = options
    const keysMax = options.addressesMax ?? ADDRESSES_MAX
    const groups = IPV6_GROUPS
    this.#accounts = {
      read: new SlidingWindow({ keysMax: ACCOUNTS_MAX }),
      write: new SlidingWindow({ keysMax: ACCOUNTS_MAX }),
    }
    this.#addresses = {
      read: new SlidingWindow({ keysMax, groups }),
      write: new SlidingWindow({ keysMax, groups }),
      redirect: new SlidingWindow({ keysMax, groups, failsOpen: true }),
    }
    this.#lookUps = new SlidingWindow({
      keysMax: Math.min(keysMax, LOOK_UP_ADDRESSES_MAX),
      arenaBytesMax: LOOK_UP_BYTES_MAX,
      groups,
      failsOpen: true,
    })
    this.#pages = {
      account: new SlidingWindow({ keysMax: ACCOUNTS_MAX }),
      address: new SlidingWindow({ keysMax, groups }),
    }
  }

  windows(): LimiterWindow[] {
    const { read, write, redirect } = this.#addresses
    return [
      { callers: 'account', budget: 'read', window: this.#accounts.read },
      { callers: 'account', budget: 'write', window: this.#accounts.write },
      { callers: 'account', budget: 'page', window: this.#pages.account },
      { callers: 'address', budget: 'read', window: read },
      { callers: 'address', budget: 'write', window: write },
      { callers: 'address', budget: 'page', window: this.#pages.address },
      { callers: 'address', budget: 'redirect', window: redirect },
      { callers: 'address', budget: 'look_up', window: this.#lookUps },
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
  take(
    charge: Charge,
    account: Account | undefined,
    address: AddressKey,
    now = this.#options.monotonic(),
  ): boolean {
    const { plans, anonymous } = this.#options
    if (account) {
      const group = charge === 'redirect' ? 'read' : charge
      const window = this.#accounts[group]
      return this.#takeFrom(window, plans[account.plan][group], 0, account.id, now)
    }
    const window = this.#addresses[charge]
    return this.#takeFrom(window, anonymous[charge], address.keyHigh, address.keyLow, now)
  }

  /**
   * Whether the database may be asked for a code that memory cannot tell of; false is a refusal as
   * by `take`. Asked before it is known what the request is charged to: `found` if somebody holds
   * the code, else the reads. While neither is used up, yes. Beyond that an address still has a few
   * look-ups a minute, so that links go on working beside a scanner behind the same address.
   */
  mayLookUp(found: Charge, account: Account | undefined, address: AddressKey): boolean {
    const now = Math.floor(this.#options.monotonic())
    const charges = [found, 'read'] as const
    const spent = charges.find((charge) => this.#isSpent(charge, account, address, now))
    if (spent === undefined) return true
    const { keyHigh, keyLow } = address
    if (!account && this.#lookUps.take(keyHigh, keyLow, LOOK_UPS_PER_MINUTE, now)) return true
    return this.take(spent, account, address, now)
  }

  #isSpent(
    charge: Charge,
    account: Account | undefined,
    address: AddressKey,
    now: number,
  ): boolean {
    const { plans, anonymous } = this.#options
    if (account) {
      const budget = plans[account.plan].read
      return budget !== 0 && this.#accounts.read.isSpent(0, account.id, budget, now)
    }
    const budget = anonymous[charge]
    const { keyHigh, keyLow } = address
    return budget !== 0 && this.#addresses[charge].isSpent(keyHigh, keyLow, budget, now)
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
