import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { operationsOn } from '../../test/support/subjects.ts'
import { history } from '../history/subject.ts'
import { DAY, MINUTE } from '../lib/clock.ts'
import { eventRecorder, type NewEvent } from './history.ts'
import { migrate } from './migrate.ts'

function setUp() {
  const db = new Database(':memory:')
  migrate(db)
  const record = eventRecorder(db)
  const operations = operationsOn(db, history)
  const add = (event: Partial<NewEvent> & Pick<NewEvent, 'links'>, now = 0) =>
    record({ kind: 'state', accountId: 7, by: { now }, ...event })
  const ofLink = (id: number, limit = 1000) => operations.pageOfLink({ id, limit }).events
  const countOf = (table: string) =>
    db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n
  return { db, operations, add, ofLink, countOf }
}

test('the 501st event of a link drops its first one, and none of another link or a batch', () => {
  const { add, ofLink } = setUp()
  add({ kind: 'created', links: [1, 2, 3] })
  add({ links: [2], after: 'other' })
  for (let n = 1; n <= 500; n++) add({ links: [1], after: n })
  expect(ofLink(1)).toHaveLength(501)
  add({ links: [1], after: 501 })
  const events = ofLink(1)
  expect(events.map(({ after }) => after).slice(-3)).toEqual(['3', '2', null])
  expect(events).toHaveLength(501)
  expect(ofLink(2).map(({ after }) => after)).toEqual(['"other"', null])
})

test('a link is in the last 100 batches and in the one that created it', () => {
  const { add, ofLink, countOf } = setUp()
  add({ kind: 'created', links: [1, 2, 3] })
  add({ links: [1], after: 'single' })
  for (let n = 1; n <= 150; n++) add({ links: [1, 2], after: n })
  const afters = ofLink(1).map(({ after }) => after)
  expect([afters.length, afters[0], ...afters.slice(-3)]).toEqual([
    102,
    '150',
    '51',
    '"single"',
    null,
  ])
  expect([ofLink(2).length, ofLink(3).length]).toEqual([101, 1])
  expect(countOf('link_event_links')).toBe(1 + 2 * 100)
  expect(countOf('link_events')).toBe(152)
})

test('created links of a batch are found by the range of their ids only', () => {
  const { add, ofLink, countOf } = setUp()
  add({ kind: 'created', links: [1] })
  add({ kind: 'created', links: [2, 3, 4] })
  add({ kind: 'created', links: [5, 6] })
  add({ links: [3, 6] })
  const found = [1, 2, 3, 4, 5, 6, 7].map((id) => ofLink(id).map(({ links }) => links))
  expect(found).toEqual([[1], [3], [2, 3], [3], [2], [2, 2], []])
  expect(countOf('link_event_links')).toBe(4)
})

test('a part joins the last event if it is alike, a minute old at most, and of other links', () => {
  const { add, ofLink } = setUp()
  const part = (links: number[], now: number, more: Partial<NewEvent> = {}) =>
    add({ kind: 'created', links, isPart: true, ...more }, now)
  add({ links: [20, 21], isPart: true }, 0)
  add({ links: [21, 22], isPart: true }, 0)
  add({ links: [23, 24], isPart: true }, 0)
  const moves = [20, 21, 22, 23].map((id) => ofLink(id).map(({ links }) => links))
  expect(moves).toEqual([[2], [4, 2], [4], [4]])
  part([1, 2], 0)
  part([3, 4], MINUTE - 1)
  part([5], 2 * MINUTE - 2)
  part([6, 7], 3 * MINUTE)
  part([8, 9], 3 * MINUTE, { accountId: 8 })
  part([10, 11], 3 * MINUTE, { after: 'other' })
  add({ kind: 'created', links: [12, 13], after: 'other' }, 3 * MINUTE)
  const counts = [1, 2, 3, 4, 5, 6, 8, 10, 12].map((id) => ofLink(id).map(({ links }) => links))
  expect(counts).toEqual([[5], [5], [5], [5], [5], [2], [2], [2], [2]])
})

test('events are removed after 400 days, those of batches with their links', () => {
  const { add, ofLink, operations, countOf } = setUp()
  add({ kind: 'created', links: [1, 2] }, 0)
  add({ links: [1, 2] }, 0)
  add({ links: [1] }, 1)
  expect(operations.prune({ now: 400 * DAY })).toBe(0)
  expect(operations.prune({ now: 400 * DAY + 1 })).toBe(2)
  expect([ofLink(1).length, ofLink(2).length, countOf('link_event_links')]).toEqual([1, 0, 0])
})

test('an account keeps 64 MiB of values', () => {
  const { db, add, countOf } = setUp()
  db.run(`INSERT INTO link_events (link_id, account_id, at, kind, actor_kind, before)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1023)
    SELECT i, 7, 0, 'destination', 'key', iif(i <= 600, hex(zeroblob(64 * 1024)), NULL) FROM n`)
  add({ kind: 'destination', links: [1], before: 'https://a.example/' })
  expect(countOf('link_events WHERE before IS NOT NULL')).toBe(511 + 1)
  expect(countOf('link_events')).toBe(511 + 423 + 1)
})

test('each link of a batch counts towards these 64 MiB as 40 bytes, but not a created one', () => {
  const { db, add, countOf } = setUp()
  db.run(`INSERT INTO link_events (account_id, at, kind, actor_kind, links)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1023)
    SELECT 7, 0, iif(i > 1000, 'created', 'state'), 'key', 10000 FROM n`)
  add({ links: [1] })
  expect(countOf("link_events WHERE kind = 'created'")).toBe(23)
  expect(countOf("link_events WHERE kind = 'state'")).toBe(1 + 167)
})

test('the events of an account are removed in parts', () => {
  const { add, operations, countOf } = setUp()
  for (let n = 0; n < 501; n++) add({ links: [1, 2] })
  add({ accountId: 8, links: [1, 2] })
  const removed = [1, 2, 3].map(() => operations.removeSome({ accountId: 7 }))
  expect(removed).toEqual([500, 1, 0])
  expect([countOf('link_events'), countOf('link_event_links')]).toEqual([1, 2])
})

test('an account keeps 100,000 events, and no event of another account goes for them', () => {
  const { db, add, countOf } = setUp()
  add({ accountId: 8, links: [1] })
  add({ links: [1, 2] })
  db.run(`INSERT INTO link_events (link_id, account_id, at, kind, actor_kind)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 101376 - 3)
    SELECT i, 7, 0, 'created', 'key' FROM n`)
  expect(countOf('link_events')).toBe(101_375)
  add({ links: [1] })
  expect(countOf('link_events WHERE account_id = 7')).toBe(100_000)
  expect(countOf('link_events WHERE account_id = 8')).toBe(1)
  expect(countOf('link_event_links')).toBe(0)
})

test('an event names three of its first 100 links, if the account still has them', () => {
  const { db, operations, add } = setUp()
  const addLink = db.prepare<null, [number, string, number]>(
    `INSERT INTO links (id, code, account_id, created_at, passcode_hash)
     VALUES (?, ?, ?, 0, x'00')`,
  )
  const ids = Array.from({ length: 203 }, (_, n) => n + 1)
  // Another account has all links but three.
  for (const id of ids) addLink.run(id, `CODE${1000 + id}`, id <= 98 || id > 101 ? 8 : 7)
  add({ links: ids.slice(0, 101) })
  add({ links: ids.slice(101) })
  const codes = operations
    .pageOfAccount({ id: 7, limit: 10 })
    .events.map((event) => JSON.parse(event.codes))
  expect(codes).toEqual([[], ['CODE1099', 'CODE1100']])
})
