import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { members } from '../../src/accounts/operations/members.ts'
import type { Author } from '../../src/db/author.ts'
import { HOUR } from '../../src/lib/clock.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { slowly } from '../support/conversation.ts'
import { PASSWORD, setUpOwner, Visitor } from '../support/dashboard.ts'
import { disable, inviteTo, makeMember, operator } from '../support/members.ts'
import { openQuickWorker } from '../support/reused-worker.ts'
import { operationsOn } from '../support/subjects.ts'

/** Who sends a write is judged when it is stored, not only when its request begins. */

const OLD = 'https://example.com/old'
const NEW = 'https://example.com/new'

type Link = { code: string; passcode: string }

const writes = [
  { path: '/api/shorten', json: () => ({ url: NEW }) },
  { path: '/api/bulk-shorten', json: () => ({ urls: [NEW] }) },
  { path: '/api/reserve', json: () => ({ code: 'LATE2026' }) },
  { path: '/api/update', json: (link: Link) => ({ ...link, url: NEW }) },
  { path: '/api/delete', json: (link: Link) => link },
]

const endings = [
  { name: 'its key is ended', end: (app: TestApp) => app.revokeKey('free', { now: true }) },
  {
    name: 'its key is rotated and the old one ended',
    end: (app: TestApp) => void app.rotateKey('free', { now: true }),
  },
  {
    name: 'the 24 hours of its rotated key are over',
    end: (app: TestApp) => {
      app.revokeKey('free')
      app.advance(24 * HOUR)
    },
  },
  { name: 'its account is disabled', end: (app: TestApp) => disable(app, 'free@example.com') },
]

const cases = writes.flatMap((write) => endings.map((ending) => ({ ...write, ...ending })))

/** Sends a write of the Free account, whose key or account ends while the body is held back. */
async function writeLate(app: TestApp, { path, json, end }: (typeof cases)[number]) {
  const link = await app.claim('SPRING26', OLD)
  const head = [
    `POST ${path} HTTP/1.1`,
    `X-API-Key: ${app.key('free')}`,
    'Content-Type: application/json',
  ]
  return await slowly(app, { head, body: JSON.stringify(json(link)) }, async () => end(app))
}

test.each(cases)('$path changes nothing when $name while the body arrives', async (late) => {
  await using app = await testApp()
  const { status, text, headers } = await writeLate(app, late)
  expect({ status, body: JSON.parse(text) }).toEqual({
    status: 401,
    body: { error: 'Invalid or missing API key' },
  })
  expect(headers.get('x-ratelimit-limit')).toBe('60')
  expect((await app.call('GET', '/SPRING26')).headers.get('location')).toBe(OLD)
  using db = new Database(join(app.dataDir, 'hopcode.db'), { readonly: true, strict: true })
  expect(db.query('SELECT code, url FROM links').all()).toEqual([{ code: 'SPRING26', url: OLD }])
})

test.each(writes)('$path goes on when another key of the account ends meanwhile', async (write) => {
  await using app = await testApp()
  const old = app.key('free')
  app.rotateKey('free')
  const end = () => {
    expect(app.key('free')).not.toBe(old)
    app.advance(24 * HOUR)
  }
  const { status } = await writeLate(app, { ...write, name: '', end })
  expect([200, 201]).toContain(status)
})

/** A service whose writer thread gets no write of an author while `holds` is set. */
async function heldApp() {
  const state = { holds: false, release: () => {}, arrived: Promise.withResolvers<void>() }
  const isAuthored = ({ batch = [] }: { batch?: { args?: { author?: object } }[] }) =>
    batch.some(({ args }) => args?.author)
  const app = await testApp({
    openWorker(url) {
      if (!url.pathname.endsWith('/threads/writer.ts')) return openQuickWorker(url)
      const worker = new Worker(url)
      const post = worker.postMessage.bind(worker) as (message: object, list?: unknown) => void
      worker.postMessage = (message: object, list?: unknown) => {
        if (!state.holds || !isAuthored(message)) return post(message, list)
        state.release = () => post(message, list)
        state.arrived.resolve()
      }
      return worker
    },
  })
  /** Sends a request, does `meanwhile` between its guard and the writer, and lets it go on. */
  const hold = async <Result>(request: () => Promise<Result>, meanwhile: () => void) => {
    state.holds = true
    const answered = request()
    await state.arrived.promise
    meanwhile()
    const before = rowsOf(app)
    state.release()
    return { answer: await answered, before }
  }
  return { app, hold, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
}

/** Without the last use of a key, which is written a little later. */
const ROWS = [
  'id, hash, name, ends_at FROM api_keys',
  ...(
    'accounts people memberships one_time_links links link_tags aliases shared_pages qr_presets ' +
    'blocked_hosts disabled_codes domains settings'
  )
    .split(' ')
    .map((table) => `* FROM ${table}`),
]
const rowsOf = (app: TestApp) =>
  app.administer(({ db }) => ROWS.map((rows) => [rows, db.query(`SELECT ${rows}`).values()]))

test('a request whose key ends between its check and the writer changes nothing', async () => {
  await using it = await heldApp()
  const { app } = it
  const { code } = await app.claim('SPRING26', OLD)
  const { answer, before } = await it.hold(
    () => app.call('PATCH', `/api/links/${code}`, { key: 'free', json: { title: 'x' } }),
    () => app.revokeKey('free', { now: true }),
  )
  expect(answer.status).toBe(401)
  expect(rowsOf(app)).toEqual(before)
})

const LINK = '/app/links/SPRING26'
const ACCOUNT = '/app/account'
const forms = [
  { path: '/app/links', fields: { url: NEW }, from: '/app/links' },
  { path: '/app/links/bulk', fields: { urls: NEW }, from: '/app/links/bulk' },
  { path: `${LINK}/settings`, fields: { url: NEW }, from: LINK },
  { path: `${LINK}/pause`, fields: { paused: '1' }, from: LINK },
  { path: `${LINK}/delete`, fields: {}, from: LINK },
  { path: `${LINK}/settings`, fields: { public: '1', was_public: 'off' }, from: LINK },
  { path: '/app/qr/presets', fields: { name: 'Menu', margin: '4' }, from: '/app/qr' },
  { path: '/app/keys/new', fields: { name: 'Shop', scope: 'write' }, from: '/app/keys' },
  { path: '/app/keys/end', fields: { key: '1' }, from: '/app/keys' },
  { path: `${ACCOUNT}/name`, fields: { name: 'Ours' }, from: ACCOUNT },
  { path: `${ACCOUNT}/time-zone`, fields: { zone: 'Asia/Tokyo' }, from: ACCOUNT },
  {
    path: `${ACCOUNT}/members/invite`,
    fields: { email: 'eve@example.com', role: 'admin' },
    from: `${ACCOUNT}/members`,
  },
  { path: `${ACCOUNT}/delete`, fields: { current: PASSWORD }, from: ACCOUNT },
]

const BOB = 'bob@example.com'
const idOf = (app: TestApp, email: string) =>
  app.administer(({ accounts }) => accounts.findByEmail(email)?.id ?? 0)

const lost = [
  {
    name: 'is removed from the account',
    lose: (app: TestApp, about: { author: Author; personId: number }) =>
      app.administer(({ db }) => void operationsOn(db, members).remove(about)),
    answer: { status: 303, location: '/app/sign-in' },
  },
  {
    name: 'becomes a viewer of the account',
    lose: (app: TestApp, about: { author: Author; personId: number }) =>
      app.administer(
        ({ db }) => void operationsOn(db, members).setRole({ ...about, role: 'viewer' }),
      ),
    answer: { status: 403, location: null },
  },
]

test.each(forms.flatMap((form) => lost.map((one) => ({ ...form, ...one }))))(
  '$path changes nothing by a member who $name between its check and the writer',
  async ({ path, fields, from, lose, answer: expected }) => {
    await using it = await heldApp()
    const { app } = it
    await app.claim('SPRING26', OLD)
    const free = await makeMember(app, 'free@example.com')
    const bob = new Visitor(app)
    await bob.post(await inviteTo(free, BOB), { password: PASSWORD })
    const about = { author: operator(app, idOf(app, 'free@example.com')), personId: idOf(app, BOB) }
    const { answer, before } = await it.hold(
      () => bob.post(path, fields as Record<string, string>, { from }),
      () => lose(app, about),
    )
    expect(answer).toMatchObject(expected)
    expect(rowsOf(app)).toEqual(before)
  },
)

test('a former owner of the service changes nothing with a form that was on its way', async () => {
  await using it = await heldApp()
  const { app } = it
  const { owner } = await setUpOwner(app)
  const page = '/app/service/hosts'
  const { answer, before } = await it.hold(
    () => owner.post(page, { host: 'bad.example', reason: 'x' }),
    () => app.administer(({ db }) => void db.run('UPDATE people SET is_owner = 0')),
  )
  expect(answer).toMatchObject({ status: 303, location: '/app/sign-in' })
  expect(rowsOf(app)).toEqual(before)
})
