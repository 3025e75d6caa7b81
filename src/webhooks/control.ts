import { unseal } from '../accounts/sealed.ts'
import type { SecretHasher } from '../accounts/secrets.ts'
import type { EventReader } from '../db/events.ts'
import type { DataOf } from '../db/subject.ts'
import { AppError, retryAfter } from '../errors.ts'
import type { HitCounts } from '../hits/hits.ts'
import type { hits } from '../hits/subject.ts'
import { type Clock, MINUTE, type MonotonicClock, SECOND } from '../lib/clock.ts'
import { withTimeout } from '../lib/deadline.ts'
import type { Log } from '../lib/log.ts'
import { RateGate } from '../lib/rate-gate.ts'
import { HIT_LINKS_MAX } from './events.ts'
import type { StoredEvent } from './message.ts'
import { type AttemptResult, type DueQuery, isDelivered, type webhooks } from './store.ts'

interface WebhooksOptions {
  data: DataOf<{ webhooks: typeof webhooks; hits: typeof hits }>
  hits: Pick<HitCounts, 'of'>
  hasher: SecretHasher
  clock: Clock
  monotonic: MonotonicClock
  log: Log
  /** See `AllowedHosts`. */
  outgoingHosts: readonly string[]
  /** Wakes the task of the outgoing thread. */
  wake: () => void
  /** The id of this host; empty for a host alone. */
  host: string
  /** Ids of the other hosts of the cluster. */
  others: () => readonly string[]
  /** Whether this host does what one host does for all. */
  isFirst: () => boolean
}

/** A `ping` that somebody waits for. */
export interface PendingTest extends StoredEvent {
  /** Names the message. */
  id: string
  webhookId: number
  url: string
}

export interface TestResult {
  status: number | null
  error: string | null
  ms: number
}

export interface Begun extends Omit<DueQuery, 'busy'> {
  tests: readonly PendingTest[]
  isUsed: boolean
  hasHits: boolean
}

export type WebhookCalls = Webhooks['calls']

const TEST_MS = 30 * SECOND
/** Tests of an account. */
const TEST_RATE = { burst: 6, everyMs: MINUTE / 6 }

/** What a secret is encrypted for. */
export const useOf = (accountId: number) =>
  ({ purpose: 'webhook-encryption', about: String(accountId) }) as const

/** The part of webhooks on the control thread: it wakes the task, and writes what that has done. */
export class Webhooks {
  readonly #options: WebhooksOptions
  /** Attempts since the start. */
  readonly attempts = { delivered: 0, failed: 0 }
  readonly outgoingHosts: readonly string[]
  readonly #testRate: RateGate
  #tests: PendingTest[] = []
  readonly #waiting = new Map<string, (result: TestResult) => void>()
  /** When `link.hits` was last looked for, and the counts that it told. */
  #hitsAt: number
  #told: ReadonlyMap<number, number> = new Map()

  constructor(options: WebhooksOptions) {
    this.#options = options
    this.outgoingHosts = options.outgoingHosts
    this.#testRate = new RateGate(TEST_RATE, options.monotonic, 10_000)
    this.#hitsAt = options.clock()
  }

  readonly reader: EventReader = (events) => {
    const { data, wake } = this.#options
    if (events.some(({ what }) => what === 'link') && data.webhooks.isAny()) wake()
  }

  wake = (): void => this.#options.wake()

  /** Sends a `ping` and waits for its result. Throws `rate_limited`. */
  async test(test: PendingTest): Promise<TestResult> {
    const key = String(test.accountId)
    const waitSeconds = Math.ceil(this.#testRate.waitMs(key) / SECOND)
    if (waitSeconds > 0)
      throw new AppError('rate_limited', String(waitSeconds), retryAfter(waitSeconds))
    this.#testRate.count(key)
    const { promise, resolve } = Promise.withResolvers<TestResult>()
    this.#waiting.set(test.id, resolve)
    this.#tests.push(test)
    this.#options.wake()
    // Other requests to the host, or to all, may be before it.
    const late = { status: null, error: 'timeout', ms: TEST_MS }
    const result = await withTimeout(TEST_MS, promise, 'late').catch(() => late)
    this.#waiting.delete(test.id)
    return result
  }

  /** What the task calls. */
  readonly calls = {
    'webhooks.begin': async (): Promise<Begun> => {
      const { data, host, ...cluster } = this.#options
      const isFirst = cluster.isFirst()
      const tests = this.#tests
      this.#tests = []
      const receivers = data.webhooks.listForHits()
      if (isFirst && receivers.length > 0) await this.#addHits(receivers)
      const isUsed = data.webhooks.isAny()
      return {
        tests,
        isUsed,
        hasHits: receivers.length > 0,
        host,
        others: cluster.others(),
        isFirst,
      }
    },

    /** Those that sign at this time. */
    'webhooks.secrets': ({ id }: { id: number }): Uint8Array[] => {
      const { data, hasher, clock } = this.#options
      const found = data.webhooks.secretsOf(id)
      if (!found) return []
      const { accountId, secret, oldSecret, oldEndsAt } = found
      const isOldActive = oldSecret && (oldEndsAt ?? 0) > clock()
      return [secret, ...(isOldActive ? [oldSecret] : [])].map((one) =>
        unseal(hasher, useOf(accountId), one),
      )
    },

    'webhooks.record': async ({
      results,
    }: {
      results: readonly AttemptResult[]
    }): Promise<void> => {
      const { data, log } = this.#options
      const disabled = await data.webhooks.record({ results })
      for (const { status } of results)
        this.attempts[isDelivered(status) ? 'delivered' : 'failed']++
      for (const { id, accountId, reason } of disabled) {
        log.warn('webhook.disabled', { account_id: accountId, webhook_id: id, reason })
      }
    },

    'webhooks.testDone': ({ id, ...result }: TestResult & { id: string }): void => {
      this.#waiting.get(id)?.(result)
    },
  }

  /** Adds an event `link.hits` for each account, at most once a minute. */
  async #addHits(receivers: readonly { id: number; accountId: number }[]): Promise<void> {
    const { data, hits, clock } = this.#options
    const now = clock()
    if (now - this.#hitsAt < MINUTE) return
    const since = this.#hitsAt
    this.#hitsAt = now
    const counts = hits.of(await data.hits.linksSince({ now: since }))
    const isNew = ([id, count]: [number, number]) => this.#told.get(id) !== count
    const changed = [...counts].filter(isNew).map(([id]) => id)
    this.#told = counts
    const byAccount = Map.groupBy(receivers, ({ accountId }) => accountId)
    for (const { accountId, linkIds } of data.webhooks.groupLinks(changed, [...byAccount.keys()])) {
      const told = linkIds.slice(0, HIT_LINKS_MAX)
      await data.webhooks.addHits({
        accountId,
        linkIds: told,
        now,
        hitCounts: told.map((id) => counts.get(id) ?? 0),
        only: byAccount.get(accountId)?.map(({ id }) => id) ?? [],
        more: linkIds.length > HIT_LINKS_MAX,
      })
    }
  }
}
