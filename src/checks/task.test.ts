import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { eventually } from '../../test/support/app.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { dataOn, plainWrites } from '../../test/support/subjects.ts'
import { migrate } from '../db/migrate.ts'
import { inTransaction, openWritable } from '../db/open.ts'
import { encodeHours } from '../hits/hours.ts'
import { hourOf } from '../hits/series.ts'
import { DAY, HOUR } from '../lib/clock.ts'
import { newCode } from '../lib/code.ts'
import { secureRandom } from '../lib/random.ts'
import { links } from '../links/subject.ts'
import { urlKey } from '../links/url.ts'
import type { OutgoingRequest, OutgoingResult, Sender } from '../outgoing/sender.ts'
import { checks, nextSlot } from './store.ts'
import { destinationChecks } from './task.ts'

/** The task on a real database, with a sender that answers as the test says. */

const START = Date.UTC(2026, 2, 1, 12)
const WEEK = 7 * DAY

type Answer = Extract<OutgoingResult, { ok: false }>['error'] | number

function setUp(path: string) {
  const db = openWritable(join(path, 'hopcode.db'))
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  db.run("INSERT INTO accounts (name, plan, created_at) VALUES ('a', 'pro', 0), ('b', 'pro', 0)")
  const writes = plainWrites(db)
  const data = dataOn(db, { checks, links })
  const world = {
    now: START,
    isMine: true,
    answers: new Map<string, Answer>(),
    requests: [] as string[],
    /** What was recorded as having changed. */
    changed: [] as [number, boolean][],
    /** Runs before each answer. */
    onRequest: (_: string): void | Promise<void> => {},
  }
  const calls: Record<string, (args: never) => unknown> = {
    'checks.isMine': () => world.isMine,
    'checks.schedule': (args) => inTransaction(db, () => data.checks.schedule(args)),
    async 'checks.record'(args) {
      const changed = await data.checks.record(args)
      world.changed.push(...changed.map(({ id, isDead }): [number, boolean] => [id, isDead]))
    },
  }
  const sender = {
    async send({ url, method }: OutgoingRequest): Promise<OutgoingResult> {
      world.requests.push(`${method} ${url.href}`)
      await world.onRequest(url.href)
      const answer = world.answers.get(url.href) ?? 200
      if (typeof answer === 'number') return { ok: true, status: answer, headers: {}, ms: 1 }
      return { ok: false, error: answer, ms: 1 }
    },
  } as Sender
  const task = destinationChecks({
    db,
    sender,
    clock: () => world.now,
    baseUrl: 'http://hop.test',
    call: async (name, args) => calls[name]?.(args as never),
    wake() {},
  })
  return {
    db,
    data,
    world,
    /** A link that was followed `hoursAgo`; never, without it. */
    link(url: string, hoursAgo?: number, accountId = 1): number {
      const item = { url, urlKey: urlKey(new URL(url)), code: newCode(secureRandom) }
      const [made] = inTransaction(db, () =>
        writes.create(accountId, [{ ...item, passcodeHash: new Uint8Array(32) }]),
      )
      const id = made?.id ?? 0
      if (hoursAgo !== undefined) {
        const hours = encodeHours([[hourOf(START) - hoursAgo, 1]])
        db.run('INSERT INTO hits (link_id, account_id, count, hours) VALUES (?, ?, 1, ?)', [
          id,
          accountId,
          hours,
        ])
      }
      return id
    },
    setUrl: (id: number, url: string) => inTransaction(db, () => writes.setUrl(1, id, url)),
    remove: (id: number) => inTransaction(db, () => writes.remove(1, id)),
    /** Makes all links due, in the order of their ids. */
    async makeDue(): Promise<void> {
      await this.run()
      db.run('UPDATE link_checks SET due_at = link_id')
    },
    page: () => task.run(),
    /** Everything that is due now. */
    async run(): Promise<void> {
      while ((await task.run()) === 0);
    },
    /** Each step and what is due after it. */
    async pass(ms: number, stepMs = HOUR): Promise<void> {
      const end = world.now + ms
      while (world.now < end) {
        world.now += stepMs
        await this.run()
      }
    },
    row: (id: number) =>
      db
        .query<{ status: string | null; failures: number; failing_since: number | null }, [number]>(
          'SELECT status, failures, failing_since FROM link_checks WHERE link_id = ?',
        )
        .get(id),
    isDead: (id: number) => data.checks.findDead([id]).has(id),
    [Symbol.dispose]: () => db.close(),
  }
}

test('links that were followed in the last 30 days or printed are checked once a week, no others', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  app.link('https://followed.example/', 5)
  app.link('https://month.example/', 22 * 24)
  app.link('https://old.example/', 31 * 24)
  app.link('https://never.example/')
  const printed = app.link('https://printed.example/')
  const author = { accountId: 1, by: 'operator', now: START } as const
  inTransaction(app.db, () => app.data.checks.notePrinted({ author, linkIds: [printed] }))
  await app.pass(WEEK)
  expect(app.world.requests.toSorted()).toEqual(
    ['followed', 'month', 'printed'].map((name) => `HEAD https://${name}.example/`),
  )
  await app.pass(WEEK)
  app.world.requests.length = 0
  await app.pass(WEEK)
  // The last visit of one was too long ago by now.
  expect(app.world.requests.toSorted()).toEqual(
    ['followed', 'printed'].map((name) => `HEAD https://${name}.example/`),
  )
})

test('the checks of many links are spread over the week', () => {
  const days = [0, 0, 0, 0, 0, 0, 0]
  for (let id = 1; id <= 7000; id++) {
    const at = nextSlot(id, START)
    expect(at).toBeGreaterThan(START)
    expect(at).toBeLessThanOrEqual(START + WEEK)
    expect(nextSlot(id, at)).toBe(at + WEEK)
    const day = Math.min(6, Math.floor((at - START) / DAY))
    days[day] = (days[day] ?? 0) + 1
  }
  expect(Math.min(...days)).toBeGreaterThan(800)
})

test.each<Answer>([404, 410, 'no_such_name', 'refused', 'bad_certificate'])(
  'three failures on three days make a destination dead, and an answer makes it alive: %p',
  async (answer) => {
    using folder = temporaryFolder()
    using app = setUp(folder.path)
    const id = app.link('https://shop.example/', 1)
    const other = app.link('https://fine.example/', 1)
    app.world.answers.set('https://shop.example/', answer)
    await app.pass(WEEK)
    const failures = app.row(id)?.failures ?? 0
    const left = Math.max(0, 3 - failures)
    await app.pass(left * DAY)
    const since = app.row(id)?.failing_since ?? 0
    expect(app.world.now - since).toBeGreaterThanOrEqual(2 * DAY)
    expect([app.isDead(id), app.isDead(other)]).toEqual([true, false])
    expect(app.data.checks.countDead(1)).toBe(1)
    app.world.answers.delete('https://shop.example/')
    await app.pass(DAY + HOUR)
    expect([app.isDead(id), app.row(id)?.failing_since]).toEqual([false, null])
    expect(app.world.changed).toEqual([
      [id, true],
      [id, false],
    ])
    const events = app.db.query(
      "SELECT link_id, kind, actor_kind, after FROM link_events WHERE kind IN ('dead', 'alive')",
    )
    expect(events.values()).toEqual([
      [id, 'dead', 'schedule', JSON.stringify(String(answer))],
      [id, 'alive', 'schedule', '"200"'],
    ])
  },
)

test('one failure, or two with an answer before the third, make no destination dead', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  const id = app.link('https://shop.example/', 1)
  app.world.answers.set('https://shop.example/', 404)
  while (app.world.requests.length === 0) await app.pass(HOUR)
  expect([app.isDead(id), app.row(id)?.failures]).toEqual([false, 1])
  await app.pass(DAY + HOUR)
  expect([app.isDead(id), app.row(id)?.failures]).toEqual([false, 2])
  app.world.answers.set('https://shop.example/', 200)
  await app.pass(DAY + HOUR)
  expect(app.row(id)).toEqual({ status: '200', failures: 0, failing_since: null })
  expect(app.world.changed).toEqual([])
})

test.each<Answer>([401, 403, 429, 500, 503, 'timeout', 'connection_failed', 'address_not_allowed'])(
  'a destination that cannot be checked is never dead: %p',
  async (answer) => {
    using folder = temporaryFolder()
    using app = setUp(folder.path)
    const id = app.link('https://shop.example/', 1)
    app.world.answers.set('https://shop.example/', answer)
    await app.pass(4 * WEEK, 6 * HOUR)
    expect(app.row(id)).toMatchObject({ status: String(answer), failures: 0, failing_since: null })
    expect(app.world.changed).toEqual([])
  },
)

test('a check that says nothing neither counts as a failure nor ends a row of them', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  const id = app.link('https://shop.example/', 1)
  const answers: Answer[] = [404, 503, 404, 'timeout', 404]
  app.world.onRequest = () => void app.world.answers.set('https://shop.example/', answers[0] ?? 200)
  await app.pass(WEEK)
  for (let n = 0; n < 20 && answers.length > 1; n++) {
    answers.shift()
    await app.pass(DAY + HOUR, DAY + HOUR)
  }
  expect(app.isDead(id)).toBe(true)
})

test('a change of the destination forgets what was found, also while its check runs', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  const id = app.link('https://shop.example/', 1)
  app.world.answers.set('https://shop.example/', 404)
  await app.pass(2 * WEEK)
  expect(app.isDead(id)).toBe(true)
  app.setUrl(id, 'https://new.example/')
  expect([app.isDead(id), app.row(id)?.status]).toEqual([false, null])
  app.world.answers.set('https://new.example/', 404)
  app.world.onRequest = (url) => {
    if (url === 'https://new.example/') app.setUrl(id, 'https://newest.example/')
  }
  while (!app.world.requests.some((one) => one.endsWith('//new.example/'))) await app.pass(HOUR)
  expect(app.row(id)).toEqual({ status: null, failures: 0, failing_since: null })
})

test('a deleted link leaves no row, and one that is handed over keeps its own', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  const [gone, moved] = [app.link('https://a.example/', 1), app.link('https://b.example/', 1)]
  app.world.answers.set('https://b.example/', 410)
  await app.pass(2 * WEEK)
  app.remove(gone)
  app.db.run('UPDATE links SET account_id = 2 WHERE id = ?', [moved])
  expect(app.row(gone)).toBeNull()
  expect([app.data.checks.countDead(1), app.data.checks.countDead(2)]).toEqual([0, 1])
})

test('a host that is not the one to check sends nothing, and does once it is', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  app.link('https://shop.example/', 1)
  app.world.isMine = false
  await app.pass(WEEK)
  expect(app.world.requests).toEqual([])
  app.world.isMine = true
  await app.pass(WEEK)
  expect(app.world.requests).toEqual(['HEAD https://shop.example/'])
})

test('links of one host are read in pages, and one that does not answer holds up no others', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  for (let n = 0; n < 1200; n++) app.link(`https://many.example/${n}`, 1)
  app.link('https://other.example/', 1)
  for (let n = 0; n < 1200; n++) app.world.answers.set(`https://many.example/${n}`, 'timeout')
  await app.run()
  app.world.now += WEEK
  await app.run()
  expect(app.world.requests).toContain('HEAD https://other.example/')
  // A page of 100 asks until a first answer is missing: with HEAD and GET, for 8 at a time at most.
  const asked = app.world.requests.length
  expect(asked).toBeLessThanOrEqual(13 * 8 * 2 + 1)
  const rows = app.db.query<{ n: number }, []>(
    "SELECT count(*) AS n FROM link_checks WHERE status = 'timeout'",
  )
  expect(rows.get()?.n).toBe(1200)
})

test('of a host that answers, ten links are asked for in a page, and the others in the next ones', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  for (let n = 0; n < 35; n++) app.link(`https://many.example:${8000 + n}/`, 1)
  app.link('https://other.example/', 1)
  await app.makeDue()
  expect(await app.page()).toBe(0)
  const { requests } = app.world
  expect(requests).toContain('HEAD https://other.example/')
  expect(requests).toHaveLength(10 + 1)
  await app.run()
  expect([requests.length, new Set(requests).size]).toEqual([36, 36])
})

test('accounts take turns: many links of one do not delay those of another', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  for (let n = 0; n < 300; n++) app.link(`https://many-${n}.example/`, 1)
  for (let n = 0; n < 3; n++) app.link(`https://few-${n}.example/`, 1, 2)
  await app.makeDue()
  await app.page()
  const { requests } = app.world
  expect(requests.length).toBeLessThanOrEqual(100)
  expect(requests.filter((one) => one.includes('few-'))).toHaveLength(3)
  await app.run()
  expect([requests.length, new Set(requests).size]).toEqual([303, 303])
})

test('more accounts than fit into a page have all of their links checked without a pause', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  for (let n = 0; n < 300; n++) app.link(`https://site-${n}.example/`, 1, 1 + (n % 100))
  await app.makeDue()
  await app.run()
  expect(new Set(app.world.requests).size).toBe(300)
})

test('while a host takes its time, other links are checked and their results stored', async () => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  for (let n = 0; n < 20; n++) app.link(`https://slow.example/${n}`, 1)
  for (let n = 0; n < 60; n++) app.link(`https://site-${n}.example/`, 1)
  await app.makeDue()
  const answer = Promise.withResolvers<void>()
  app.world.onRequest = (url) => (url.includes('slow') ? answer.promise : undefined)
  const page = app.page()
  const checked = app.db.query('SELECT 1 FROM link_checks WHERE status IS NOT NULL')
  await eventually('the results of others are stored', () => checked.all().length === 60)
  expect(app.world.requests.filter((one) => one.includes('slow'))).toHaveLength(1)
  answer.resolve()
  await page
  expect(checked.all()).toHaveLength(60 + 10)
})

test.each([
  ['it is disabled', "INSERT INTO disabled_codes SELECT code, 'bad', 0 FROM links"],
  ['its account’s links are disabled', 'UPDATE accounts SET links_disabled_at = 1'],
  ['it is being deleted', 'UPDATE links SET delete_at = 1'],
])('a link is not checked while %s', async (_, sql) => {
  using folder = temporaryFolder()
  using app = setUp(folder.path)
  app.link('https://shop.example/', 1)
  app.db.run(sql)
  await app.pass(WEEK)
  expect(app.world.requests).toEqual([])
})
