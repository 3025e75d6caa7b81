import { LRUCache } from 'lru-cache'
import type { BudgetGroup } from '../accounts/plans.ts'
import type { SharedStore } from '../accounts/shared-store.ts'
import type { Account, AccountId } from '../accounts/store.ts'
import type { Client } from '../hot/client-address.ts'
import { WINDOW_MS } from '../hot/window-shard.ts'
import type { Clocks } from '../lib/clock.ts'
import { script } from '../lib/valkey.ts'
import {
  type Budget,
  type BudgetWindow,
  describe,
  type RateLimiter,
  type Usage,
} from './budgets.ts'
import windowScript from './window.lua' with { type: 'text' }

const CHARGE = script(windowScript)
/** Maximum number of cached refusals: 20 MB. */
const REFUSALS_MAX = 50_000
/**
 * This host records a request after the shared window has, so its own window is full for a moment
 * longer than the shared one.
 */
const RECORDED_LATE_MS = 250

interface ApiLimitsDeps extends Clocks {
  limiter: RateLimiter
  /** Undefined: limits apply to this host. */
  shared: SharedStore | undefined
}

interface Refusal {
  limit: number
  /** On the monotonic clock. */
  until: number
}

/**
 * Limits of the requests that the control thread answers, except redirects. With a shared store
 * they are exact across hosts: it decides, and the windows of this host record what it allows. They
 * decide while the store is unavailable, and always refuse a caller that has used up the budget on
 * this host alone, so neither its failure nor its return gives a caller a second budget here.
 */
export class ApiLimits {
  readonly #deps: ApiLimitsDeps
  readonly #refusals = new LRUCache<string, Refusal>({
    maxSize: REFUSALS_MAX,
    sizeCalculation: () => 1,
  })
  #refused = 0

  constructor(deps: ApiLimitsDeps) {
    this.#deps = deps
  }

  /** Whether all charges are promises. */
  get isShared(): boolean {
    return this.#deps.shared !== undefined
  }

  /** Requests that the shared store has refused. */
  get refused(): number {
    return this.#refused
  }

  /** Spends one request of the caller's budget; a refused request spends nothing. */
  charge(
    budget: BudgetGroup,
    account: Account | undefined,
    client: Client,
  ): Budget | Promise<Budget> {
    return this.#charge(this.#deps.limiter.windowOf(budget, account, client))
  }

  /** The same for several requests of an account, all or none of which a shared store allows. */
  async chargeAccount(budget: BudgetGroup, account: Account, amount = 1): Promise<Budget> {
    return this.#charge(this.#deps.limiter.windowOf(budget, account, NO_CLIENT), amount)
  }

  /** Spends one dashboard request: of the session's account, or of an address without a session. */
  chargePage(account: AccountId | undefined, client: Client): Budget | Promise<Budget> {
    return this.#charge(this.#deps.limiter.pageWindowOf(account, client))
  }

  /** Spends nothing. After a downgrade, more may have been spent than `used` reports. */
  async usage(account: Account): Promise<Record<BudgetGroup, Usage>> {
    const { limiter, shared } = this.#deps
    const usage = limiter.usage(account)
    if (!shared) return usage
    const usedIn = async (budget: BudgetGroup) => {
      const { limit, used } = usage[budget]
      if (limit === 0) return { limit, used }
      const window = limiter.windowOf(budget, account, NO_CLIENT)
      const reply = await shared.run(CHARGE, [keyOf(shared, window)], [limit, 0, WINDOW_MS])
      return { limit, used: reply ? limit - (reply[1] ?? 0) : used }
    }
    const [read, write] = await Promise.all([usedIn('read'), usedIn('write')])
    return { read, write }
  }

  #charge(window: BudgetWindow, amount = 1): Budget | Promise<Budget> {
    const { shared } = this.#deps
    return shared ? this.#share(shared, window, amount) : this.#takeHere(window, amount)
  }

  async #share(shared: SharedStore, window: BudgetWindow, amount: number): Promise<Budget> {
    const { limiter, clock, monotonic } = this.#deps
    const { limit } = window
    if (limit === 0 || limiter.refusesForMs(window) > RECORDED_LATE_MS) {
      return this.#takeHere(window, amount)
    }
    const key = keyOf(shared, window)
    const now = monotonic()
    const known = this.#refusals.get(key)
    if (known?.limit === limit && known.until > now) return this.#refuse(limit, known.until - now)
    const reply = await shared.run(CHARGE, [key], [limit, amount, WINDOW_MS])
    if (!reply) return this.#takeHere(window, amount)
    const [isAllowed, remaining = 0, resetAfterMs = 0] = reply
    if (isAllowed !== 1) {
      // No request is allowed earlier than after a refusal of a single one.
      if (amount === 1) this.#refusals.set(key, { limit, until: now + resetAfterMs })
      return this.#refuse(limit, resetAfterMs)
    }
    for (let i = 0; i < amount; i++) limiter.takeOf(window)
    return describe(newBudget(), limit, { allowed: true, remaining, resetAfterMs }, clock())
  }

  #refuse(limit: number, resetAfterMs: number): Budget {
    this.#refused++
    const decision = { allowed: false, remaining: 0, resetAfterMs }
    return describe(newBudget(), limit, decision, this.#deps.clock())
  }

  /** The decision of this host alone. */
  #takeHere(window: BudgetWindow, amount: number): Budget {
    const { limiter } = this.#deps
    let budget = limiter.takeOf(window)
    for (let i = 1; i < amount && budget.allowed; i++) budget = limiter.takeOf(window)
    return { ...budget }
  }
}

const NO_CLIENT: Client = { keyHigh: 0, keyLow: 0 }

const newBudget = () => ({ allowed: true, limit: 0, remaining: 0, resetAt: 0, retryAfter: 1 })

const keyOf = (shared: SharedStore, { callers, budget, keyHigh, keyLow }: BudgetWindow): string =>
  shared.key(budget, `${callers} ${keyHigh} ${keyLow}`)
