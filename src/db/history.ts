import { MINUTE } from '../lib/clock.ts'
import type { Author, By } from './author.ts'
import { perConnection } from './subject.ts'

/** The history of links: each change adds its event here, inside its own transaction. */

export const EVENT_KINDS = [
  'created',
  'destination',
  'destinations',
  'aliases',
  'domain',
  'password',
  'state',
  'moved',
  'disabled',
  'enabled',
  'deleted',
  'restored',
  'dead',
  'alive',
] as const
type EventKind = (typeof EVENT_KINDS)[number]

/** `schedule`: the service itself. `owner`: its operator, without a name. */
export const ACTOR_KINDS = ['person', 'key', 'command_line', 'schedule', 'owner'] as const

export interface NewEvent {
  kind: EventKind
  accountId: number
  /** Ids. Several links make one event; those that were created follow one another. */
  links: readonly number[]
  /** What the service does by itself has only a time. */
  by: Author | { now: number }
  /** Values of JSON, never secrets: what there was, and what there is now. */
  before?: unknown
  after?: unknown
  /** The event may be part of a batch that several writes make. */
  isPart?: boolean
}

/** Events of a link, beside batches. */
const OF_LINK_MAX = 500
/** Batches of a link. More would make it slow to read and to delete. */
const BATCHES_OF_LINK_MAX = 100
/** Of an account. One event of `OF_ACCOUNT_SLACK` removes the older ones. */
const OF_ACCOUNT_MAX = 100_000
const OF_ACCOUNT_BYTES_MAX = 64 * 1024 * 1024
const OF_ACCOUNT_SLACK = 1024
/** What a link of an event counts as, towards the bytes of its account. */
const LINK_BYTES = 40
/** Time between two parts of a batch. */
const PARTS_MS = MINUTE

const jsonOf = (value: unknown): string | null => (value == null ? null : JSON.stringify(value))

const actorFinder = perConnection((db) => {
  const person = db.prepare<{ name: string }, [number]>(
    'SELECT email AS name FROM people WHERE id = ?',
  )
  // As `keyName` of accounts/keys.ts.
  const key = db.prepare<{ name: string }, [number]>(
    "SELECT coalesce(name, 'Default') AS name FROM api_keys WHERE id = ?",
  )
  return (by: By | undefined): [(typeof ACTOR_KINDS)[number], string | null] => {
    if (by === undefined) return ['schedule', null]
    if (by === 'operator') return ['command_line', null]
    if ('ownerId' in by) return ['owner', null]
    if ('keyId' in by) return ['key', key.get(by.keyId)?.name ?? null]
    return ['person', person.get(by.personId)?.name ?? null]
  }
})

/** Prepares what adds an event. Call it in a write, next to the change. No links: no event. */
export const eventRecorder = perConnection((db) => {
  const actorOf = actorFinder(db)
  const insert = db.prepare<null, (string | number | null)[]>(
    `INSERT INTO link_events
       (link_id, account_id, at, kind, actor_kind, actor, before, after, links)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const removeOldest = db.prepare<null, [number]>(
    `DELETE FROM link_events WHERE id IN (SELECT id FROM link_events WHERE link_id = ?
       ORDER BY id DESC LIMIT -1 OFFSET ${OF_LINK_MAX})`,
  )
  const removeSurplus = db.prepare<null, [number]>(
    `DELETE FROM link_events WHERE account_id = ?1 AND id <= (SELECT id FROM (
         SELECT id, row_number() OVER newest AS events,
           sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)
             + iif(kind = 'created', 0, links) * ${LINK_BYTES}) OVER newest AS bytes
         FROM link_events WHERE account_id = ?1 WINDOW newest AS (ORDER BY id DESC))
       WHERE events > ${OF_ACCOUNT_MAX} OR bytes > ${OF_ACCOUNT_BYTES_MAX}
       ORDER BY id DESC LIMIT 1)`,
  )
  const addLinks = db.prepare<null, [number, number, number]>(
    'INSERT INTO link_event_links (event_id, link_id, last_link) VALUES (?, ?, ?)',
  )
  // Reads the index on `link_id` only, unless there is something to remove.
  const removeOldestBatches = db.prepare<null, [number]>(
    `DELETE FROM link_event_links WHERE link_id = ?1 AND last_link = ?1 AND event_id <= (
       SELECT event_id FROM link_event_links WHERE link_id = ?1
       ORDER BY event_id DESC LIMIT 1 OFFSET ${BATCHES_OF_LINK_MAX})`,
  )
  const grow = db.prepare<{ id: number }, (string | number | null)[]>(
    `UPDATE link_events SET links = links + ?1, at = ?2
     WHERE id = (SELECT id FROM link_events WHERE account_id = ?3 ORDER BY id DESC LIMIT 1)
       AND link_id IS NULL AND at > ?2 - ${PARTS_MS} AND kind = ?4 AND actor_kind = ?5
       AND actor IS ?6 AND before IS ?7 AND after IS ?8 AND NOT EXISTS (
         SELECT 1 FROM link_event_links WHERE event_id = link_events.id
           AND link_id IN (SELECT value FROM json_each(?9)))
     RETURNING id`,
  )
  return ({ kind, accountId, links, by, before, after, isPart = false }: NewEvent): void => {
    const [first] = links
    if (first === undefined) return
    const { length: count } = links
    const about = [kind, ...actorOf('by' in by ? by.by : undefined), jsonOf(before), jsonOf(after)]
    const add = (linkId: number | null): number => {
      const id = Number(insert.run(linkId, accountId, by.now, ...about, count).lastInsertRowid)
      if (id % OF_ACCOUNT_SLACK === 0) removeSurplus.run(accountId)
      return id
    }
    const batch = isPart
      ? grow.get(count, by.now, accountId, ...about, JSON.stringify(links))?.id
      : undefined
    if (batch === undefined && count === 1) {
      add(first)
      if (kind !== 'created') removeOldest.run(first)
      return
    }
    const id = batch ?? add(null)
    if (kind === 'created') addLinks.run(id, first, links[count - 1] ?? first)
    else {
      for (const link of links) {
        addLinks.run(id, link, link)
        removeOldestBatches.run(link)
      }
    }
  }
})

/** What a link has changed: names of properties, and their values as the API shows them. */
export interface ChangedLink {
  id: number
  changed: readonly string[]
  before: () => object
  after: () => object
}

const STATE = ['paused', 'starts_at', 'expires_at', 'max_hits', 'expired_url']

/** Adds an event for each kind of change. For several links, it has the new values only. */
export function recordChanges(
  record: (event: NewEvent) => void,
  about: Pick<NewEvent, 'accountId' | 'by'>,
  changes: readonly ChangedLink[],
): void {
  for (const kind of ['destinations', 'aliases', 'domain', 'password', 'state'] as const) {
    const isOfKind = (name: string) => (kind === 'state' ? STATE.includes(name) : name === kind)
    const those = changes.filter(({ changed }) => changed.some(isOfKind))
    const names = new Set(those.flatMap(({ changed }) => changed.filter(isOfKind)))
    const valueIn = (values?: () => object) => {
      const found = Object.entries(values?.() ?? {}).filter(([name]) => names.has(name))
      return kind === 'state' ? Object.fromEntries(found) : found[0]?.[1]
    }
    const [one, second] = those
    const before = second ? undefined : valueIn(one?.before)
    const links = those.map(({ id }) => id)
    record({ ...about, kind, links, before, after: valueIn(one?.after) })
  }
}

/** Follows links that move or go. */
export const eventMover = perConnection((db) => {
  const move = db.prepare<null, [string, number]>(
    'UPDATE link_events SET account_id = ?2 WHERE link_id IN (SELECT value FROM json_each(?1))',
  )
  const removals = [
    `DELETE FROM link_events WHERE link_id = ?1 AND id IS NOT (
       SELECT max(id) FROM link_events WHERE link_id = ?1 AND kind = 'deleted')`,
    'DELETE FROM link_event_links WHERE link_id = ?1 AND last_link = ?1',
  ].map((sql) => db.prepare<null, [number]>(sql))
  return {
    /** The former account keeps only its batches, without these links. */
    move: (links: readonly number[], to: number): void => void move.run(JSON.stringify(links), to),

    /** Of a link that is gone stays that it was deleted, with its code. */
    removeOf(linkId: number): void {
      for (const removal of removals) removal.run(linkId)
    },
  }
})
