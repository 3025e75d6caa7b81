import { DomainMap } from '../addresses/map.ts'
import { PublicUrls } from '../addresses/urls.ts'
import { SECOND } from '../lib/clock.ts'
import { VERSION } from '../lib/version.ts'
import type { OutgoingResult } from '../outgoing/sender.ts'
import type { OpenTask, OutgoingTask, TaskHost } from '../outgoing/thread.ts'
import type { Begun, PendingTest, WebhookCalls } from './control.ts'
import { bodyOf, messageId, signedHeaders } from './message.ts'
import { nextAttemptAt } from './schedule.ts'
import { type AttemptResult, type DueDelivery, dueDeliveries, isDelivered } from './store.ts'

const REQUESTS_MAX = 16
const TIMEOUT_MS = 15 * SECOND
const RESPONSE_BYTES_MAX = 4 * 1024
/** Interval of looking for deliveries that are due, while some wait. */
const POLL_MS = SECOND
/** While there are webhooks: one may have been enabled on another host. */
const IDLE_MS = 10 * SECOND

/** Sends what is due, on the outgoing thread: one request at a time for each webhook and host. */
export const openWebhooks: OpenTask = (host) => new WebhookTask(host)

class WebhookTask implements OutgoingTask {
  readonly #host: TaskHost
  readonly #findDue: ReturnType<typeof dueDeliveries>
  readonly #addresses: PublicUrls
  /** The name in the URL of each webhook to which a request is in progress. */
  readonly #busy = new Map<number, string>()
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
    const { tests, isUsed, hasHits, ...sender } = (await this.#call(
      'webhooks.begin',
      null,
    )) as Begun
    for (const test of tests) void this.#test(test).catch(ignore)
    this.#versions.all++
    const busy = new Set(this.#busy.keys())
    const { due, isWaiting } = this.#findDue(this.#host.clock(), { busy, ...sender })
    for (const delivery of due) {
      const { hostname: host } = new URL(delivery.url)
      const isFree = this.#busy.size < REQUESTS_MAX && ![...this.#busy.values()].includes(host)
      if (!isFree) continue
      this.#busy.set(delivery.webhookId, host)
      // If what is needed for it cannot be read, a later run tries again.
      void this.#deliver(delivery)
        .finally(() => this.#busy.delete(delivery.webhookId))
        .then(() => this.#host.wake(), ignore)
    }
    if (isWaiting || hasHits) return POLL_MS
    return isUsed ? IDLE_MS : undefined
  }

  async #deliver(delivery: DueDelivery): Promise<void> {
    const { webhookId, eventId, url, type, sequence, dropped } = delivery
    const body = bodyOf(delivery, dropped, this.#addresses)
    const attempt = delivery.attempts + 1
    const { status, error, ms, retryAfter } = await this.#send({
      webhookId,
      url,
      body,
      id: messageId(delivery),
    })
    const at = this.#host.clock()
    const failed = { attempt, now: at, status, retryAfter, random: Math.random() }
    const nextAt = isDelivered(status) ? null : nextAttemptAt(failed)
    const event = { webhookId, eventId, type, sequence }
    await this.#record({ ...event, attempt, status, error, ms, at, nextAt })
  }

  async #test({ webhookId, url, id, ...event }: PendingTest): Promise<void> {
    const body = bodyOf(event, 0, this.#addresses)
    const { status, error, ms } = await this.#send({ webhookId, url, body, id })
    const { type, sequence } = event
    const at = this.#host.clock()
    const result = { eventId: 0, type, sequence, attempt: 1, status, error, ms, at, nextAt: null }
    await this.#record({ webhookId, ...result })
    await this.#call('webhooks.testDone', { id, status, error, ms })
  }

  async #send(request: { webhookId: number; url: string; body: string; id: string }) {
    const { webhookId, url, body, id } = request
    const secrets = (await this.#call('webhooks.secrets', { id: webhookId })) as Uint8Array[]
    const headers = {
      'user-agent': `Hopcode/${VERSION}`,
      ...signedHeaders({ id, body, now: this.#host.clock() }, secrets),
    }
    const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: RESPONSE_BYTES_MAX }
    const target = { method: 'POST', url: new URL(url), headers, body, ...bounds } as const
    return outcomeOf(await this.#host.sender.send(target))
  }

  /** A result that is lost would be sent again: it is kept until it is stored. */
  async #record(result: AttemptResult): Promise<void> {
    while (
      !(await this.#call('webhooks.record', { results: [result] }).then(
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

const outcomeOf = (sent: OutgoingResult) =>
  sent.ok
    ? { status: sent.status, error: null, ms: sent.ms, retryAfter: sent.headers.retryAfter }
    : { status: null, error: sent.error, ms: sent.ms, retryAfter: undefined }
