import { DomainMap } from '../addresses/map.ts'
import { PublicUrls } from '../addresses/urls.ts'
import { SECOND } from '../lib/clock.ts'
import { messageOf } from '../lib/thread.ts'
import { VERSION } from '../lib/version.ts'
import type { OutgoingResult } from '../outgoing/sender.ts'
import type { OpenTask, OutgoingTask, TaskHost } from '../outgoing/thread.ts'
import type { Begun, PendingTest, WebhookCalls } from './control.ts'
import { bodyOf, messageId, type StoredEvent, signedHeaders } from './message.ts'
import { nextAttemptAt } from './schedule.ts'
import { type AttemptResult, type DueDelivery, dueDeliveries, isDelivered } from './store.ts'

const REQUESTS_MAX = 16
const ACCOUNT_REQUESTS_MAX = 3
/** Turns that are remembered. */
const TURNS_MAX = 10_000
const TIMEOUT_MS = 15 * SECOND
const RESPONSE_BYTES_MAX = 4 * 1024
/** The shortest interval of looking for deliveries that are due. */
const POLL_MS = SECOND
/** The longest, while there are webhooks: one may have been enabled on another host. */
const IDLE_MS = 10 * SECOND

/** Sends what is due, on the outgoing thread: one request at a time for each webhook and host. */
export const openWebhooks: OpenTask = (host) => new WebhookTask(host)

class WebhookTask implements OutgoingTask {
  readonly #host: TaskHost
  readonly #findDue: ReturnType<typeof dueDeliveries>
  readonly #addresses: PublicUrls
  /** Webhooks to which a request is in progress, with the name in the URL. */
  readonly #busy = new Map<number, { host: string; accountId: number }>()
  /** A number for the last delivery of an account to a host: later ones have higher numbers. */
  readonly #served = new Map<string, number>()
  #deliveries = 0
  /** Domains may have changed since the last run. */
  readonly #versions = { all: 0 }

  constructor(host: TaskHost) {
    const { db, baseUrl } = host
    this.#host = host
    this.#findDue = dueDeliveries(db)
    const noPages = { rootUrl: undefined, notFoundUrl: undefined }
    const domains = new DomainMap(db, this.#versions, { baseUrl, ...noPages })
    this.#addresses = new PublicUrls({ baseUrl, cdnUrl: baseUrl, domains })
  }

  async run(): Promise<number | undefined> {
    const { tests, isUsed, ...sender } = (await this.#call('webhooks.begin', null)) as Begun
    for (const test of tests) void this.#test(test).catch(ignore)
    this.#versions.all++
    const busy = new Set(this.#busy.keys())
    const now = this.#host.clock()
    const { due, nextAt } = this.#findDue(now, { busy, ...sender })
    const isIdle = due.length === 0 && busy.size === 0
    if (isIdle || this.#served.size > TURNS_MAX) this.#served.clear()
    for (const delivery of this.#inTurn(due)) {
      const { webhookId, accountId, host, key } = delivery
      if (!this.#isFree(accountId, host)) continue
      this.#busy.set(webhookId, { host, accountId })
      this.#served.set(key, ++this.#deliveries)
      void this.#deliver(delivery)
        .finally(() => this.#busy.delete(webhookId))
        .then(() => this.#host.wake(), ignore)
    }
    if (!isUsed) return undefined
    // One that is due may wait for another request to its host, or be sent by another host.
    return Math.min(IDLE_MS, Math.max(POLL_MS, (nextAt ?? now + IDLE_MS) - now))
  }

  /** The accounts of a host take turns: one with a long queue does not keep others waiting. */
  #inTurn(due: readonly DueDelivery[]) {
    const turnOf = ({ key }: { key: string }) => this.#served.get(key) ?? 0
    return due
      .map((delivery) => {
        const { hostname: host } = new URL(delivery.url)
        return { ...delivery, host, key: `${delivery.accountId} ${host}` }
      })
      .sort((a, b) => turnOf(a) - turnOf(b))
  }

  #isFree(accountId: number, host: string): boolean {
    const busy = [...this.#busy.values()]
    const ofAccount = busy.filter((one) => one.accountId === accountId)
    const isInBounds = busy.length < REQUESTS_MAX && ofAccount.length < ACCOUNT_REQUESTS_MAX
    return isInBounds && !busy.some((one) => one.host === host)
  }

  async #deliver(delivery: DueDelivery): Promise<void> {
    const { webhookId, eventId, type, sequence } = delivery
    const attempt = delivery.attempts + 1
    const sent = await this.#send({ ...delivery, id: messageId(delivery) })
    if (!sent) return
    const { status, error, ms, reason, retryAfter } = sent
    const at = this.#host.clock()
    const failed = { attempt, now: at, status, retryAfter, random: Math.random() }
    const nextAt = isDelivered(status) ? null : nextAttemptAt(failed)
    const event = { webhookId, eventId, type, sequence }
    await this.#record({ ...event, attempt, status, error, ms, at, nextAt, reason })
  }

  async #test(test: PendingTest): Promise<void> {
    const { webhookId, id, type, sequence } = test
    const sent = await this.#send({ ...test, dropped: 0 })
    const { status, error, ms, reason } = sent ?? NOT_PREPARED
    const at = this.#host.clock()
    const result = { eventId: 0, type, sequence, attempt: 1, status, error, ms, at, nextAt: null }
    await this.#record({ webhookId, ...result, reason })
    await this.#call('webhooks.testDone', { id, status, error, ms })
  }

  /** Undefined if nothing is to be sent to the URL any more. */
  async #send(request: Sent): Promise<Outcome | undefined> {
    try {
      return await this.#trySend(request)
    } catch (error) {
      return { ...NOT_PREPARED, reason: messageOf(error) }
    }
  }

  async #trySend(request: Sent): Promise<Outcome | undefined> {
    const { webhookId, url, id, type, dropped } = request
    const wanted = { webhookId, url, type }
    const secrets = (await this.#call('webhooks.secrets', wanted)) as Uint8Array[] | undefined
    if (!secrets) return undefined
    const body = bodyOf(request, dropped, this.#addresses)
    const headers = {
      'user-agent': `Hopcode/${VERSION}`,
      ...signedHeaders({ id, body, now: this.#host.clock() }, secrets),
    }
    const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: RESPONSE_BYTES_MAX }
    const target = { method: 'POST', url: new URL(url), headers, body, ...bounds } as const
    return outcomeOf(await this.#host.sender.send(target))
  }

  /** A result that is lost would be sent again: it is kept until it is stored. */
  async #record(result: AttemptResult & { reason?: string | undefined }): Promise<void> {
    while (
      !(await this.#call('webhooks.record', result).then(
        () => true,
        () => false,
      ))
    ) {
      await Bun.sleep(POLL_MS)
    }
  }

  #call = (name: keyof WebhookCalls, args: unknown): Promise<unknown> => this.#host.call(name, args)
}

const ignore = (): void => {}

/** An event for a webhook. `id` names the message. */
interface Sent extends StoredEvent {
  id: string
  webhookId: number
  url: string
  dropped: number
}

interface Outcome {
  status: number | null
  error: string | null
  ms: number
  retryAfter?: string | undefined
  /** Why the request could not be prepared. */
  reason?: string | undefined
}

const NOT_PREPARED: Outcome = { status: null, error: 'internal', ms: 0 }

const outcomeOf = (sent: OutgoingResult): Outcome =>
  sent.ok
    ? { status: sent.status, error: null, ms: sent.ms, retryAfter: sent.headers.retryAfter }
    : { status: null, error: sent.error, ms: sent.ms }
