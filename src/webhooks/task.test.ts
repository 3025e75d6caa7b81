import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { type Received, Receiver } from '../../test/support/receiver.ts'
import { dataOn } from '../../test/support/subjects.ts'
import { SecretHasher } from '../accounts/secrets.ts'
import { subjects } from '../data.ts'
import { migrate } from '../db/migrate.ts'
import { callOrigin } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'
import { createLog } from '../lib/log.ts'
import { secureRandom } from '../lib/random.ts'
import { AllowedHosts } from '../outgoing/addresses.ts'
import { type Resolver, Sender } from '../outgoing/sender.ts'
import { Webhooks } from './control.ts'
import { DELIVERIES_MAX, eventQueue } from './events.ts'
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
}

/** Webhooks on one connection: the task runs when the test calls `run`. */
function open({ resolve, hosts = ['127.0.0.1'], host = '', others = () => [] }: Options = {}) {
  const db = new Database(':memory:')
  migrate(db)
  db.run(`INSERT INTO accounts (name, plan, created_at) VALUES ('a', 'free', 0)`)
  const data = dataOn(db, subjects)
  const hasher = new SecretHasher(Buffer.alloc(32, 1))
  const clock = () => NOW
  const log = createLog({ level: 'silent', human: false, write() {} })
  const time = { clock, monotonic: clock }
  const parts = { data, hasher, log, ...time, outgoingHosts: hosts, wake() {} }
  const webhooks = new Webhooks({
    ...parts,
    hits: { of: () => new Map() },
    host,
    others,
    isFirst: () => true,
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
    add: (url: string) =>
      createWebhook({ ...parts, webhooks, random: secureRandom }, ACCOUNT, {
        url,
        events: ['link.created'],
      }),
    /** Creates a link, by a call of a host. */
    link(origin = '') {
      callOrigin(db).host = origin
      const code = `LINK${String(++links).padStart(6, '0')}` as Code
      const item = { code, url: null, urlKey: null, passcodeHash: new Uint8Array(32) }
      const quota = { linksMax: 0, urlBytesMax: 0 }
      const author = { accountId: 1, by: 'operator', now: NOW } as const
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
