import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { type Received, Receiver } from '../../test/support/receiver.ts'
import { dataOn } from '../../test/support/subjects.ts'
import { SecretHasher } from '../accounts/secrets.ts'
import { subjects } from '../data.ts'
import { migrate } from '../db/migrate.ts'
import { callOrigin } from '../db/subject.ts'
import { recentHits } from '../hits/recent.ts'
import { MINUTE, SECOND } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import { createLog } from '../lib/log.ts'
import { secureRandom } from '../lib/random.ts'
import { AllowedHosts } from '../outgoing/addresses.ts'
import { type Resolver, Sender } from '../outgoing/sender.ts'
import { Webhooks } from './control.ts'
import { DELIVERIES_MAX, eventQueue, type LinkEventType } from './events.ts'
import { createWebhook } from './operations.ts'
import { dueDeliveries } from './store.ts'
import { openWebhooks } from './task.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const ACCOUNT = { id: 1, plan: 'free', by: 'operator' } as const

interface Options {
  /** Addresses of each name. */
  resolve?: Resolver
  hosts?: readonly string[]
  /** Ids of this host and of others, in a cluster. */
  host?: string
  others?: () => readonly string[]
  isFirst?: () => boolean
}

/** Webhooks on one connection: the task runs when the test calls `run`. */
function open({ resolve, hosts = ['127.0.0.1'], ...cluster }: Options = {}) {
  const { host = '', others = () => [], isFirst = () => true } = cluster
  const db = new Database(':memory:')
  migrate(db)
  for (const name of ['a', 'b'])
    db.run(`INSERT INTO accounts (name, plan, created_at) VALUES (?, 'free', 0)`, [name])
  const data = dataOn(db, subjects)
  const hasher = new SecretHasher(Buffer.alloc(32, 1))
  let now = NOW
  const clock = () => now
  const lines: string[] = []
  const log = createLog({ level: 'info', human: false, write: (line) => lines.push(line) })
  const counts = new Map<number, number>()
  const time = { clock, monotonic: clock }
  const parts = { data, hasher, log, ...time, outgoingHosts: hosts, wake() {} }
  const webhooks = new Webhooks({
    ...parts,
    hits: { of: (ids) => new Map(ids.map((id) => [id, counts.get(id) ?? 0])) },
    host,
    others,
    isFirst,
  })
  const sender = new Sender({ hosts: new AllowedHosts(hosts), ...(resolve && { resolve }) })
  const calls = webhooks.calls as unknown as Record<string, (args: unknown) => unknown>
  const settled = Promise.withResolvers<void>()
  let wake = settled.resolve
  const task = openWebhooks({
    db,
    sender,
    clock,
    baseUrl: 'http://hop.test',
    call: async (name, args) => calls[name]?.(args),
    wake: () => wake(),
  })
  let links = 0
  return {
    data,
    db,
    lines,
    webhooks,
    calls,
    advance(ms: number) {
      now += ms
    },
    add: (url: string, accountId = 1, events: LinkEventType[] = ['link.created']) =>
      createWebhook(
        { ...parts, webhooks, random: secureRandom },
        { ...ACCOUNT, id: accountId },
        { url, events },
      ),
    hit(linkId: number) {
      counts.set(linkId, (counts.get(linkId) ?? 0) + 1)
      recentHits(db).add({ linkId }, 1, now)
    },
    /** The links of the events `link.hits` that wait or are delivered, by account. */
    told: () =>
      db
        .query<{ account: number; body: string }, []>(
          `SELECT account_id AS account, body FROM webhook_events WHERE type = 'link.hits'
           ORDER BY id`,
        )
        .all()
        .map(({ account, body }) => [account, ...JSON.parse(body).map(hitCountOf)]),
    begin: () => webhooks.calls['webhooks.begin'](),
    /** Creates a link, by a call of a host. */
    link(origin = '', accountId = 1) {
      callOrigin(db).host = origin
      const code = `LINK${String(++links).padStart(6, '0')}` as Code
      const item = { code, url: null, urlKey: null, passcodeHash: new Uint8Array(32) }
      const quota = { linksMax: 0, urlBytesMax: 0 }
      const author = { accountId, by: 'operator', now } as const
      const command = { author, item, isGenerated: false, patch: {}, aliases: {}, quota }
      return data.links.createOne(command as never)
    },
    /** Runs the task until no delivery is in progress. */
    async run() {
      const done = Promise.withResolvers<void>()
      wake = done.resolve
      await task.run()
      await done.promise
    },
    attempts: () => data.webhooks.listAttempts(1, 100),
    [Symbol.dispose]() {
      sender.close()
      db.close()
    },
  }
}

const hitCountOf = ({ hit_count }: { hit_count: number }) => hit_count

const PUBLIC = '93.184.215.14'

test.each([
  [['127.0.0.1']],
  [['10.0.0.5']],
  [['169.254.169.254']],
  [['::1']],
  [['fd00::1']],
  [['::ffff:10.0.0.1']],
  [['64:ff9b::a00:5']],
  [['2002:a00:5::1']],
  [['100.64.0.1']],
  [['0.0.0.0']],
  [[PUBLIC, '10.0.0.5']],
  [[PUBLIC, '127.0.0.1']],
])('a name with the addresses %p gets no connection', async (addresses) => {
  using receiver = new Receiver()
  const { port } = new URL(receiver.url)
  using own = open({ resolve: async () => addresses, hosts: [] })
  await own.add(`https://receiver.example:${port}/`)
  await own.link()
  await own.run()
  expect(own.attempts()).toMatchObject([{ status: null, error: 'address_not_allowed', attempt: 1 }])
  expect(receiver.received).toEqual([])
})

test('a name that changes after the check gets a connection to the address that was checked', async () => {
  using receiver = new Receiver()
  const { port } = new URL(receiver.url)
  const answers = [['127.0.0.1'], ['127.0.0.9']]
  const asked: string[] = []
  const resolve = async (name: string) => {
    asked.push(name)
    return answers.shift() ?? []
  }
  using own = open({ resolve, hosts: ['127.0.0.1', 'receiver.example'] })
  await own.add(`http://receiver.example:${port}/`)
  await own.link()
  await own.run()
  expect(asked).toEqual(['receiver.example'])
  expect(receiver.received).toHaveLength(1)
})

test('beyond the most that an account queues, the oldest goes and the next body tells it', async () => {
  using receiver = new Receiver()
  receiver.respond = () => new Response(null, { status: 500 })
  using own = open()
  await own.add(receiver.url)
  own.db.run('BEGIN')
  await own.link()
  const add = eventQueue(own.db)
  const event = { accountId: 1, type: 'link.created', at: NOW } as const
  for (let n = 0; n < DELIVERIES_MAX; n++) add(event, () => ['{"tags":[],"created_at":0}'])
  own.db.run('COMMIT')
  expect(own.data.webhooks.totals().queued).toBe(DELIVERIES_MAX)
  own.db.run('UPDATE webhook_deliveries SET next_at = next_at + 1 WHERE event_id <= ?', [
    DELIVERIES_MAX,
  ])
  await own.run()
  const [last] = receiver.received as [Received]
  expect(last.body).toMatchObject({ sequence: DELIVERIES_MAX + 1, dropped: 1 })
  await own.link()
  own.db.run('UPDATE webhook_deliveries SET next_at = ? WHERE event_id = ?', [NOW - 1, 3])
  await own.run()
  const [, oldest] = receiver.received as [Received, Received]
  expect(oldest.body.sequence).toBe(3)
  expect(oldest.body.dropped).toBeUndefined()
}, 60_000)

test('a host sends the events of its calls; the first host sends those of hosts that have left', async () => {
  using receiver = new Receiver()
  const cluster = { others: ['b', 'c'] as readonly string[] }
  using own = open({ host: 'a', others: () => cluster.others })
  await own.add(receiver.url)
  for (const host of ['b', 'a', 'c']) await own.link(host)
  await own.run()
  expect(receiver.bodies().map(({ sequence }) => sequence)).toEqual([2])
  cluster.others = ['c']
  await own.run()
  expect(receiver.bodies().map(({ sequence }) => sequence)).toEqual([2, 1])
})

test('a disabled or deleted account sends nothing, and a deleted one leaves no row', async () => {
  using receiver = new Receiver()
  using own = open()
  await own.add(receiver.url)
  await own.link()
  own.db.run('UPDATE accounts SET disabled_at = 1')
  const everything = { busy: new Set<number>(), host: '', others: [], isFirst: true }
  expect(dueDeliveries(own.db)(NOW, everything).due).toEqual([])
  own.db.run('UPDATE accounts SET disabled_at = NULL')
  await own.run()
  expect(receiver.received).toHaveLength(1)
  await own.link()
  await own.data.accounts.remove({ accountId: 1 })
  const tables = ['webhooks', 'webhook_events', 'webhook_deliveries', 'webhook_queues']
  const left = [...tables, 'webhook_attempts'].map((name) =>
    own.db.query(`SELECT * FROM ${name}`).all(),
  )
  expect(left).toEqual(left.map(() => []))
})

test('no event is stored for an account without a webhook', async () => {
  using own = open()
  await own.link()
  expect(own.db.query('SELECT * FROM webhook_events').all()).toEqual([])
  expect(own.db.query('SELECT * FROM webhook_queues').all()).toEqual([])
})

describe('link.hits', () => {
  /** One webhook of each of two accounts, each with a link. */
  async function openHits(options: Options = {}) {
    const own = open(options)
    for (const account of [1, 2]) {
      await own.add('https://receiver.example/', account, ['link.hits'])
      await own.link('', account)
    }
    return own
  }

  test('only the first host adds events, once a minute', async () => {
    let isFirst = false
    using own = await openHits({ isFirst: () => isFirst })
    own.hit(1)
    own.advance(MINUTE)
    await own.begin()
    expect(own.told()).toEqual([])
    isFirst = true
    await own.begin()
    own.hit(2)
    own.advance(MINUTE - 1)
    await own.begin()
    expect(own.told()).toEqual([[1, 1]])
    own.advance(1)
    await own.begin()
    expect(own.told()).toEqual([
      [1, 1],
      [2, 1],
    ])
  })

  test('a webhook whose last event waits gets the hits of that time later', async () => {
    using own = await openHits()
    for (const link of [1, 2]) own.hit(link)
    own.advance(MINUTE)
    await own.begin()
    expect(own.told()).toEqual([
      [1, 1],
      [2, 1],
    ])
    own.db.run('DELETE FROM webhook_deliveries WHERE webhook_id = 2')
    for (const link of [1, 2]) own.hit(link)
    for (let n = 0; n < 5; n++) {
      own.advance(MINUTE)
      await own.begin()
    }
    expect(own.told().slice(2)).toEqual([[2, 2]])
    own.db.run('DELETE FROM webhook_deliveries')
    own.advance(MINUTE)
    await own.begin()
    expect(own.told().slice(3)).toEqual([[1, 2]])
  })

  test('an event that cannot be added keeps neither tests nor other accounts waiting', async () => {
    using own = await openHits()
    const { addHits } = own.data.webhooks
    const data = own.data.webhooks as { addHits: typeof addHits }
    data.addHits = (command) =>
      command.accountId === 1 ? Promise.reject(new Error('no')) : addHits(command)
    for (const link of [1, 2]) own.hit(link)
    own.advance(MINUTE)
    const ping = { type: 'ping', sequence: 0, body: '[]', more: 0, createdAt: NOW } as const
    const url = 'https://receiver.example/'
    void own.webhooks.test({ ...ping, accountId: 1, id: 'msg', webhookId: 1, url })
    expect((await own.begin()).tests).toHaveLength(1)
    own.webhooks.calls['webhooks.testDone']({ id: 'msg', status: 200, error: null, ms: 1 })
    expect(own.told()).toEqual([[2, 1]])
    data.addHits = addHits
    own.advance(MINUTE)
    await own.begin()
    expect(own.told()).toEqual([
      [2, 1],
      [1, 1],
    ])
  })
})

test('the accounts of a receiver take turns', async () => {
  using receiver = new Receiver()
  using own = open()
  await own.add(`${receiver.url}/1`, 1)
  for (let n = 0; n < 3; n++) await own.link('', 1)
  await own.add(`${receiver.url}/2`, 2)
  own.advance(SECOND)
  await own.link('', 2)
  for (let n = 0; n < 3; n++) await own.run()
  expect(receiver.received.map(({ path }) => path)).toEqual(['/hooks/1', '/hooks/2', '/hooks/1'])
})

test('an account has at most three requests at a time', async () => {
  const asked: string[] = []
  const { promise, resolve: release } = Promise.withResolvers<string[]>()
  const resolve = (name: string) => {
    asked.push(name)
    return promise
  }
  using own = open({ resolve })
  for (let n = 1; n <= 5; n++) await own.add(`https://r${n}.example/`, 1)
  await own.link('', 1)
  await own.add('https://other.example/', 2)
  await own.link('', 2)
  const ended = own.run()
  await eventually('the names are looked up', () => asked.includes('other.example'))
  expect(asked).toEqual(['r1.example', 'r2.example', 'r3.example', 'other.example'])
  release([])
  await ended
})

test.each([
  ['deleted', 'DELETE FROM webhooks'],
  ['disabled', 'UPDATE webhooks SET enabled = 0'],
  ['changed to another URL', `UPDATE webhooks SET url = 'https://other.example/'`],
])('a webhook that is %s before its request gets none', async (_, change) => {
  using receiver = new Receiver()
  using own = open()
  await own.add(receiver.url)
  await own.link()
  const secretsOf = own.calls['webhooks.secrets']
  own.calls['webhooks.secrets'] = (wanted) => {
    own.db.run(change)
    return secretsOf?.(wanted)
  }
  await own.run()
  expect(receiver.received).toEqual([])
  expect(own.attempts()).toEqual([])
})

test('a request that cannot be prepared is a failed attempt, which is logged once', async () => {
  using receiver = new Receiver()
  using own = open()
  await own.add(receiver.url)
  const { sealed } =
    own.db.query<{ sealed: Uint8Array }, []>('SELECT secret AS sealed FROM webhooks').get() ?? {}
  own.db.run(`UPDATE webhooks SET secret = x'00'`)
  await own.link()
  await own.run()
  own.advance(6 * SECOND)
  await own.run()
  expect(own.attempts()).toMatchObject([
    { status: null, error: 'internal', attempt: 2 },
    { status: null, error: 'internal', attempt: 1 },
  ])
  expect(own.lines.filter((line) => line.includes('webhook.not_prepared'))).toHaveLength(1)
  own.db.run('UPDATE webhooks SET secret = ?', [sealed ?? null])
  own.advance(6 * MINUTE)
  await own.run()
  expect(receiver.received).toHaveLength(1)
})
