import { expect, test } from 'bun:test'
import { DAY } from '../../src/lib/clock.ts'
import type { Outgoing } from '../../src/outgoing/thread.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { noticesIn } from '../support/dashboard.ts'
import { openBeside } from '../support/database.ts'
import { inviteTo, makeMember } from '../support/members.ts'
import { openQuickWorker, openReusedWorker } from '../support/reused-worker.ts'

/** Checks of destinations: the setting, the page of the checker, and what an account sees. */

const ON = { CHECK_DESTINATIONS: 'on' }
const CODE = 'SPRING26'
const PATH = `/app/links/${CODE}`
const CHECKER = '/-/checker'

/** Counts the connections to an address of this machine. */
function receiver() {
  let connections = 0
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => void connections++, data() {} },
  })
  return {
    url: `http://127.0.0.1:${server.port}/`,
    get connections() {
      return connections
    },
    [Symbol.dispose]: () => server.stop(true),
  }
}

interface CheckRow {
  status: string | null
  due_at: number | null
  printed: number
}

const rowOf = (app: TestApp, code = CODE): CheckRow | null =>
  app.administer(({ db }) =>
    db
      .query<CheckRow, [string]>(
        `SELECT status, due_at, printed FROM link_checks JOIN links ON id = link_id WHERE code = ?`,
      )
      .get(code),
  )

/** Three checks that fail, as the thread records them. */
async function failThrice(app: TestApp, code = CODE): Promise<void> {
  const { data } = app.administration
  const linkId = data.links.findByCode(code as never)?.id ?? 0
  for (let n = 0; n < 3; n++) {
    await data.checks.schedule({ linkIds: [linkId], now: app.now() })
    const dueAt = rowOf(app, code)?.due_at ?? 0
    const finding = { outcome: 'failed', status: '404' } as const
    await data.checks.record({ results: [{ linkId, dueAt, finding }], now: app.now() })
  }
}

const listed = async (app: TestApp, query: string) => {
  const { body } = await app.call('GET', `/api/links${query}`, { key: 'free' })
  return (body.items as { code: string }[]).map(({ code }) => code)
}

test('without the setting no thread starts, nothing is sent, and no page speaks of checks', async () => {
  using site = receiver()
  const threads: string[] = []
  const openWorker = (url: URL) => {
    threads.push(url.pathname)
    return openReusedWorker(url)
  }
  await using app = await testApp({ openWorker })
  const free = await makeMember(app, 'free@example.com')
  await app.claim(CODE, site.url)
  await app.call('GET', `/${CODE}`)
  await failThrice(app)
  app.advance(8 * DAY)
  for (const path of ['/app/links', PATH]) {
    expect((await free.get(path)).text).not.toContain('not answer')
  }
  expect((await app.call('GET', CHECKER)).status).toBe(404)
  expect(threads.filter((path) => path.endsWith('/outgoing.ts'))).toEqual([])
  expect(site.connections).toBe(0)
})

test('with it, a followed link is checked by the thread, which connects to nothing inside', async () => {
  using site = receiver()
  // What receives webhooks is no destination that anybody may probe.
  await using app = await testApp({ env: { ...ON, OUTGOING_HOSTS: '127.0.0.0/8' } })
  await app.claim(CODE, site.url)
  await app.call('GET', `/${CODE}`)
  await app.untilCounted()
  const { outgoing } = app.administration as unknown as { outgoing: Outgoing }
  await eventually('the first check has its time', () => {
    outgoing.wake('checks')
    app.advance(DAY)
    return (rowOf(app)?.due_at ?? null) !== null
  })
  app.advance(7 * DAY)
  await eventually('the link is checked', () => {
    outgoing.wake('checks')
    return (rowOf(app)?.status ?? null) !== null
  })
  expect(rowOf(app)?.status).toBe('address_not_allowed')
  expect(site.connections).toBe(0)
  expect(app.log.join()).not.toContain(site.url)
})

test('a thread that does not start or ends is started again, and goes on with what is due', async () => {
  const workers: Worker[] = []
  const openWorker = (url: URL) => {
    const worker = openQuickWorker(url)
    if (url.pathname.endsWith('/outgoing.ts') && workers.push(worker) === 1) worker.terminate()
    return worker
  }
  await using app = await testApp({ env: ON, openWorker })
  await app.claim(CODE)
  await app.call('GET', `/${CODE}`)
  await eventually('the hit is stored', () =>
    app.administer(({ db }) => db.query('SELECT 1 FROM hits').get() !== null),
  )
  const { data } = app.administration
  const linkIds = [data.links.findByCode(CODE as never)?.id ?? 0]
  await data.checks.schedule({ linkIds, now: app.now() - 15 * DAY })
  const isChecked = () => (rowOf(app)?.status ?? null) !== null
  await eventually('it is checked by the second thread', isChecked)
  app.administer(({ db }) => db.run('UPDATE link_checks SET status = NULL, due_at = 0'))
  workers.at(-1)?.terminate()
  await eventually('it is checked by the third thread', isChecked)
  expect(workers).toHaveLength(3)
  expect(app.log.filter((line) => /thread.restarted/.test(line))).toHaveLength(1)
})

test('the checker has a page for those who find it in their logs', async () => {
  await using app = await testApp({ env: ON })
  const { status, headers, text } = await app.call('GET', CHECKER)
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(text).toContain('hop.test')
  expect(text).toContain('HEAD')
})

test('a dead destination is shown on the list and on the page of its link, until it is changed', async () => {
  await using app = await testApp({ env: ON })
  const free = await makeMember(app, 'free@example.com')
  await app.claim(CODE)
  await app.claim('SUMMER26')
  const page = async (path: string) => (await free.get(path)).text
  expect(noticesIn(await page('/app/links'))).toEqual([])
  await failThrice(app)
  expect(await page('/app/links')).toContain('href="/app/links?state=dead"')
  expect(await page('/app/links?state=dead')).toContain(`value="${CODE}"`)
  expect(await page('/app/links?state=dead')).not.toContain('value="SUMMER26"')
  expect(await page(PATH)).toContain('>Does not answer</span>')
  expect(await page(PATH)).toContain('404, since 2026-03-01')
  expect(await page('/app/links/SUMMER26')).not.toContain('since 2026-03-01')
  expect(await listed(app, '?state=dead')).toEqual([CODE])
  expect((await app.call('GET', `/${CODE}`)).status).toBe(302)

  await free.post(`${PATH}/settings`, { url: 'https://example.com/new' })
  expect(await page(PATH)).not.toContain('Does not answer')
  expect(await page('/app/links')).not.toContain('href="/app/links?state=dead"')
  app.advance(60_000)
  expect(await listed(app, '?state=dead')).toEqual([])
})

test('another account sees nothing of it', async () => {
  await using app = await testApp({ env: ON })
  const [ann, bob] = [
    await makeMember(app, 'free@example.com'),
    await makeMember(app, 'b@b.example'),
  ]
  await app.claim(CODE)
  await failThrice(app)
  const notice = async (who: typeof ann) => noticesIn((await who.get('/app/links')).text).length
  expect([await notice(ann), await notice(bob)]).toEqual([1, 0])
})

test.each([
  ['the QR code of a link', `${PATH}/qr.png`],
  ['labels', `/app/print/labels.pdf?codes=${CODE}`],
  ['a ZIP of codes', `/app/print/codes.zip?codes=${CODE}`],
])('a link is checked from then on when an editor downloads %s', async (_, path) => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const viewer = await makeMember(app, 'viewer@example.com')
  await app.claim(CODE)
  const joining = await inviteTo(free, 'viewer@example.com', 'viewer')
  await viewer.post(joining, {})
  expect((await viewer.get(path)).status).toBe(200)
  expect(rowOf(app)).toBeNull()
  expect((await free.get(path)).status).toBe(200)
  expect(rowOf(app)?.printed).toBe(1)
})

test('a QR code is downloaded though its link cannot be noted, and a second time without a write', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  await app.claim(CODE)
  const db = openBeside(app.dataDir)
  db.run(
    "CREATE TRIGGER refused BEFORE INSERT ON link_checks BEGIN SELECT raise(ABORT, 'refused'); END",
  )
  expect((await free.get(`${PATH}/qr.png`)).status).toBe(200)
  expect(rowOf(app)).toBeNull()
  db.run('DROP TRIGGER refused')
  expect((await free.get(`${PATH}/qr.png`)).status).toBe(200)
  expect(rowOf(app)?.printed).toBe(1)
  db.run('CREATE TRIGGER written BEFORE UPDATE ON link_checks BEGIN DELETE FROM link_checks; END')
  db.close()
  expect((await free.get(`${PATH}/qr.png`)).status).toBe(200)
  expect(rowOf(app)?.printed).toBe(1)
})
