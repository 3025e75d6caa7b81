/** How writes become events for webhooks of an account, inside the transaction of each write. */

import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { domainIdOf } from '../addresses/address.ts'
import type { Author } from '../db/author.ts'
import type { Event, LinkEvent } from '../db/events.ts'
import { callOrigin, perConnection } from '../db/subject.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'

export const LINK_EVENTS = [
  'link.created',
  'link.updated',
  'link.deleted',
  'link.disabled',
  'link.hits',
  'link.dead',
  'link.alive',
] as const
export type LinkEventType = (typeof LINK_EVENTS)[number]

/** A link as an event stores it. `url`: null for a link with a password. */
export interface LinkSnapshot {
  code: Code
  domain: number
  url: string | null
  title: string | null
  tags: string[]
  created_at: number
  hit_count: number
}

/** Links in a body, except that of `link.hits`. */
const LINKS_MAX = 100
export const HIT_LINKS_MAX = 1000
/** UTF-8 bytes of a body, with some room for what is around its links. */
const BODY_BYTES_MAX = 255 * 1024
/** What a link grows by in the body: its short URL, and its time as text. */
const LINK_GROWTH_BYTES = 340

/** Deliveries that an account has queued, and bytes of their events. */
export const DELIVERIES_MAX = 10_000
export const QUEUE_BYTES_MAX = 16 * 1024 * 1024

interface NewEvent {
  accountId: AccountId
  type: LinkEventType
  at: number
  /** The links did not fit into one event. */
  more?: boolean | undefined
}

/** Parts of a list whose texts fit into a body each. */
export function partsOf(texts: readonly string[], linksMax = LINKS_MAX): string[][] {
  const parts: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const text of texts) {
    const size = Buffer.byteLength(text) + LINK_GROWTH_BYTES
    const last = parts.at(-1)
    if (last && last.length < linksMax && bytes + size <= BODY_BYTES_MAX) {
      last.push(text)
      bytes += size
    } else {
      parts.push([text])
      bytes = size
    }
  }
  return parts
}

/** Reads links as JSON of `LinkSnapshot`, in the order of their ids. */
export const snapshotReader = perConnection((db) => {
  const find = db.prepare<{ id: number; accountId: AccountId; text: string }, [string]>(
    `SELECT id, account_id AS accountId, json_object(
       'code', code, 'domain', ${domainIdOf('domain_id')},
       'url', iif(password IS NULL, url, NULL), 'title', title,
       'tags', json(coalesce(tags, '[]')), 'created_at', created_at,
       'hit_count', coalesce((SELECT count FROM hits WHERE link_id = links.id), 0)) AS text
     FROM links WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id`,
  )
  return (ids: readonly number[]) => find.all(JSON.stringify(ids))
})

/**
 * Adds events to the queues of an account's webhooks. Every link that is created may run it: joins,
 * ORDER BY and RETURNING take several times as long (decision 001). `readLinks`: JSON of each link,
 * read if some webhook gets it. `only`: the webhooks that get it, if not all that asked for the
 * type. Returns the id of the last event.
 */
export const eventQueue = perConnection((db: Database) => {
  const targets = db.prepare<{ id: number; dropped: number }, [AccountId, string]>(
    `SELECT id, dropped FROM webhooks WHERE account_id = ?1 AND enabled = 1
       AND instr(events, '"' || ?2 || '"') > 0
       AND (SELECT disabled_at FROM accounts WHERE id = ?1) IS NULL`,
  )
  const addQueue = db.prepare<null, [AccountId]>(
    'INSERT INTO webhook_queues (account_id) VALUES (?) ON CONFLICT DO NOTHING',
  )
  const growQueue = db.prepare<null, [number, number, AccountId]>(
    `UPDATE webhook_queues SET sequence = sequence + 1, deliveries = deliveries + ?,
       bytes = bytes + ? WHERE account_id = ?`,
  )
  const queueOf = db.prepare<{ sequence: number; deliveries: number; bytes: number }, [AccountId]>(
    'SELECT sequence, deliveries, bytes FROM webhook_queues WHERE account_id = ?',
  )
  const addEvent = db.prepare<null, (string | number)[]>(
    `INSERT INTO webhook_events (account_id, sequence, type, body, more, created_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  )
  const addDelivery = db.prepare<null, [number, number, string, number, number]>(
    `INSERT INTO webhook_deliveries (webhook_id, event_id, origin, next_at, dropped)
     VALUES (?, ?, ?, ?, ?)`,
  )
  const noteDropped = db.prepare<null, [number, number]>(
    'UPDATE webhooks SET dropped = dropped + ? WHERE id = ?',
  )
  const clearDropped = db.prepare<null, [number]>('UPDATE webhooks SET dropped = 0 WHERE id = ?')
  const dropOldest = oldestDropper(db)

  return (event: NewEvent, readLinks: () => readonly string[], only?: readonly number[]) => {
    const { accountId, type, at, more } = event
    let receivers = targets.all(accountId, type).filter(({ id }) => only?.includes(id) ?? true)
    if (receivers.length === 0) return undefined
    addQueue.run(accountId)
    let eventId: number | undefined
    const isHits = type === 'link.hits'
    const parts = partsOf(readLinks(), isHits ? HIT_LINKS_MAX : LINKS_MAX)
    const isMore = isHits && (more === true || parts.length > 1)
    // The next event about a link that is left out has its absolute count.
    for (const part of isHits ? parts.slice(0, 1) : parts) {
      const body = `[${part.join(',')}]`
      growQueue.run(receivers.length, Buffer.byteLength(body), accountId)
      const queue = queueOf.get(accountId)
      assert(queue, 'the queue of the account exists')
      let { deliveries, bytes } = queue
      const lost = new Map<number, number>()
      while (deliveries > DELIVERIES_MAX || bytes > QUEUE_BYTES_MAX) {
        const oldest = dropOldest(accountId)
        deliveries -= oldest.deliveries.length
        bytes -= oldest.bytes
        for (const { webhookId, dropped } of oldest.deliveries)
          lost.set(webhookId, (lost.get(webhookId) ?? 0) + 1 + dropped)
      }
      const { sequence } = queue
      const added = addEvent.run(accountId, sequence, type, body, Number(isMore), at)
      eventId = Number(added.lastInsertRowid)
      for (const { id, dropped } of receivers) {
        addDelivery.run(id, eventId, callOrigin(db).host, at, dropped + (lost.get(id) ?? 0))
        if (dropped > 0) clearDropped.run(id)
        lost.delete(id)
      }
      for (const [id, count] of lost) noteDropped.run(count, id)
      receivers = receivers.map(({ id }) => ({ id, dropped: 0 }))
    }
    return eventId
  }
})

/** Removes the oldest event of an account. */
function oldestDropper(db: Database) {
  // The index has them in the order of ids.
  const oldest = db.prepare<{ id: number }, [AccountId]>(
    `SELECT id FROM webhook_events INDEXED BY webhook_events_account
     WHERE account_id = ? LIMIT 1`,
  )
  const remove = eventRemover(db)
  return (accountId: AccountId) => {
    const event = oldest.get(accountId)
    assert(event, 'what is queued belongs to an event')
    return remove(event.id)
  }
}

/** Removes an event with its deliveries. Returns what the queue has lost. */
export const eventRemover = perConnection((db) => {
  const find = db.prepare<{ accountId: AccountId; bytes: number }, [number]>(
    `SELECT account_id AS accountId, octet_length(body) AS bytes FROM webhook_events WHERE id = ?`,
  )
  const deliveriesOf = db.prepare<{ webhookId: number; dropped: number }, [number]>(
    'SELECT webhook_id AS webhookId, dropped FROM webhook_deliveries WHERE event_id = ?',
  )
  const removeDeliveries = db.prepare<null, [number]>(
    'DELETE FROM webhook_deliveries WHERE event_id = ?',
  )
  const remove = db.prepare<null, [number]>('DELETE FROM webhook_events WHERE id = ?')
  const setQueue = db.prepare<null, [number, number, AccountId]>(
    'UPDATE webhook_queues SET deliveries = deliveries - ?, bytes = bytes - ? WHERE account_id = ?',
  )
  return (id: number) => {
    const deliveries = deliveriesOf.all(id)
    const { accountId, bytes = 0 } = find.get(id) ?? {}
    removeDeliveries.run(id)
    remove.run(id)
    if (accountId !== undefined) setQueue.run(deliveries.length, bytes, accountId)
    return { deliveries, bytes }
  }
})

const TYPES: Readonly<Partial<Record<LinkEvent['kind'], LinkEventType>>> = {
  created: 'link.created',
  changed: 'link.updated',
  enabled: 'link.updated',
  deleted: 'link.deleted',
  disabled: 'link.disabled',
  moved: 'link.created',
  dead: 'link.dead',
  alive: 'link.alive',
}

/** A deletion is an event when it takes effect, not when it is scheduled. */
const isChange = ({ kind, changed }: LinkEvent): boolean =>
  kind !== 'changed' || changed.some((name) => name !== 'delete_at')

/** The events of a write by account and type. Moved links leave one account and enter another. */
function grouped(events: readonly Event[]) {
  const groups = new Map<string, NewEvent & { ids: number[] }>()
  const add = (accountId: AccountId, type: LinkEventType, event: LinkEvent) => {
    const at = event.at ?? event.author?.now
    // Closed accounts lose their links without an author, and get no events any more.
    if (at === undefined) return
    const key = `${accountId} ${type}`
    const group = groups.get(key) ?? { accountId, type, at, ids: [] }
    group.ids.push(event.linkId)
    groups.set(key, group)
  }
  for (const event of events) {
    const type = event.what === 'link' && isChange(event) ? TYPES[event.kind] : undefined
    if (event.what !== 'link' || !type) continue
    if (event.kind === 'moved') add(event.fromAccountId, 'link.deleted', event)
    add(event.accountId, type, event)
  }
  return groups.values()
}

/** Stores the events of writes, if their accounts have webhooks. */
export function webhookEvents(db: Database) {
  const isAny = db.prepare<object, []>('SELECT 1 FROM webhooks WHERE enabled = 1 LIMIT 1')
  const isUsed = db.prepare<object, [AccountId]>(
    'SELECT 1 FROM webhooks WHERE account_id = ? AND enabled = 1 LIMIT 1',
  )
  const deleted = db.prepare<{ id: number; text: string }, []>(
    'DELETE FROM webhook_deleted_links RETURNING id, snapshot AS text',
  )
  const add = eventQueue(db)
  const readLinks = snapshotReader(db)
  const read = (events: readonly Event[]): void => {
    const isDeletion = events.some((event) => event.what === 'link' && event.kind === 'deleted')
    const gone = isDeletion ? deleted.all() : []
    for (const { ids, ...event } of grouped(events)) {
      const links = () => (isDeletion ? gone.filter(({ id }) => ids.includes(id)) : readLinks(ids))
      add(event, () => links().map(({ text }) => text))
    }
  }
  /** A key or a member changes links of their account only, except where they hand them over. */
  const isNeeded = (message: unknown): boolean => {
    const { author, to } = (message ?? {}) as { author?: Author; to?: AccountId }
    const isOfAccount = typeof author?.by === 'object' && !('ownerId' in author.by)
    return isOfAccount && to === undefined ? isUsed.get(author.accountId) !== null : !!isAny.get()
  }
  return Object.assign(read, { isNeeded })
}
