import { expect, test } from 'bun:test'
import { MINUTE } from '../../src/lib/clock.ts'
import { AUTH_PATHS, filePaths, pagePaths } from '../abuse/pages.ts'
import { testApp } from '../support/app.ts'
import { type Seen, Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'
import { sharedApp } from '../support/shared.ts'

/** Every request of the dashboard is charged to a rate limit of its account, or of its address. */

/** The default of `DASHBOARD_REQUESTS_PER_MINUTE`. */
const PAGES_PER_MINUTE = 600
/** Of the Free plan. */
const WRITES_PER_MINUTE = 60

async function spendAll(visitor: Visitor, path: string): Promise<Seen> {
  const statuses: number[] = []
  for (let sent = 0; sent <= PAGES_PER_MINUTE; sent += 25) {
    const seen = await Promise.all(Array.from({ length: 25 }, () => visitor.get(path)))
    statuses.push(...seen.map(({ status }) => status))
  }
  // Those of a round may overtake one another, a whole round not.
  const passed = statuses.filter((status) => status !== 429).length
  expect(passed).toBeGreaterThan(0)
  expect(passed).toBeLessThanOrEqual(PAGES_PER_MINUTE)
  expect(statuses.slice(passed + 25).every((status) => status === 429)).toBe(true)
  return visitor.get(path)
}

/** The account of the member has one link, and no request left. */
const withSpent = sharedApp(async (app) => {
  const other = await makeMember(app, 'other@example.com')
  const member = await makeMember(app, 'free@example.com')
  const { code } = await app.shorten('https://a.example/')
  await spendAll(member, '/app/links/code')
  return { member, other, code }
})

test('pages of a session end at a limit, with a page that says when to come again', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const seen = await spendAll(free, '/app/links/code')
  expect(seen.status).toBe(429)
  expect(seen.headers.get('retry-after')).toBe('60')
  expect(seen.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(seen.text).toContain(messageOf('rate_limited', '60'))
  app.advance(MINUTE)
  expect((await free.get('/app/links')).status).toBe(200)
})

test('pages, fragments, QR files, exports, searches and forms: each is charged', async () => {
  const { member, code } = await withSpent()
  for (const path of [...pagePaths(code), ...filePaths(code), '/app/service/accounts']) {
    expect({ path, status: (await member.get(path)).status }).toEqual({ path, status: 429 })
  }
  for (const path of ['/app/links', '/app/links/bulk', '/app/keys/new', '/app/sign-out']) {
    const { status } = await member.post(path, { csrf: 'of another session', url: 'x' })
    expect({ path, status }).toEqual({ path, status: 429 })
  }
})

test('a part of a page that is refused is empty, and says when to come again', async () => {
  const { member, code } = await withSpent()
  const seen = await member.get(`/app/analytics/${code}`, { 'hx-request': 'true' })
  expect({ status: seen.status, text: seen.text }).toEqual({ status: 429, text: '' })
  expect(seen.headers.get('retry-after')).toBe('60')
})

test('pages take nothing of the API’s budgets, of another account, or of the auth pages', async () => {
  const { app, member, other } = await withSpent()
  const { headers } = await app.call('GET', '/api/list', { key: 'free' })
  expect(headers.get('x-ratelimit-remaining')).toBe('299')
  expect((await other.get('/app/links')).status).toBe(200)
  const page = await other.get('/app/links')
  const script = /src="(\/app\/assets\/[^"]+)"/.exec(page.text)?.[1] ?? ''
  expect((await member.get(script)).status).toBe(200)
  expect((await new Visitor(app).get('/app/sign-in')).status).toBe(200)
})

test('auth pages are charged to the address, and its sessions go on', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const anonymous = new Visitor(app)
  expect((await spendAll(anonymous, '/app/sign-in')).status).toBe(429)
  for (const path of AUTH_PATHS) {
    expect({ path, status: (await anonymous.get(path)).status }).toEqual({ path, status: 429 })
  }
  expect((await free.get('/app/links')).status).toBe(200)
  const elsewhere = new Visitor(app, { from: '203.0.113.9' })
  expect((await elsewhere.get('/app/sign-in')).status).toBe(200)
  expect((await app.call('GET', '/api/status', { from: '192.0.2.50' })).status).toBe(200)
})

test('a limit of 0 is none', async () => {
  await using app = await testApp({ env: { DASHBOARD_REQUESTS_PER_MINUTE: '0' } })
  const free = await makeMember(app, 'free@example.com')
  for (let sent = 0; sent <= PAGES_PER_MINUTE; sent += 50) {
    const seen = Array.from({ length: 50 }, () => free.get('/app/links/code'))
    for (const { status } of await Promise.all(seen)) expect(status).toBe(200)
  }
})

test('every form that changes links, images or imports is charged to the write budget', async () => {
  await using app = await testApp()
  const free = await makeMember(app, 'free@example.com')
  const { code } = await app.shorten('https://a.example/')
  for (let n = 1; n < WRITES_PER_MINUTE; n++) await app.shorten(`https://a.example/${n}`)
  const ofLink = ['/settings', '/destinations', '/pause', '/delete', '/undo-delete']
  const paths = [
    ...ofLink.map((path) => `/app/links/${code}${path}`),
    ...['', '/bulk', '/import', '/import/start'].map((path) => `/app/links${path}`),
    ...['/logo', '/logo/remove', '/presets', '/presets/delete'].map((path) => `/app/qr${path}`),
  ]
  for (const path of paths) {
    const { status } = await free.post(path, { url: 'https://b.example/' }, { from: '/app/links' })
    expect({ path, status }).toEqual({ path, status: 429 })
  }
  for (const path of ['/app/links/batch', '/app/links/undo']) {
    const fields = { code, action: 'delete' }
    const { status } = await free.post(path, fields, { from: '/app/links' })
    expect({ path, status }).toEqual({ path, status: 429 })
  }
})
