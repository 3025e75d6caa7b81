import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type Authored, authoredWrite, perConnection, subject, write } from '../db/subject.ts'
import {
  eventQueue,
  eventRemover,
  type LinkEventType,
  snapshotReader,
  webhookEvents,
} from './events.ts'
import type { StoredEvent } from './message.ts'
import { FAILING_MAX_MS } from './schedule.ts'

export const WEBHOOKS_MAX = 5
/** Attempts of a webhook that are kept. */
export const ATTEMPTS_KEPT = 100

/** Why a webhook is disabled. Null: a person has disabled it. */
export type DisabledReason = 'gone' | 'failing' | 'operator' | null

export interface Webhook {
  id: number
  accountId: AccountId
  url: string
  /** Names of events. */
  events: LinkEventType[]
  enabled: boolean
  failingSince: number | null
  disabledReason: DisabledReason
  createdAt: number
}

/** Encrypted secrets. The old one signs too until it ends. */
interface WebhookSecrets {
  accountId: AccountId
  url: string
  enabled: number
  secret: Uint8Array
  oldSecret: Uint8Array | null
  oldEndsAt: number | null
}

export interface Attempt {
  type: StoredEvent['type']
  /** 0 for a test. */
  sequence: number
  attempt: number
  status: number | null
  error: string | null
  ms: number
  at: number
}

/** A delivery that is due, with its event. */
export interface DueDelivery extends StoredEvent {
  webhookId: number
  eventId: number
  url: string
  /** Failed attempts. */
  attempts: number
  dropped: number
}

/** The result of an attempt. `eventId`: 0 for a test. */
export interface AttemptResult extends Attempt {
  webhookId: number
  eventId: number
  /** When the next attempt is due; null if there is none. */
  nextAt: number | null
}

const COLUMNS = `id, account_id AS accountId, url, events, enabled, failing_since AS failingSince,
  disabled_reason AS disabledReason, created_at AS createdAt`

type WebhookRow = Omit<Webhook, 'events' | 'enabled'> & { events: string; enabled: number }

const readRow = ({ events, enabled, ...row }: WebhookRow): Webhook => ({
  ...row,
  events: JSON.parse(events),
  enabled: enabled === 1,
})

/** When deliveries of disabled webhooks are due. */
const NEVER = Number.MAX_SAFE_INTEGER

function reads(db: Database) {
  const isAny = db.prepare<object, []>('SELECT 1 FROM webhooks LIMIT 1')
  const all = db.prepare<WebhookRow, []>(`SELECT ${COLUMNS} FROM webhooks ORDER BY id`)
  const byAccount = db.prepare<WebhookRow, [AccountId]>(
    `SELECT ${COLUMNS} FROM webhooks WHERE account_id = ? ORDER BY id`,
  )
  const secrets = db.prepare<WebhookSecrets, [number]>(
    `SELECT account_id AS accountId, url, enabled, secret, old_secret AS oldSecret,
       old_ends_at AS oldEndsAt FROM webhooks WHERE id = ?`,
  )
  const attempts = db.prepare<Attempt, [number, number]>(
    `SELECT type, sequence, attempt, status, error, ms, at FROM webhook_attempts
     WHERE webhook_id = ? ORDER BY id DESC LIMIT ?`,
  )
  const queued = db.prepare<{ n: number }, [number]>(
    'SELECT count(*) AS n FROM webhook_deliveries WHERE webhook_id = ?',
  )
  const totals = db.prepare<Record<'active' | 'failing' | 'disabled' | 'queued', number>, []>(
    `SELECT count(*) FILTER (WHERE enabled = 1 AND failing_since IS NULL) AS active,
       count(*) FILTER (WHERE enabled = 1 AND failing_since IS NOT NULL) AS failing,
       count(*) FILTER (WHERE enabled = 0) AS disabled,
       (SELECT coalesce(sum(deliveries), 0) FROM webhook_queues) AS queued FROM webhooks`,
  )
  const hitWebhooks = db.prepare<{ id: number; accountId: AccountId; createdAt: number }, []>(
    `SELECT id, account_id AS accountId, created_at AS createdAt FROM webhooks
     WHERE enabled = 1 AND instr(events, '"link.hits"') > 0`,
  )
  const delivery = db.prepare<object, [number, number]>(
    'SELECT 1 FROM webhook_deliveries WHERE event_id = ? AND webhook_id = ?',
  )
  const byAccounts = db.prepare<{ accountId: AccountId; ids: string }, [string, string]>(
    `SELECT account_id AS accountId, json_group_array(id) AS ids FROM links
     WHERE id IN (SELECT value FROM json_each(?))
       AND account_id IN (SELECT value FROM json_each(?)) GROUP BY account_id`,
  )
  return {
    isAny: (): boolean => isAny.get() !== null,
    listAll: (): Webhook[] => all.all().map(readRow),
    listOf: (accountId: AccountId): Webhook[] => byAccount.all(accountId).map(readRow),
    secretsOf: (id: number) => secrets.get(id) ?? undefined,
    /** Newest first. */
    listAttempts: (id: number, limit: number): Attempt[] => attempts.all(id, limit),
    /** Deliveries that wait. */
    countQueued: (id: number): number => queued.get(id)?.n ?? 0,
    totals: () => totals.get() ?? { active: 0, failing: 0, disabled: 0, queued: 0 },
    /** Whether the delivery of an event waits. */
    isQueued: (eventId: number, id: number): boolean => delivery.get(eventId, id) !== null,
    /** Webhooks that get `link.hits`. */
    listForHits: () => hitWebhooks.all(),
    /** Those of the links that are of one of the accounts. */
    groupLinks: (linkIds: readonly number[], accountIds: readonly AccountId[]) =>
      byAccounts
        .all(JSON.stringify(linkIds), JSON.stringify(accountIds))
        .map(({ accountId, ids }) => ({ accountId, linkIds: JSON.parse(ids) as number[] })),
  }
}

/**
 * Finds deliveries that are due, the first one of each webhook that is not busy. A host sends the
 * events of its own calls, and the first host those of hosts that have left.
 */
export function dueDeliveries(db: Database) {
  const deliveries = 'FROM webhook_deliveries INDEXED BY webhook_deliveries_next'
  // Each step finds the next webhook in the index: its queue may have 10,000 rows.
  const heads = db.prepare<{ id: number; nextAt: number }, []>(
    `WITH RECURSIVE found(id) AS (
       SELECT min(webhook_id) ${deliveries} UNION ALL
       SELECT (SELECT min(webhook_id) ${deliveries} WHERE webhook_id > found.id)
       FROM found WHERE id IS NOT NULL
     ) SELECT found.id, (SELECT min(next_at) ${deliveries} WHERE webhook_id = found.id) AS nextAt
     FROM found JOIN webhooks USING (id) JOIN accounts ON accounts.id = account_id
     WHERE enabled = 1 AND disabled_at IS NULL ORDER BY nextAt`,
  )
  const due = db.prepare<DueDelivery, [number, number, string, boolean, string]>(
    `SELECT webhook_id AS webhookId, event_id AS eventId, attempts, delivery.dropped, url,
       event.account_id AS accountId, sequence, type, body, more, event.created_at AS createdAt
     FROM webhook_deliveries AS delivery JOIN webhook_events AS event ON event.id = event_id
     JOIN webhooks ON webhooks.id = webhook_id
     WHERE webhook_id = ? AND next_at <= ?
       AND (origin = ?3 OR ?4 AND origin NOT IN (SELECT value FROM json_each(?5)))
     ORDER BY next_at, event_id LIMIT 1`,
  )
  return (now: number, { busy, host, others, isFirst }: DueQuery) => {
    const free = heads.all().filter(({ id }) => !busy.has(id))
    const known = JSON.stringify(others)
    const ready = free.filter(({ nextAt }) => nextAt <= now)
    return {
      due: ready.flatMap(({ id }) => due.get(id, now, host, isFirst, known) ?? []),
      /** When the next one is due. */
      nextAt: free[0]?.nextAt,
    }
  }
}

/** Which deliveries a host sends. */
export interface DueQuery {
  /** Webhooks to which a request is in progress. */
  busy: ReadonlySet<number>
  /** The id of this host in a cluster, else empty, and those of the others. */
  host: string
  others: readonly string[]
  isFirst: boolean
}

/** Ends deliveries, and their events with the last one. */
const deliveryFinisher = perConnection((db) => {
  const remove = db.prepare<null, [number, number]>(
    'DELETE FROM webhook_deliveries WHERE event_id = ? AND webhook_id = ?',
  )
  const count = db.prepare<null, [number]>(
    `UPDATE webhook_queues SET deliveries = deliveries - 1
     WHERE account_id = (SELECT account_id FROM webhook_events WHERE id = ?)`,
  )
  const isLeft = db.prepare<object, [number]>(
    'SELECT 1 FROM webhook_deliveries WHERE event_id = ? LIMIT 1',
  )
  const removeEvent = eventRemover(db)
  return (eventId: number, webhookId: number): void => {
    if (remove.run(eventId, webhookId).changes === 0) return
    count.run(eventId)
    if (!isLeft.get(eventId)) removeEvent(eventId)
  }
})

/** Enables and disables webhooks. What is queued for a disabled one waits. */
const switcher = perConnection((db) => {
  const set = db.prepare<{ accountId: AccountId }, [number, DisabledReason, number]>(
    `UPDATE webhooks SET enabled = ?1, failing_since = NULL, disabled_reason = ?2
     WHERE id = ?3 AND enabled <> ?1 RETURNING account_id AS accountId`,
  )
  const setNext = db.prepare<null, [number, number]>(
    'UPDATE webhook_deliveries SET next_at = ? WHERE webhook_id = ?',
  )
  return (id: number, enabledAt: number | null, reason: DisabledReason = null) => {
    const changed = set.get(enabledAt === null ? 0 : 1, reason, id)
    if (changed) setNext.run(enabledAt ?? NEVER, id)
    return changed ?? undefined
  }
})

/** Stores results of attempts. Returns the webhooks that it has disabled. */
function recorder(db: Database) {
  const find = db.prepare<{ enabled: number; failingSince: number | null }, [number]>(
    'SELECT enabled, failing_since AS failingSince FROM webhooks WHERE id = ?',
  )
  const setFailing = db.prepare<null, [number | null, number]>(
    'UPDATE webhooks SET failing_since = ? WHERE id = ?',
  )
  const postpone = db.prepare<null, [number, number, number, number]>(
    'UPDATE webhook_deliveries SET attempts = ?, next_at = ? WHERE event_id = ? AND webhook_id = ?',
  )
  const add = db.prepare<null, (string | number | null)[]>(
    `INSERT INTO webhook_attempts (webhook_id, type, sequence, attempt, status, error, ms, at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const removeOld = db.prepare<null, [number]>(
    `DELETE FROM webhook_attempts WHERE webhook_id = ?1 AND id <= (
       SELECT id FROM webhook_attempts WHERE webhook_id = ?1
       ORDER BY id DESC LIMIT 1 OFFSET ${ATTEMPTS_KEPT})`,
  )
  const finish = deliveryFinisher(db)
  const setEnabled = switcher(db)
  const recordOne = (result: AttemptResult) => {
    const { webhookId, eventId, type, sequence, attempt, status, error, ms, at, nextAt } = result
    const webhook = find.get(webhookId)
    if (!webhook) return []
    add.run(webhookId, type, sequence, attempt, status, error, ms, at)
    removeOld.run(webhookId)
    if (eventId === 0) return []
    if (isDelivered(status)) {
      finish(eventId, webhookId)
      setFailing.run(null, webhookId)
      return []
    }
    const isGone = status === 410
    const failingSince = webhook.failingSince ?? at
    if (nextAt === null && !isGone) finish(eventId, webhookId)
    else
      postpone.run(attempt, webhook.enabled === 1 ? (nextAt ?? NEVER) : NEVER, eventId, webhookId)
    if (webhook.enabled === 0) return []
    setFailing.run(failingSince, webhookId)
    const isFailing = at - failingSince >= FAILING_MAX_MS
    if (!isGone && !isFailing) return []
    const reason: DisabledReason = isGone ? 'gone' : 'failing'
    const { accountId } = setEnabled(webhookId, null, reason) ?? {}
    return [{ id: webhookId, accountId, reason }]
  }
  return ({ results }: { results: readonly AttemptResult[] }) => results.flatMap(recordOne)
}

export const isDelivered = (status: number | null): boolean =>
  status !== null && status >= 200 && status < 300

type OfWebhook = Authored & { id: number }

export interface WebhookInput {
  url: string
  events: readonly LinkEventType[]
}

/** Absent: as before. */
export type WebhookChange = { [Name in keyof WebhookInput]?: WebhookInput[Name] | undefined } & {
  enabled?: boolean | undefined
}

const OF_ACCOUNT = 'SELECT id FROM webhooks WHERE account_id = ?1'

/** Webhooks of accounts, and what is queued for them. */
export const webhooks = subject({
  reads,
  onEvents: webhookEvents,
  forget: [
    `DELETE FROM webhook_attempts WHERE webhook_id IN (${OF_ACCOUNT})`,
    `DELETE FROM webhook_deliveries WHERE webhook_id IN (${OF_ACCOUNT})`,
    'DELETE FROM webhook_events WHERE account_id = ?1',
    'DELETE FROM webhook_queues WHERE account_id = ?1',
    'DELETE FROM webhooks WHERE account_id = ?1',
  ],
  writes: {
    /** The id; undefined if the account has as many as it may have. */
    create: authoredWrite('editor', {
      prepare(db) {
        const add = db.prepare<{ id: number }, (AccountId | string | Uint8Array)[]>(
          `INSERT INTO webhooks (account_id, url, secret, events, created_at)
           SELECT ?1, ?2, ?3, ?4, ?5
           WHERE (SELECT count(*) FROM webhooks WHERE account_id = ?1) < ?6
           RETURNING id`,
        )
        return (command: Authored & WebhookInput & { secret: Uint8Array }) => {
          const { author, url, secret, events } = command
          const { accountId, now } = author
          return add.get(accountId, url, secret, JSON.stringify(events), now, WEBHOOKS_MAX)?.id
        }
      },
    }),

    /** False if the account has no such webhook. */
    change: authoredWrite('editor', {
      prepare(db) {
        const set = db.prepare<null, [string | null, string | null, number, AccountId]>(
          `UPDATE webhooks SET url = coalesce(?, url), events = coalesce(?, events)
           WHERE id = ? AND account_id = ?`,
        )
        const setEnabled = switcher(db)
        return ({ id, author, events, enabled, ...change }: OfWebhook & WebhookChange): boolean => {
          const names = events ? JSON.stringify(events) : null
          if (set.run(change.url ?? null, names, id, author.accountId).changes === 0) return false
          if (enabled !== undefined) setEnabled(id, enabled ? author.now : null)
          return true
        }
      },
    }),

    /** A new secret; the one before signs too until `oldEndsAt`. False as in `change`. */
    rotate: authoredWrite('editor', {
      prepare(db) {
        const set = db.prepare<null, [Uint8Array, number, number, AccountId]>(
          `UPDATE webhooks SET old_secret = secret, secret = ?, old_ends_at = ?
           WHERE id = ? AND account_id = ?`,
        )
        return (command: OfWebhook & { secret: Uint8Array; oldEndsAt: number }): boolean => {
          const { id, author, secret, oldEndsAt } = command
          return set.run(secret, oldEndsAt, id, author.accountId).changes > 0
        }
      },
    }),

    /** False as in `change`. */
    remove: authoredWrite('editor', {
      prepare(db) {
        const remove = db.prepare<null, [number, AccountId]>(
          'DELETE FROM webhooks WHERE id = ? AND account_id = ?',
        )
        const queued = db.prepare<{ eventId: number }, [number]>(
          'SELECT event_id AS eventId FROM webhook_deliveries WHERE webhook_id = ?',
        )
        const removeAttempts = db.prepare<null, [number]>(
          'DELETE FROM webhook_attempts WHERE webhook_id = ?',
        )
        const finish = deliveryFinisher(db)
        return ({ id, author }: OfWebhook): boolean => {
          if (remove.run(id, author.accountId).changes === 0) return false
          removeAttempts.run(id)
          for (const { eventId } of queued.all(id)) finish(eventId, id)
          return true
        }
      },
    }),

    /** A webhook of any account. The account that has it; undefined if it is disabled already. */
    disable: authoredWrite('owner', {
      prepare(db) {
        const setEnabled = switcher(db)
        return ({ id }: OfWebhook) => setEnabled(id, null, 'operator')
      },
    }),

    record: write({ prepare: recorder }),

    /**
     * Adds an event `link.hits`, and returns its id if a webhook gets it. `hitCounts`: those of
     * `linkIds`. `only`: see `eventQueue`.
     */
    addHits: write({
      prepare(db) {
        const readLinks = snapshotReader(db)
        const add = eventQueue(db)
        return ({ accountId, linkIds, hitCounts, only, more, now: at }: CountedHits) => {
          const own = readLinks(linkIds).filter((link) => link.accountId === accountId)
          const links = own.map(({ id, text }) => {
            const hit_count = hitCounts[linkIds.indexOf(id)]
            return JSON.stringify({ ...JSON.parse(text), hit_count })
          })
          return add({ accountId, type: 'link.hits', at, more }, () => links, only)
        }
      },
    }),
  },
})

interface CountedHits {
  accountId: AccountId
  linkIds: readonly number[]
  hitCounts: readonly number[]
  only: readonly number[]
  more: boolean
  now: number
}
