import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallOptions, eventually, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'

/** The spec's chapter "Limits": who pays, and for what. */

const WINDOW = 60_000

async function remaining(app: TestApp, options: CallOptions = {}): Promise<number> {
  const answer = await app.call('GET', '/api/status', options)
  return Number(answer.headers.get('x-ratelimit-remaining'))
}

type Row = readonly [number, string, string, CallOptions]

/** Each must have the status, and take exactly one of its budget. */
async function expectEachTakesOne(app: TestApp, rows: readonly Row[], left: number) {
  let expected = left
  for (const [status, method, path, options] of rows) {
    const answer = await app.call(method, path, options)
    expected--
    const at = `${method} ${path}`
    const rest = Number(answer.headers.get('x-ratelimit-remaining'))
    expect({ at, status: answer.status, rest }).toEqual({ at, status, rest: expected })
  }
}

// design: 4.4 every request but a 429 takes a slot
test('every write takes one of the write budget, whatever comes of it', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, 'blocked.example\n')
  await using app = await testApp({ env: { BLOCKLIST_FILES: list } })
  const { code, passcode } = await app.shorten('https://example.com/')
  const key = 'free'
  const url = 'https://example.com/new'
  const blocked = 'http://blocked.example/'
  const type = { 'content-type': JSON_TYPE }
  const rows: readonly Row[] = [
    [201, 'POST', '/api/shorten', { key, json: { url } }],
    [200, 'POST', '/api/shorten', { key, json: { url } }],
    [201, 'POST', '/api/reserve', { key, json: { code: 'SPRING26' } }],
    [200, 'POST', '/api/update', { key, json: { code, passcode, url } }],
    [400, 'POST', '/api/shorten', { key, json: {} }],
    [400, 'POST', '/api/update', { key, raw: '{', headers: type }],
    [403, 'POST', '/api/delete', { key, json: { code, passcode: 'WRONG' } }],
    [409, 'POST', '/api/reserve', { key, json: { code } }],
    [413, 'POST', '/api/shorten', { key, raw: ' '.repeat(2 ** 16 + 1), headers: type }],
    [415, 'POST', '/api/bulk-shorten', { key, raw: '{}' }],
    [422, 'POST', '/api/shorten', { key, json: { url: blocked } }],
    [405, 'PUT', '/api/shorten', { key }],
    [405, 'OPTIONS', '/api/delete', { key }],
    [405, 'HEAD', '/api/update', { key }],
    [200, 'POST', '/api/delete', { key, json: { code, passcode } }],
    [403, 'POST', '/api/delete', { key, json: { code, passcode } }],
  ]
  await expectEachTakesOne(app, rows, 59)
  expect(await remaining(app, { key })).toBe(299)
  app.maintenance(app.now() + WINDOW)
  const during: readonly Row[] = [
    [503, 'POST', '/api/shorten', { key, json: { url } }],
    [503, 'PUT', '/api/shorten', { key }],
  ]
  await expectEachTakesOne(app, during, 59 - rows.length)
  app.maintenance(undefined)
  using _broken = breakDatabase(app.dataDir)
  const failing: readonly Row[] = [
    [500, 'POST', '/api/reserve', { key, json: { code: 'SUMMER26' } }],
  ]
  await expectEachTakesOne(app, failing, 57 - rows.length)
})

// design: 4.4 every request but a 429 takes a slot
test('every read takes one of the read budget, whatever comes of it', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  for (const key of ['free', 'nonsense']) {
    const options: CallOptions = { key }
    // Without an account, redirects have a budget of their own: limits-visitors.test.ts.
    const redirects: readonly Row[] = [
      [302, 'GET', `/${code}`, options],
      [302, 'HEAD', `/${code}`, options],
    ]
    const ofAccount = key === 'free' ? redirects : []
    if (key !== 'free') await expectEachTakesOne(app, redirects, 6000)
    const rows: readonly Row[] = [
      [200, 'GET', '/api/status', options],
      [200, 'HEAD', '/api/status', options],
      ...ofAccount,
      [302, 'GET', `/qr/${code}`, options],
      [200, 'GET', `/api/qr/${code}`, options],
      [200, 'GET', `/api/qr-image/${code}`, options],
      [404, 'GET', '/api/lookup/UNKNOWN1', options],
      [404, 'GET', '/UNKNOWN1', options],
      [404, 'GET', '/not-a-code', options],
      [400, 'GET', `/api/qr/${code}?size=1`, options],
      [405, 'POST', `/api/lookup/${code}`, options],
      [405, 'DELETE', `/${code}`, options],
      [key === 'free' ? 400 : 401, 'GET', '/api/list?limit=x', options],
    ]
    await expectEachTakesOne(app, rows, 300)
    app.maintenance(app.now() + WINDOW)
    const during: readonly Row[] = [[503, 'GET', '/api/status', options], ...ofAccount]
    await expectEachTakesOne(app, during, 300 - rows.length)
    app.maintenance(undefined)
  }
})

// spec: Limits | Bulk request cost
// spec: POST /api/bulk-shorten | One request uses one rate-limit slot
test('a bulk request takes one slot, whatever its items', async () => {
  await using app = await testApp()
  const urls = Array.from({ length: 100 }, (_, i) => `https://example.com/${i % 10}`)
  const key = 'free'
  const rows: readonly Row[] = [
    [201, 'POST', '/api/bulk-shorten', { key, json: { urls } }],
    [201, 'POST', '/api/bulk-shorten', { key, json: { urls: [...urls.slice(1), 'x'] } }],
    [400, 'POST', '/api/bulk-shorten', { key, json: { urls: Array(100).fill('x') } }],
    [400, 'POST', '/api/bulk-shorten', { key, json: { urls: Array(101).fill('x') } }],
    [201, 'POST', '/api/bulk-shorten', { key, json: { urls: urls.slice(0, 1) } }],
  ]
  await expectEachTakesOne(app, rows, 60)
})

// design: 4.4 a 429 takes no slot
test('a refused request takes no slot: asking all the time does not put off the end', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '5' } })
  const visit = async () => (await app.call('GET', '/api/status')).status
  for (let i = 0; i < 5; i++) expect(await visit()).toBe(200)
  for (let i = 0; i < 59; i++) {
    app.advance(1000)
    for (let j = 0; j < 5; j++) expect(await visit()).toBe(429)
  }
  app.advance(1000)
  for (let i = 0; i < 5; i++) expect(await visit()).toBe(200)
  expect(await visit()).toBe(429)
})

/** Whether the second address finds a request of the first in its budget. */
const pairs = [
  ['192.0.2.1', '192.0.2.1', true],
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff:eeee:dddd:cccc', true],
  ['2001:db8:1:2::1', '2001:DB8:0001:0002:0:0:0:1', true],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['2001:db8:1:2::1', '2001:db9:1:2::1', false],
  ['192.0.2.1', '::ffff:192.0.2.1', true],
  ['192.0.2.1', '::FFFF:c000:0201', true],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2', false],
  ['127.0.0.1', '::1', false],
] as const

// design: 4.5 an address is an IPv4 or the /64 of an IPv6
test('without a key, budgets go by address: IPv4, or the /64 of IPv6, IPv4-mapped as IPv4', async () => {
  await using app = await testApp()
  for (const [one, other, shared] of pairs) {
    const before = await remaining(app, { from: one })
    const rest = await remaining(app, { from: other })
    expect({ one, other, before, rest }).toEqual({
      one,
      other,
      before: 299,
      rest: shared ? 298 : 299,
    })
    app.advance(WINDOW)
  }
})

// design: 4.5 without a valid key the caller is its address
test('a flood from other addresses neither fills nor frees the budget of one', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '5' } })
  const flood = async (network: number) => {
    for (let block = 0; block < 10; block++) {
      const visits = Array.from({ length: 200 }, (_, i) => {
        const v6 = `2001:db8:${network}:${(block * 200 + i).toString(16)}::1`
        return app.call('GET', '/UNKNOWN1', { from: i % 2 ? v6 : `10.${network}.${block}.${i}` })
      })
      for (const { status } of await Promise.all(visits)) expect(status).toBe(404)
    }
  }
  const visit = async (from: string) => (await app.call('GET', '/api/status', { from })).status
  const [spent, begun] = ['192.0.2.50', '192.0.2.51']
  for (let i = 0; i < 5; i++) expect(await visit(spent)).toBe(200)
  expect(await remaining(app, { from: begun })).toBe(4)
  await flood(1)
  expect(await visit(spent)).toBe(429)
  expect(await remaining(app, { from: begun })).toBe(3)
  app.advance(WINDOW - 1)
  await flood(2)
  expect(await visit(spent)).toBe(429)
  app.advance(1)
  for (let i = 0; i < 5; i++) expect(await visit(spent)).toBe(200)
  expect(await visit('192.0.2.52')).toBe(200)
})

// design: 3 addresses outside the spec
test('probes and stored images take no budget and have no X-RateLimit headers, and the API page is charged as a read', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  const { code } = await app.shorten('https://example.com/')
  const image = join(app.dataDir, 'cdn', 'qr', `${code}.png`)
  await eventually('the image is stored', () => existsSync(image))
  expect(await remaining(app)).toBe(0)
  expect((await app.call('GET', '/api/status')).status).toBe(429)
  for (const path of ['/docs', '/docs/json', '/docs/bundle.js']) {
    expect((await app.call('GET', path)).status).toBe(429)
  }
  for (const path of ['/-/live', '/-/ready', `/cdn/qr/${code}.png`]) {
    const { status, headers } = await app.call('GET', path)
    expect({ path, status, limit: headers.get('x-ratelimit-limit') }).toEqual({
      path,
      status: 200,
      limit: null,
    })
  }
})
