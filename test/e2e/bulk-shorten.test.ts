import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/database.ts'
import { messageOf } from '../support/refusals.ts'

/** The spec's chapter "POST /api/bulk-shorten". */

const BAD_START = messageOf('invalid_url')
const BLOCKED = messageOf('url_blocked')
/** Our own host: a short link to a short link would be a loop. */
const BLOCKED_URL = 'http://hop.test/ABCDEF'

const bulk = (app: TestApp, urls: unknown, key = 'enterprise') =>
  app.call('POST', '/api/bulk-shorten', { key, json: { urls } })

const urlsOf = (length: number, path = '') =>
  Array.from({ length }, (_, i) => `https://example.com/${path}${i}`)

async function totalOf(app: TestApp, key = 'enterprise'): Promise<unknown> {
  return (await app.call('GET', '/api/list', { key })).body.total
}

interface Item {
  ok: boolean
  reused: boolean
  code: string
  url: string
  passcode: string | null
}
const itemsOf = ({ body }: { body: Record<string, unknown> }) => body.results as Item[]

/** A successful item; `over` says what is particular about it. */
const created = (url: string, over: Record<string, unknown> = {}) => ({
  ok: true,
  reused: false,
  code: expect.stringMatching(/^[ABCDEFGHJKLMNPQRSTUVWXYZ23456789]{8}$/),
  url,
  passcode: expect.stringMatching(/^[A-Z0-9]{24}$/),
  short_url: expect.stringMatching(/^http:\/\/hop\.test\/[A-Z0-9]{8}$/),
  qr_url: expect.stringMatching(/^http:\/\/hop\.test\/qr\/[A-Z0-9]{8}$/),
  created_at: '2026-03-01T12:00:00.000Z',
  ...over,
})
const failed = (url: unknown, error: string) => ({ ok: false, url, error })

// spec: Endpoints | POST /api/bulk-shorten
// spec: States and transitions | (none) POST /api/bulk-shorten
// spec: POST /api/bulk-shorten | urls
// spec: POST /api/bulk-shorten | Response 201
// design: 4.7 bulk
test('POST /api/bulk-shorten answers one result a URL, in the order of the request', async () => {
  await using app = await testApp()
  const urls = ['https://c.example/', 'HTTP://A.example', 'https://b.example/я'].concat(urlsOf(30))
  const answer = await bulk(app, urls, 'free')
  expect(answer.status).toBe(201)
  expect(answer.body).toEqual({ count: 33, results: urls.map((url) => created(url)) })
  const items = itemsOf(answer)
  for (const [i, { code, passcode, ...item }] of items.entries()) {
    expect(item).toMatchObject({
      short_url: `http://hop.test/${code}`,
      qr_url: `http://hop.test/qr/${code}`,
    })
    const { body } = await app.call('GET', `/api/lookup/${code}`)
    expect(body).toMatchObject({ code, url: urls[i], hit_count: 0 })
    expect((await app.call('GET', `/${code}`)).status).toBe(302)
    expect(passcode).not.toBeNull()
  }
  expect(new Set(items.map(({ code }) => code)).size).toBe(33)
  expect(new Set(items.map(({ passcode }) => passcode)).size).toBe(33)
  expect(await totalOf(app, 'free')).toBe(33)
})

// spec: POST /api/bulk-shorten | When only some items fail
// design: 4.7 a failed item
test('when only some items fail, the answer is 201, and they say what shorten would', async () => {
  await using app = await testApp()
  const earlier = await app.shorten('https://example.com/earlier', 'enterprise')
  const long = `https://example.com/${'x'.repeat(8192)}`
  const alone = await app.call('POST', '/api/shorten', { key: 'enterprise', json: { url: long } })
  const answer = await bulk(app, [
    'https://example.com/1',
    'nonsense',
    '',
    BLOCKED_URL,
    'https://example.com/earlier',
    'https://example.com/1',
    'HTTPS://EXAMPLE.com:443/1',
    long,
    42,
    null,
    'http://ok.example',
  ])
  expect(answer.status).toBe(201)
  const results = itemsOf(answer)
  const reused = { reused: true, passcode: null }
  expect(answer.body).toEqual({
    count: 11,
    results: [
      created('https://example.com/1'),
      failed('nonsense', BAD_START),
      failed('', BAD_START),
      failed(BLOCKED_URL, BLOCKED),
      created('https://example.com/earlier', { code: earlier.code, ...reused }),
      created('https://example.com/1', { code: results[0]?.code, ...reused }),
      created('https://example.com/1', { code: results[0]?.code, ...reused }),
      failed(long, alone.body.error as string),
      failed(expect.anything(), BAD_START),
      failed(null, BAD_START),
      created('http://ok.example'),
    ].map((row, i) => (i === 8 ? { ...row, url: results[8]?.url } : row)),
  })
  expect(await totalOf(app)).toBe(3)
  expect(answer.text).not.toContain(earlier.passcode)
})

// design: 4.7 if all fail
const ALL_BAD = [
  { name: 'all invalid', urls: ['nonsense', 'ftp://a.example/'], status: 400, error: BAD_START },
  { name: 'all blocked', urls: [BLOCKED_URL, 'https://hop.test/'], status: 422, error: BLOCKED },
  { name: 'invalid, then blocked', urls: ['nonsense', BLOCKED_URL], status: 400, error: BAD_START },
  { name: 'blocked, then invalid', urls: [BLOCKED_URL, 'nonsense'], status: 400, error: BAD_START },
  { name: 'one invalid', urls: [''], status: 400, error: BAD_START },
  { name: 'one blocked', urls: [BLOCKED_URL], status: 422, error: BLOCKED },
  { name: 'no strings', urls: [1, null, {}, []], status: 400, error: BAD_START },
  {
    name: 'a bad host',
    urls: ['https://', 'https://a b.example'],
    status: 400,
    error: expect.stringMatching(/^Invalid URL: ./),
  },
]
// spec: Errors | 400 URL missing
// spec: Errors | 422 destination host on
test('when every item fails, so does the request: 422 if all are blocked, else 400', async () => {
  await using app = await testApp()
  for (const { name, urls, status, error } of ALL_BAD) {
    const answer = await bulk(app, urls)
    expect({ name, status: answer.status, body: answer.body }).toEqual({
      name,
      status,
      body: { error },
    })
  }
  expect(await totalOf(app)).toBe(0)
})

const PLANS = [
  { key: 'free', max: 100, env: {} },
  { key: 'pro', max: 1000, env: {} },
  { key: 'enterprise', max: 7, env: { ENTERPRISE_BULK_MAX: '7' } },
]
// spec: Limits | Bulk batch size, Free
// spec: Limits | Bulk batch size, Pro
// spec: Errors | 400 urls has 0
// design: 4.7 the plan's batch size stands in the message
test.each(PLANS)('a batch of $key holds 1 to $max URLs', async ({ key, max, env }) => {
  await using app = await testApp({ env })
  const error = `urls must contain between 1 and ${max} items`
  const bad: unknown[] = [[], urlsOf(max + 1), Array(max + 1).fill('https://example.com/')]
  bad.push(Array(max + 1).fill('nonsense'), undefined, null, 'https://example.com/', {}, 7)
  bad.push({ 0: 'https://example.com/', length: 1 })
  for (const urls of bad) {
    const { status, body } = await bulk(app, urls, key)
    expect({ status, body }).toEqual({ status: 400, body: { error } })
  }
  for (const json of [null, [], ['https://example.com/'], 'https://example.com/']) {
    const { status, body } = await app.call('POST', '/api/bulk-shorten', { key, json })
    expect({ json, status, body }).toEqual({ json, status: 400, body: { error } })
  }
  expect(await totalOf(app, key)).toBe(0)
  const full = await bulk(app, urlsOf(max), key)
  expect({ status: full.status, count: full.body.count }).toEqual({ status: 201, count: max })
  expect(itemsOf(full).every(({ ok, reused }) => ok && !reused)).toBe(true)
  expect(new Set(itemsOf(full).map(({ code }) => code)).size).toBe(max)
  const one = await bulk(app, ['https://example.com/one'], key)
  expect({ status: one.status, count: one.body.count }).toEqual({ status: 201, count: 1 })
  expect(await totalOf(app, key)).toBe(max + 1)
})

test('a batch of Enterprise holds 5000 URLs unless it is set otherwise', async () => {
  await using app = await testApp()
  const { status, body } = await bulk(app, urlsOf(5001))
  expect({ status, body }).toEqual({
    status: 400,
    body: { error: expect.stringMatching(/^urls must .* 5000 /) },
  })
  // 5000 bad items pass the count and fail one by one: no need to store so many.
  const all = await bulk(app, Array(5000).fill('nonsense'))
  expect(all.body).toEqual({ error: BAD_START })
})

// spec: Code rules | 4
test('the same URL twice in one request makes one code: the second is reused', async () => {
  await using app = await testApp()
  const answer = await bulk(app, Array(50).fill('https://example.com/same'))
  const [first, ...others] = itemsOf(answer)
  expect(first).toEqual(created('https://example.com/same') as unknown as Item)
  for (const item of others)
    expect(item).toEqual({ ...first, reused: true, passcode: null } as Item)
  expect(answer.body.count).toBe(50)
  expect(await totalOf(app)).toBe(1)
})

test('a batch sent again gives the same codes, and another account codes of its own', async () => {
  await using app = await testApp()
  const first = itemsOf(await bulk(app, urlsOf(20)))
  app.advance(1000)
  const again = await bulk(app, urlsOf(20).reverse())
  expect(itemsOf(again)).toEqual(
    first.toReversed().map((item) => ({ ...item, reused: true, passcode: null })),
  )
  expect(again.status).toBe(201)
  const other = itemsOf(await bulk(app, urlsOf(20), 'enterprise-2'))
  expect(other.some(({ reused }) => reused)).toBe(false)
  expect(new Set([...first, ...other].map(({ code }) => code)).size).toBe(40)
})

// design: 4.2 two simultaneous requests never make two codes
test('simultaneous bulks and shortens of the same URLs make one code a URL', async () => {
  await using app = await testApp()
  const urls = urlsOf(30)
  const rotated = (by: number) => [...urls.slice(by), ...urls.slice(0, by)]
  const [singles, bulks] = await Promise.all([
    Promise.all(
      urls.map((url) => app.call('POST', '/api/shorten', { key: 'enterprise', json: { url } })),
    ),
    Promise.all(Array.from({ length: 20 }, (_, i) => bulk(app, rotated(i)))),
  ])
  const items = [...singles.map(({ body }) => body as unknown as Item), ...bulks.flatMap(itemsOf)]
  expect(items).toHaveLength(30 + 20 * 30)
  for (const url of urls) {
    const same = items.filter((item) => item.url === url)
    expect(new Set(same.map(({ code }) => code)).size).toBe(1)
    const fresh = same.filter(({ reused }) => !reused)
    expect(fresh).toHaveLength(1)
    expect(same.filter(({ passcode }) => passcode !== null)).toEqual(fresh)
  }
  expect(await totalOf(app)).toBe(30)
})

// design: 4.1 generated codes
test('generated codes differ, and favour no character of their alphabet', async () => {
  await using app = await testApp()
  const codes = itemsOf(await bulk(app, urlsOf(200), 'pro')).map(({ code }) => code)
  expect(new Set(codes).size).toBe(200)
  const counts = Map.groupBy(codes.join(''), (char) => char)
  expect([...counts.keys()].sort().join('')).toBe('23456789ABCDEFGHJKLMNPQRSTUVWXYZ')
  // 50 of each are expected, with a standard deviation of 7.
  for (const [char, { length }] of counts) {
    expect({ char, even: Math.abs(length - 50) < 45 }).toEqual({ char, even: true })
  }
})

test('a bulk larger than the link cache leaves the links that are followed in memory', async () => {
  await using app = await testApp({ env: { LINK_CACHE_MAX: '10' } })
  const { code } = await app.shorten('https://example.com/followed')
  await app.call('GET', `/${code}`)
  await bulk(app, urlsOf(30))
  using _broken = breakDatabase(app.dataDir)
  const { status, headers } = await app.call('GET', `/${code}`)
  expect([status, headers.get('location')]).toEqual([302, 'https://example.com/followed'])
})
