/** Bodies and signatures of requests, as Standard Webhooks describes them. */

import type { PublicUrls } from '../addresses/urls.ts'
import { isoTime } from '../lib/clock.ts'
import type { LinkEventType, LinkSnapshot } from './events.ts'

export interface StoredEvent {
  accountId: number
  sequence: number
  type: LinkEventType | 'ping'
  /** JSON of `LinkSnapshot[]`. */
  body: string
  more: number
  createdAt: number
}

/** The body of a request. `dropped`: deliveries that the webhook has lost before this one. */
export function bodyOf(
  { type, createdAt, sequence, more, body }: StoredEvent,
  dropped: number,
  addresses: Pick<PublicUrls, 'short'>,
): string {
  const links = (JSON.parse(body) as LinkSnapshot[]).map((link) => ({
    code: link.code,
    short_url: addresses.short({ code: link.code, domainId: link.domain }),
    url: link.url,
    title: link.title,
    tags: link.tags,
    created_at: isoTime(link.created_at),
    hit_count: link.hit_count,
  }))
  return JSON.stringify({
    type,
    timestamp: isoTime(createdAt),
    sequence,
    ...(dropped > 0 && { dropped }),
    ...(more === 1 && { more: true }),
    data: { links },
  })
}

/** The same for each attempt and each webhook, also after a restart. */
export function messageId({ accountId, sequence, createdAt }: Omit<StoredEvent, 'body'>): string {
  const text = `${accountId} ${sequence} ${createdAt}`
  return `msg_${new Bun.CryptoHasher('sha256').update(text).digest('base64url').slice(0, 27)}`
}

export const SECRET_BYTES = 32
export const shownSecret = (secret: Uint8Array): string =>
  `whsec_${Buffer.from(secret).toString('base64')}`

/** The headers of a request at `now`. Each secret signs. */
export function signedHeaders(
  { id, body, now }: { id: string; body: string; now: number },
  secrets: readonly Uint8Array[],
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const signatures = secrets.map((secret) => {
    const hasher = new Bun.CryptoHasher('sha256', secret)
    return `v1,${hasher.update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
