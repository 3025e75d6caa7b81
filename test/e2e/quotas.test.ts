import { expect, test } from 'bun:test'
import { databaseFile, openReadonly } from '../../src/db/open.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { openBeside, problemsOf } from '../support/database.ts'
import { makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'

/** What an account may store by its plan: links, and bytes of URLs. */

const LINKS_FULL = messageOf('quota_exceeded', 'your plan stores at most 3 links')
const BYTES_FULL = messageOf('quota_exceeded', 'your plan stores at most 1 KiB of URLs')

const send = (app: TestApp, path: string, json: unknown, key = 'free') =>
  app.call('POST', `/api/${path}`, { key, json })
const shorten = (app: TestApp, url: string, key?: string) => send(app, 'shorten', { url }, key)
const url = (n: number | string) => `https://example.com/${n}`

function stored(app: TestApp) {
  using db = openReadonly(databaseFile(app.dataDir), { cacheKiB: 1024 })
  const rows = db
    .query<{ links: number; bytes: number }, []>(
      'SELECT link_count AS links, url_bytes AS bytes FROM accounts ORDER BY id',
    )
    .all()
  return { problems: problemsOf(app), rows }
}

test('a plan’s quota of links is enforced on shorten, bulk and reserve, and a deletion makes room', async () => {
  await using app = await testApp({ env: { FREE_LINKS_MAX: '3' } })
  const full = { status: 422, body: { error: LINKS_FULL } }
  const first = await shorten(app, url(1))
  const bulk = await send(app, 'bulk-shorten', { urls: [url(1), url(2), url(3), url(4), 'bad'] })
  expect(bulk).toMatchObject({
    status: 201,
    body: {
      results: [
        { ok: true, reused: true },
        { ok: true, reused: false },
        { ok: true, reused: false },
        { ok: false, url: url(4), error: LINKS_FULL },
        { ok: false, url: 'bad' },
      ],
    },
  })
  expect(await shorten(app, url(5))).toMatchObject(full)
  expect(await send(app, 'bulk-shorten', { urls: [url(6), url(7)] })).toMatchObject(full)
  expect(await send(app, 'bulk-shorten', { urls: [url(6), 'bad'] })).toMatchObject({ status: 400 })
  expect(await send(app, 'reserve', { code: 'SPRING26' })).toMatchObject(full)
  expect(await app.call('GET', '/api/lookup/SPRING26')).toMatchObject({ status: 404 })
  expect(await send(app, 'reserve', { code: first.body.code })).toMatchObject({ status: 409 })
  // A URL that the account has already needs no room.
  expect(await shorten(app, url(1))).toMatchObject({ status: 200, body: { reused: true } })
  // Other plans have quotas of their own.
  await app.shorten(url(1), 'pro')
  const { code, passcode } = first.body
  expect(await send(app, 'delete', { code, passcode })).toMatchObject({ status: 200 })
  expect(await send(app, 'reserve', { code: 'SPRING26' })).toMatchObject({ status: 201 })
  expect(await shorten(app, url(5))).toMatchObject(full)
  expect(stored(app).problems).toEqual([])
})

test('a plan’s quota of bytes is enforced on shorten, bulk and update, and a shorter URL always fits', async () => {
  await using app = await testApp({ env: { FREE_URL_BYTES_MAX: '1024' } })
  const full = { status: 422, body: { error: BYTES_FULL } }
  // 600 characters that are 1,160 bytes.
  const wide = `https://example.com/${'é'.repeat(580)}`
  expect(await shorten(app, wide)).toMatchObject(full)
  const { code, passcode } = (await shorten(app, url('x'.repeat(580)))).body
  expect(await shorten(app, url('y'.repeat(580)))).toMatchObject(full)
  const bulk = await send(app, 'bulk-shorten', { urls: [url('y'.repeat(580)), url('z')] })
  expect(bulk.body.results).toMatchObject([{ ok: false, error: BYTES_FULL }, { ok: true }])
  const change = (to: string) => send(app, 'update', { code, passcode, url: to })
  expect(await change(wide)).toMatchObject(full)
  expect(await app.call('GET', `/api/lookup/${code}`)).toMatchObject({
    body: { url: url('x'.repeat(580)) },
  })
  expect(await change(url('w'.repeat(980)))).toMatchObject({ status: 200 })
  expect(await send(app, 'reserve', { code: 'SPRING26' })).toMatchObject({ status: 201 })
  expect(await change(url('short'))).toMatchObject({ status: 200 })
  expect(await shorten(app, url('y'.repeat(580)))).toMatchObject({ status: 201 })
  expect(stored(app)).toMatchObject({ problems: [], rows: [{ links: 4 }] })
})

test('requests at the same time do not exceed a quota together', async () => {
  await using app = await testApp({ env: { FREE_LINKS_MAX: '10', FREE_URL_BYTES_MAX: '220' } })
  const requests = Array.from({ length: 30 }, (_, n) =>
    n % 2 ? shorten(app, url(n + 10)) : send(app, 'bulk-shorten', { urls: [url(n + 10)] }),
  )
  const statuses = (await Promise.all(requests)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 201)).toHaveLength(10)
  expect(statuses.filter((status) => status === 422)).toHaveLength(20)
  expect(stored(app)).toEqual({ problems: [], rows: [{ links: 10, bytes: 220 }] })
})

test('a quota of 0 is no limit', async () => {
  const env = { FREE_LINKS_MAX: '0', FREE_URL_BYTES_MAX: '0' }
  await using app = await testApp({ env })
  const urls = Array.from({ length: 100 }, (_, n) => url(`${n}${'x'.repeat(5000)}`))
  expect(await send(app, 'bulk-shorten', { urls })).toMatchObject({ status: 201 })
  const ann = await makeMember(app, 'ann@example.com')
  expect((await ann.get('/app/account')).text).toContain('<dt>Links</dt><dd>0</dd>')
})

test('the account page shows what is stored of the quota, and a form says when it is full', async () => {
  const env = { FREE_LINKS_MAX: '2', FREE_URL_BYTES_MAX: '2048' }
  await using app = await testApp({ env })
  const free = await makeMember(app, 'free@example.com')
  await app.shorten(url('x'.repeat(1004)))
  const account = await free.get('/app/account')
  expect(account.text).toContain('<dt>Links</dt><dd>1 of 2</dd>')
  expect(account.text).toContain('<dt>Stored URLs</dt><dd>1 KiB of 2 KiB</dd>')
  const claim = { code: 'SPRING26', url: url('y'.repeat(1100)) }
  const refused = await free.post('/app/links', claim)
  expect(refused.status).toBe(422)
  expect(refused.text).toMatch(/id="field-url-error">[^<]*at most 2 KiB of URLs/)
  expect(await app.call('GET', '/api/lookup/SPRING26')).toMatchObject({ status: 404 })
  await app.shorten(url(2))
  const more = await free.post('/app/links', { url: url(3) })
  expect(more.status).toBe(422)
  expect(more.text).toContain(messageOf('quota_exceeded'))
})

test('the bytes of an account follow every change, and a check of the database says if they do not', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten(url('é'))
  await send(app, 'update', { code, passcode, url: url('longer') })
  await app.reserve('SPRING26')
  await send(app, 'bulk-shorten', { urls: [url(1), url(1), url(22)] })
  const bytes = (url('longer') + url(1) + url(22)).length
  expect(stored(app)).toEqual({ problems: [], rows: [{ links: 4, bytes }] })
  await send(app, 'delete', { code, passcode })
  expect(stored(app)).toMatchObject({ rows: [{ links: 3, bytes: bytes - url('longer').length }] })
  using db = openBeside(app.dataDir)
  db.run('UPDATE accounts SET url_bytes = url_bytes + 1')
  expect(stored(app).problems).toMatchObject([{ check: 'stored bytes' }])
})
