import { isIP } from 'node:net'
import { seal } from '../accounts/sealed.ts'
import type { SecretHasher } from '../accounts/secrets.ts'
import type { Account } from '../accounts/store.ts'
import { authorOf } from '../db/author.ts'
import type { DataOf } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { type Clock, DAY } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import { AllowedHosts } from '../outgoing/addresses.ts'
import { type TestResult, useOf, type Webhooks } from './control.ts'
import { LINK_EVENTS } from './events.ts'
import { SECRET_BYTES, shownSecret } from './message.ts'
import {
  WEBHOOKS_MAX,
  type Webhook,
  type WebhookChange,
  type WebhookInput,
  type webhooks,
} from './store.ts'

/** Changes of webhooks with their validation, for the API and the dashboard. */

export interface WebhookDeps {
  data: DataOf<{ webhooks: typeof webhooks }>
  webhooks: Pick<Webhooks, 'test' | 'wake' | 'outgoingHosts'>
  hasher: SecretHasher
  random: RandomBytes
  clock: Clock
}

const URL_LENGTH_MAX = 2048
export const BAD_URL = `Invalid url: must be https, at most ${URL_LENGTH_MAX} characters`
export const BAD_EVENTS = `Invalid events: must be some of ${LINK_EVENTS.join(', ')}`
/** How long the old secret signs too after a rotation. */
export const OVERLAP_MS = DAY

/**
 * A URL in its normal form. Throws `invalid_value`. Whether the addresses of its name are public is
 * decided at each attempt: here, the answer would tell about the network of the service.
 */
function requireUrl({ webhooks: { outgoingHosts } }: WebhookDeps, text: string): string {
  const url = text.length <= URL_LENGTH_MAX ? URL.parse(text) : null
  const isPlain = url && /^https?:$/.test(url.protocol) && url.username + url.password === ''
  if (!isPlain) throw new AppError('invalid_value', BAD_URL)
  const allowed = new AllowedHosts(outgoingHosts)
  const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isLiteral = isIP(literal) !== 0
  const isNamed = allowed.hasName(url.hostname) || (isLiteral && allowed.hasAddress(literal))
  // The name may be one of a network that the operator has named.
  const mayBeInside = !isLiteral && outgoingHosts.some((entry) => isIP(entry.replace(/\/.*/, '')))
  const isUsual = url.protocol === 'https:' && (url.port === '' || Number(url.port) >= 1024)
  if (!isNamed && !mayBeInside && (isLiteral || !isUsual))
    throw new AppError('invalid_value', BAD_URL)
  return url.href
}

/** Throws `webhook_not_found` for one of another account, too. */
export function requireWebhook({ data }: Pick<WebhookDeps, 'data'>, account: Account, id: string) {
  const found = data.webhooks.listOf(account.id).find((one) => String(one.id) === id)
  if (!found) throw new AppError('webhook_not_found', id)
  return found
}

/** Returns the webhook with its secret, which is shown once. Throws `quota_exceeded`. */
export async function createWebhook(
  deps: WebhookDeps,
  account: Account,
  { url: text, events }: WebhookInput,
): Promise<{ webhook: Webhook; secret: string }> {
  const author = authorOf(account, deps.clock())
  const url = requireUrl(deps, text)
  const { secret, sealed } = newSecret(deps, account)
  const id = await deps.data.webhooks.create({ author, url, events, secret: sealed })
  if (id === undefined) throw new AppError('quota_exceeded', `${WEBHOOKS_MAX} webhooks`)
  // Without a change of a link, nothing else starts the task for `link.hits`.
  deps.webhooks.wake()
  return { webhook: requireWebhook(deps, account, String(id)), secret }
}

export async function changeWebhook(
  deps: WebhookDeps,
  account: Account,
  { id, ...change }: WebhookChange & { id: string },
): Promise<Webhook> {
  const webhook = requireWebhook(deps, account, id)
  const url = change.url === undefined ? undefined : requireUrl(deps, change.url)
  const author = authorOf(account, deps.clock())
  await deps.data.webhooks.change({ ...change, author, id: webhook.id, url })
  deps.webhooks.wake()
  return requireWebhook(deps, account, id)
}

/** Returns the new secret, which is shown once. */
export async function rotateSecret(
  deps: WebhookDeps,
  account: Account,
  id: string,
): Promise<{ secret: string; oldEndsAt: number }> {
  const webhook = requireWebhook(deps, account, id)
  const now = deps.clock()
  const oldEndsAt = now + OVERLAP_MS
  const { secret, sealed } = newSecret(deps, account)
  const command = { id: webhook.id, author: authorOf(account, now), secret: sealed, oldEndsAt }
  if (!(await deps.data.webhooks.rotate(command))) throw new AppError('webhook_not_found', id)
  return { secret, oldEndsAt }
}

export async function removeWebhook(
  deps: WebhookDeps,
  account: Account,
  text: string,
): Promise<number> {
  const { id } = requireWebhook(deps, account, text)
  await deps.data.webhooks.remove({ id, author: authorOf(account, deps.clock()) })
  return id
}

/** Sends one `ping`. Throws `rate_limited`. */
export async function testWebhook(
  deps: WebhookDeps,
  account: Account,
  id: string,
): Promise<TestResult> {
  const { id: webhookId, url } = requireWebhook(deps, account, id)
  const now = deps.clock()
  const ping = { type: 'ping', sequence: 0, body: '[]', more: 0, createdAt: now } as const
  const name = `msg_${Buffer.from(deps.random(20)).toString('base64url')}`
  return deps.webhooks.test({ ...ping, accountId: account.id, id: name, webhookId, url })
}

function newSecret(deps: WebhookDeps, { id }: Account) {
  const secret = deps.random(SECRET_BYTES)
  return { secret: shownSecret(secret), sealed: seal(deps, useOf(id), secret) }
}
