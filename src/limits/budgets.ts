import type { AnonymousBudgets, BudgetGroup, Budgets, Plan } from '../accounts/plans.ts'
import type { Account, AccountId, KeyHolder } from '../accounts/store.ts'
import type { Client } from '../hot/client-address.ts'
import { SlidingWindow, type WindowMemory } from '../hot/sliding-window.ts'
import type { Clock, MonotonicClock } from '../lib/clock.ts'

/** The account whose budget a request spends. */
type Spender = Pick<Account, 'id' | 'plan'>

/** Maximum number of callers per window. hot/sliding-window.ts states the memory of each. */
const ADDRESSES_MAX = 393_216
const ACCOUNTS_MAX = 49_152
/** Room in each of 8 shards for an address with the highest budget: 1,000,000 requests. */
const ADDRESS_ARENA_BYTES = 18 * 2 ** 20

/** Sent in the headers of a budget without a limit: the largest 32-bit integer. */
const UNLIMITED = 2_147_483_647

/** The higher half of a caller that is a key. That of an account is 0. */
const OF_KEY = 1

interface Limits {
  plans: Readonly<Record<Plan, Budgets>>
  anonymous: AnonymousBudgets
  /** Dashboard requests of an account, or of an address without a session; 0: no limit. */
  pagesPerMinute: number
}

interface LimiterOptions extends Limits {
  /** Maximum number of addresses at once; tests pass fewer. */
  addressesMax?: number | undefined
}

type OfAccounts<Window> = Record<BudgetGroup | 'page', Window>
type OfAddresses<Window> = Record<Charge | 'page', Window>

/** A limiter that can be sent to another thread, which then shares its windows. */
export interface LimiterMemory extends Limits {
  accounts: OfAccounts<WindowMemory>
  addresses: OfAddresses<WindowMemory>
}

interface LimiterThread {
  clock: Clock
  /** The same for all threads that share the windows. */
  monotonic: MonotonicClock
  /** Its number, from 1 to 1,000,000, if there are several. */
  thread?: number | undefined
}

/** Requests of an account in the last 60 seconds. */
export interface Usage {
  /** 0 means no limit: then nothing is counted. */
  limit: number
  used: number
}

/** The decision about one request, as `X-RateLimit-*` and `Retry-After` report it. */
export interface Budget {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the oldest counted request leaves the window. */
  readonly resetAt: number
  /** Whole seconds, at least 1, until the next request is allowed. Only for a refusal. */
  readonly retryAfter: number
}

/** What a request may be charged to. A redirect of an account is charged to its reads. */
type Charge = BudgetGroup | 'redirect'

/** One of the limiter's windows, for operators. */
export interface LimiterWindow {
  callers: 'account' | 'address'
  budget: string
  window: Pick<
    SlidingWindow,
    'size' | 'bytes' | 'refused' | 'overflowed' | 'arenaRefused' | 'uncounted' | 'resets'
  >
}

/**
 * HOT PATH. One read and one write window per account, and per address for callers without a valid
 * key, where redirects that find their link have a third. Accounts have windows of their own, so
 * no flood of addresses can displace them. Redirects fail open: when more addresses come than can
 * be counted, links continue to work. Threads that share the memory count together, exactly.
 *
 * Every call returns the same `Budget` object, so a redirect allocates none: read it before the
 * next call and before an `await`.
 */
export class RateLimiter {
  /** For other threads: a limiter of this memory shares the windows. */
  readonly memory: LimiterMemory
  readonly #thread: LimiterThread
  readonly #accounts: OfAccounts<SlidingWindow>
  readonly #addresses: OfAddresses<SlidingWindow>
  readonly #budget = { allowed: true, limit: 0, remaining: 0, resetAt: 0, retryAfter: 1 }

  static allocate(options: LimiterOptions): LimiterMemory {
    const { plans, anonymous, pagesPerMinute, addressesMax } = options
    const ofAccounts = () => SlidingWindow.allocate({ keysMax: ACCOUNTS_MAX })
    const ofAddresses = (failsOpen = false) =>
      SlidingWindow.allocate({
        keysMax: addressesMax ?? ADDRESSES_MAX,
        arenaBytesMax: ADDRESS_ARENA_BYTES,
        areAddresses: true,
        failsOpen,
      })
    return {
      plans,
      anonymous,
      pagesPerMinute,
      accounts: { read: ofAccounts(), write: ofAccounts(), page: ofAccounts() },
      addresses: {
        read: ofAddresses(),
        write: ofAddresses(),
        page: ofAddresses(),
        redirect: ofAddresses(true),
      },
    }
  }

  constructor(memory: LimiterMemory, thread: LimiterThread) {
    const attach = (window: WindowMemory) => new SlidingWindow(window, thread.thread)
    this.memory = memory
    this.#thread = thread
    this.#accounts = mapValues(memory.accounts, attach)
    this.#addresses = mapValues(memory.addresses, attach)
  }

  windows(): LimiterWindow[] {
    const windows = { account: this.#accounts, address: this.#addresses }
    return (['account', 'address'] as const).flatMap((callers) =>
      Object.entries(windows[callers]).map(([budget, window]) => ({ callers, budget, window })),
    )
  }

  /** Call it for a thread that has ended: otherwise others might wait for its locks. */
  releaseLocksOf(thread: number): void {
    for (const windows of [this.#accounts, this.#addresses]) {
      for (const window of Object.values(windows)) window.releaseLocksOf(thread)
    }
  }

  /** Spends nothing. After a downgrade, more may have been spent than `used` reports. */
  usage({ id, plan }: Spender): Record<BudgetGroup, Usage> {
    const { plans } = this.memory
    const now = Math.floor(this.#thread.monotonic())
    const of = (group: BudgetGroup): Usage => {
      const limit = plans[plan][group]
      if (limit === 0) return { limit, used: 0 }
      const { remaining } = this.#accounts[group].peek(0, id, limit, now)
      return { limit, used: limit - remaining }
    }
    return { read: of('read'), write: of('write') }
  }

  /** Whether `take` would allow a request. Spends nothing. */
  hasRoom(charge: BudgetGroup, account: Spender | undefined, client: Client): boolean {
    const { plans, anonymous } = this.memory
    const limit = account ? plans[account.plan][charge] : anonymous[charge]
    const window = account ? this.#accounts[charge] : this.#addresses[charge]
    const now = Math.floor(this.#thread.monotonic())
    const [high, low] = account ? [0, account.id] : [client.keyHigh, client.keyLow]
    return limit === 0 || window.peek(high, low, limit, now).allowed
  }

  /** Spends one request of the caller's budget; a refused request spends nothing. */
  take(charge: Charge, account: Spender | undefined, { keyHigh, keyLow }: Client): Budget {
    if (account) return this.takeOf(account, charge === 'redirect' ? 'read' : charge)
    const limit = this.memory.anonymous[charge]
    return this.#takeFrom(this.#addresses[charge], limit, keyHigh, keyLow)
  }

  /** Spends one request of the account's budget. */
  takeOf({ id, plan }: Spender, group: BudgetGroup): Budget {
    return this.#takeFrom(this.#accounts[group], this.memory.plans[plan][group], 0, id)
  }

  /** Spends one request of the key's own limit, if it has one, and of its account's budget. */
  takeOfKey(key: Omit<KeyHolder, 'keyScope' | 'origins'>, group: BudgetGroup): Budget {
    if (key.perMinute === null) return this.takeOf(key, group)
    const { keyId } = key.by
    const own = { ...this.#takeFrom(this.#accounts[group], key.perMinute, OF_KEY, keyId) }
    if (!own.allowed) return own
    const shared = this.takeOf(key, group)
    return shared.allowed && own.remaining < shared.remaining ? own : shared
  }

  /** Spends one dashboard request: of the session's account, or of an address without a session. */
  takePage(account: AccountId | undefined, { keyHigh, keyLow }: Client): Budget {
    const { pagesPerMinute } = this.memory
    return account === undefined
      ? this.#takeFrom(this.#addresses.page, pagesPerMinute, keyHigh, keyLow)
      : this.#takeFrom(this.#accounts.page, pagesPerMinute, 0, account)
  }

  /** `limit` 0: no limit. */
  #takeFrom(window: SlidingWindow, limit: number, keyHigh: number, keyLow: number): Budget {
    const budget = this.#budget
    const time = this.#thread.clock()
    if (limit === 0) {
      budget.allowed = true
      budget.limit = UNLIMITED
      budget.remaining = UNLIMITED
      budget.resetAt = Math.ceil(time / 1000)
      return budget
    }
    const now = Math.floor(this.#thread.monotonic())
    const { allowed, remaining, resetAfterMs } = window.take(keyHigh, keyLow, limit, now)
    budget.allowed = allowed
    budget.limit = limit
    budget.remaining = remaining
    budget.resetAt = Math.ceil((time + resetAfterMs) / 1000)
    // A client that reads 0 seconds would try again at once.
    budget.retryAfter = Math.max(1, Math.ceil(resetAfterMs / 1000))
    return budget
  }
}

function mapValues<Name extends string, From, To>(
  from: Record<Name, From>,
  to: (value: From) => To,
) {
  const entries = Object.entries<From>(from).map(([name, value]) => [name, to(value)])
  return Object.fromEntries(entries) as Record<Name, To>
}
