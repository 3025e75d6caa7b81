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
import { messageOf } from '../lib/thread.ts'
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
}

interface Told {
  at: number
  eventId: number
}

/** Webhooks, and the counts that they get. */
interface Untold {
  group: readonly { id: number; accountId: number }[]
  counts: ReadonlyMap<number, number>
  now: number
}

export type WebhookCalls = Webhooks['calls']

/** Events of this time wake the task once. */
const WAKE_MS = 50
const TEST_MS = 30 * SECOND
/** A host that looks for hits for the first time: the one before may not have told these. */
const UNTOLD_MS = 5 * MINUTE
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
  /** When hits were last looked for, and their counts. */
  #hitsAt: number
  #counts: ReadonlyMap<number, number> = new Map()
  /** Until when each webhook for `link.hits` was told, and the last event that did. */
  #told = new Map<number, Told>()
  #isWaking = false
  /** Webhooks whose requests could not be prepared. */
  readonly #unprepared = new Set<number>()

  constructor(options: WebhooksOptions) {
    this.#options = options
    this.outgoingHosts = options.outgoingHosts
    this.#testRate = new RateGate(TEST_RATE, options.monotonic, 10_000)
    this.#hitsAt = options.clock()
  }

  readonly reader: EventReader = (events) => {
    const { data, wake } = this.#options
    if (this.#isWaking || !events.some(({ what }) => what === 'link')) return
    if (!data.webhooks.isAny()) return
    this.#isWaking = true
    setTimeout(() => {
      this.#isWaking = false
      wake()
    }, WAKE_MS).unref()
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
      const { data, host, log, ...cluster } = this.#options
      const isFirst = cluster.isFirst()
      if (isFirst) {
        await this.#addHits().catch((error) =>
          log.warn('webhook.hits_failed', { reason: messageOf(error) }),
        )
      }
      const tests = this.#tests
      this.#tests = []
      return { tests, isUsed: data.webhooks.isAny(), host, others: cluster.others(), isFirst }
    },

    /** Those that sign at this time; undefined if nothing is to be sent to the URL any more. */
    'webhooks.secrets': (wanted: Pick<PendingTest, 'webhookId' | 'url' | 'type'>) => {
      const { data, hasher, clock } = this.#options
      const found = data.webhooks.secretsOf(wanted.webhookId)
      if (found?.url !== wanted.url) return undefined
      if (found.enabled === 0 && wanted.type !== 'ping') return undefined
      const { accountId, secret, oldSecret, oldEndsAt } = found
      const isOldActive = oldSecret && (oldEndsAt ?? 0) > clock()
      return [secret, ...(isOldActive ? [oldSecret] : [])].map((one) =>
        unseal(hasher, useOf(accountId), one),
      )
    },

    /** `reason`: why the request could not be prepared. */
    'webhooks.record': async ({ reason, ...result }: AttemptResult & { reason?: string }) => {
      const { data, log } = this.#options
      const { webhookId } = result
      const disabled = await data.webhooks.record({ results: [result] })
      this.attempts[isDelivered(result.status) ? 'delivered' : 'failed']++
      if (reason !== undefined && !this.#unprepared.has(webhookId)) {
        this.#unprepared.add(webhookId)
        log.warn('webhook.not_prepared', { webhook_id: webhookId, reason })
      }
      for (const { id, accountId, reason } of disabled) {
        log.warn('webhook.disabled', { account_id: accountId, webhook_id: id, reason })
      }
    },

    'webhooks.testDone': ({ id, ...result }: TestResult & { id: string }): void => {
      this.#waiting.get(id)?.(result)
    },
  }

  /** Once a minute, tells webhooks of the hits since they were last told. */
  async #addHits(): Promise<void> {
    const { data, hits, clock } = this.#options
    const now = clock()
    const last = { at: this.#hitsAt, counts: this.#counts }
    if (now - last.at < MINUTE) return
    this.#hitsAt = now
    const receivers = data.webhooks.listForHits()
    const told = new Map<number, Told>()
    for (const { id, createdAt } of receivers) {
      const unknown = { at: Math.max(createdAt, now - UNTOLD_MS), eventId: 0 }
      told.set(id, this.#told.get(id) ?? unknown)
    }
    this.#told = told
    const ready = receivers.filter(
      ({ id }) => !data.webhooks.isQueued(told.get(id)?.eventId ?? 0, id),
    )
    let first: ReadonlyMap<number, number> | undefined
    for (const [since, group] of Map.groupBy(ready, ({ id }) => told.get(id)?.at ?? now)) {
      const counts = hits.of(await data.hits.linksSince({ now: since }))
      // What is counted after the first group is told once more, rather than never.
      first ??= counts
      this.#counts = first
      const isNew = ([id, count]: [number, number]) =>
        since !== last.at || last.counts.get(id) !== count
      await this.#tell({ group, counts: new Map([...counts].filter(isNew)), now })
    }
  }

  /** Adds an event `link.hits` for each account. */
  async #tell({ group, counts, now }: Untold): Promise<void> {
    const { data, log } = this.#options
    const byAccount = Map.groupBy(group, ({ accountId }) => accountId)
    const links = data.webhooks.groupLinks([...counts.keys()], [...byAccount.keys()])
    const linksOf = new Map(links.map(({ accountId, linkIds }) => [accountId, linkIds]))
    for (const [accountId, receivers] of byAccount) {
      const all = linksOf.get(accountId) ?? []
      const linkIds = all.slice(0, HIT_LINKS_MAX)
      const hitCounts = linkIds.map((id) => counts.get(id) ?? 0)
      const only = receivers.map(({ id }) => id)
      const more = all.length > HIT_LINKS_MAX
      try {
        const event = { accountId, linkIds, hitCounts, only, more, now }
        const eventId = all.length > 0 ? await data.webhooks.addHits(event) : undefined
        for (const id of only) this.#told.set(id, { at: now, eventId: eventId ?? 0 })
      } catch (error) {
        log.warn('webhook.hits_failed', { account_id: accountId, reason: messageOf(error) })
      }
    }
  }
}
