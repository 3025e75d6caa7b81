import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { messageOf } from '../support/refusals.ts'

/** The spec's chapter "POST /api/shorten", and what it says of URLs and of generated codes. */

const BLOCKED = messageOf('url_blocked')

const shorten = (app: TestApp, url: unknown, key = 'enterprise') =>
  app.call('POST', '/api/shorten', { key, json: { url } })

async function totalOf(app: TestApp, key = 'enterprise'): Promise<unknown> {
  return (await app.call('GET', '/api/list', { key })).body.total
}

// spec: What the service does | A caller sends a destination
// spec: Endpoints | POST /api/shorten
// spec: States and transitions | (none) POST /api/shorten
// spec: POST /api/shorten | url
// spec: POST /api/shorten | Response 201
// spec: Code (short link) | code
// spec: Code (short link) | url
// spec: Code (short link) | passcode
// spec: Code (short link) | short_url
// spec: Code (short link) | qr_url
// spec: Code (short link) | created_at
// design: 4.1 generated codes
test('POST /api/shorten gives a URL a code, its addresses and its passcode, no more', async () => {
  await using app = await testApp()
  const answer = await shorten(app, 'https://example.com/landing', 'free')
  const code = answer.body.code as string
  expect(answer.status).toBe(201)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  expect(answer.body).toEqual({
    code: expect.stringMatching(/^[ABCDEFGHJKLMNPQRSTUVWXYZ23456789]{8}$/),
    url: 'https://example.com/landing',
    passcode: expect.stringMatching(/^[A-Z0-9]{24}$/),
    short_url: `http://hop.test/${code}`,
    qr_url: `http://hop.test/qr/${code}`,
    created_at: '2026-03-01T12:00:00.000Z',
    reused: false,
  })
  expect(answer.headers.get('location')).toBeNull()
  expect((await app.call('GET', `/${code}`)).headers.get('location')).toBe(
    'https://example.com/landing',
  )
})

test('fields of the answer are no fields of the request', async () => {
  await using app = await testApp()
  const own = {
    passcode: 'A'.repeat(24),
    reused: true,
    hit_count: 7,
    created_at: '1999-01-01T00:00:00.000Z',
  }
  for (const [name, value] of Object.entries(own)) {
    const json = { url: 'https://example.com/', [name]: value }
    const { status, body } = await app.call('POST', '/api/shorten', { key: 'free', json })
    expect({ name, status }).toEqual({ name, status: 400 })
    expect(body.error).toStartWith(`Unknown field: ${name}. `)
  }
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.total).toBe(0)
})

// spec: POST /api/shorten | When the same account submits a URL it already has
// spec: Code (short link) | reused
// spec: Code rules | 4
// design: 4.2 reused link
test('a URL that the account has gives the existing code, reused, without a passcode', async () => {
  await using app = await testApp()
  const { body: first } = await shorten(app, 'https://example.com/')
  app.advance(5000)
  const again = await shorten(app, 'https://example.com/')
  expect(again.status).toBe(200)
  expect(again.body).toEqual({ ...first, reused: true, passcode: null })
  expect(again.text).not.toContain(first.passcode as string)
  expect(await totalOf(app)).toBe(1)
})

const SAME = [
  ['http://example.com', 'HTTP://EXAMPLE.com:80/'],
  ['https://example.com/a/../b?q', 'https://example.com:443/./b?q'],
  ['https://пример.рф/я', 'https://xn--e1afmkfd.xn--p1ai/%D1%8F'],
  ['https://example.com/\\x', 'https://example.com//x'],
]
const DIFFERENT = [
  ['https://example.com/path', 'https://example.com/Path'],
  ['https://example.com/path', 'https://example.com/path/'],
  ['https://example.com/path', 'http://example.com/path'],
  ['https://example.com/path', 'https://www.example.com/path'],
  ['https://example.com/path', 'https://example.com/path#part'],
  ['https://example.com/path', 'https://example.com/path?'],
  ['https://example.com/?a=1&b=2', 'https://example.com/?b=2&a=1'],
  ['https://example.com/', 'https://user@example.com/'],
  ['https://example.com/%7Eme', 'https://example.com/~me'],
]
// design: 4.2 reused link
test('two URLs are the same when they parse to the same address, and only then', async () => {
  await using app = await testApp()
  for (const [i, [one, other]] of SAME.entries()) {
    const key = `enterprise-same${i}`
    const first = await shorten(app, one, key)
    const again = await shorten(app, other, key)
    expect({
      other,
      code: again.body.code,
      reused: again.body.reused,
      status: again.status,
    }).toEqual({ other, code: first.body.code, reused: true, status: 200 })
    const { body } = await app.call('GET', `/api/lookup/${first.body.code}`)
    expect({ stored: body.url, answered: again.body.url }).toEqual({ stored: one, answered: one })
  }
  for (const [i, [one, other]] of DIFFERENT.entries()) {
    const key = `enterprise-other${i}`
    const first = await shorten(app, one, key)
    const second = await shorten(app, other, key)
    expect({ other, status: second.status, reused: second.body.reused }).toEqual({
      other,
      status: 201,
      reused: false,
    })
    expect(second.body.code).not.toBe(first.body.code)
  }
})

test('another account gets a code of its own for the same URL', async () => {
  await using app = await testApp()
  const mine = await app.shorten('https://example.com/', 'free')
  const { status, body } = await shorten(app, 'https://example.com/', 'free-2')
  expect({ status, reused: body.reused }).toEqual({ status: 201, reused: false })
  expect(body.code).not.toBe(mine.code)
  expect(body.passcode).not.toBe(mine.passcode)
})

// design: 4.2 reused link
test('50 simultaneous shortens of one URL make one code: one 201, 49 reused', async () => {
  await using app = await testApp()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      shorten(app, i % 2 ? 'https://example.com/race' : 'HTTPS://EXAMPLE.COM/race', 'pro'),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201])
  expect(new Set(answers.map(({ body }) => body.code)).size).toBe(1)
  for (const { status, body } of answers) {
    expect({ reused: body.reused, told: body.passcode !== null }).toEqual({
      reused: status === 200,
      told: status === 201,
    })
  }
  expect(await totalOf(app, 'pro')).toBe(1)
})

test('a URL is free again once its code is deleted or leads elsewhere', async () => {
  await using app = await testApp()
  const first = await app.shorten('https://example.com/1')
  await app.call('POST', '/api/delete', { key: 'free', json: first })
  const second = await shorten(app, 'https://example.com/1', 'free')
  expect(second.status).toBe(201)
  expect(second.body.code).not.toBe(first.code)
  const { code, passcode } = second.body
  const json = { code, passcode, url: 'https://example.com/2' }
  expect((await app.call('POST', '/api/update', { key: 'free', json })).status).toBe(200)
  expect((await shorten(app, 'https://example.com/2', 'free')).body).toMatchObject({
    code,
    reused: true,
    passcode: null,
  })
  expect((await shorten(app, 'https://example.com/1', 'free')).status).toBe(201)
})

const WIDE = `https://example.com/${'я'.repeat(1362)}`
const GOOD: { url: string; location?: string }[] = [
  { url: 'https://example.com' },
  { url: 'HtTpS://Example.COM:443/Path/../x?q=1#top' },
  { url: 'http://user:p%40ss@example.com:8080/' },
  { url: 'http://user:pw@example.com:80/a/../b//c/.' },
  { url: 'https://example.com/back\\slash', location: 'https://example.com/back/slash' },
  { url: 'http://[2001:DB8::0:1]:8080/?', location: 'http://[2001:db8::1]:8080/?' },
  { url: 'http://127.0.0.1:9000/x' },
  { url: 'http://[2001:db8::1]/x' },
  { url: 'https://example.com/%20%00%FF?a=b%' },
  {
    url: `https://example.com/a|b?c=[d]&e={f}&g="h"<i>'j'\`k^~`,
    location: `https://example.com/a%7Cb?c=[d]&e=%7Bf%7D&g=%22h%22%3Ci%3E'j'%60k%5E~`,
  },
  { url: 'https://example.com/?next=https://other.example/' },
  {
    url: 'https://пример.рф/путь?я=1',
    location: `https://xn--e1afmkfd.xn--p1ai/${encodeURI('путь?я=1')}`,
  },
  { url: 'HTTPS://Example.COM/😀/../ü', location: 'https://example.com/%C3%BC' },
  { url: 'https://example.com/😀#é', location: 'https://example.com/%F0%9F%98%80#%C3%A9' },
  { url: 'http://user:ü@Bücher.example/', location: 'http://user:%C3%BC@xn--bcher-kva.example/' },
  { url: WIDE, location: encodeURI(WIDE) },
  { url: `https://example.com/${'x'.repeat(8192 - 20)}` },
]
// spec: Code rules | 2
// design: 4.3 a URL
test('a URL is given back as it was sent, and Location is it or its ASCII form', async () => {
  await using app = await testApp()
  for (const { url, location = url } of GOOD) {
    const { status, body } = await shorten(app, url)
    expect({ status, url: body.url }).toEqual({ status: 201, url })
    expect((await app.call('GET', `/api/lookup/${body.code}`)).body.url).toBe(url)
    expect((await app.call('GET', `/api/qr-image/${body.code}`)).body.url).toBe(url)
    const followed = await app.call('GET', `/${body.code}`)
    expect(followed.status).toBe(302)
    expect(followed.headers.get('location')).toBe(location)
  }
})

// spec: Errors | 422 destination host on
// design: 4.14 our own hosts count as blocked
test('POST /api/shorten refuses a blocked host with 422, and stores nothing', async () => {
  await using app = await testApp({ env: { CDN_URL: 'https://img.test/cdn' } })
  for (const url of ['http://hop.test/ABCDEF', 'https://HOP.test:8443/', 'https://u@img.test/x']) {
    const { status, body } = await shorten(app, url)
    expect({ url, status, body }).toEqual({ url, status: 422, body: { error: BLOCKED } })
  }
  expect(await totalOf(app)).toBe(0)
  expect((await shorten(app, 'http://hop.test.example/')).status).toBe(201)
})

/** A random source that can be set back, to give the same bytes again. */
function replayable() {
  let state = 1
  const random = (length: number) =>
    Uint8Array.from({ length }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return state >>> 24
    })
  const rewind = () => {
    state = 1
  }
  return { random, rewind }
}

// design: 4.1 generated codes
test('a generated code that is taken is drawn anew, and no code is given twice', async () => {
  const { random, rewind } = replayable()
  await using app = await testApp({ random })
  const codes = new Set<unknown>()
  for (const n of [1, 2, 3, 4, 5, 6]) {
    rewind()
    const { status, body } = await shorten(app, `https://example.com/${n}`, `enterprise-${n % 2}`)
    expect({ n, status }).toEqual({ n, status: 201 })
    codes.add(body.code)
  }
  expect(codes.size).toBe(6)
  const leads = await Promise.all([...codes].map((code) => app.call('GET', `/${code}`)))
  expect(leads.map(({ headers }) => headers.get('location'))).toEqual(
    [1, 2, 3, 4, 5, 6].map((n) => `https://example.com/${n}`),
  )
})

// design: 4.1 generated codes
test('a batch whose every first drawn code is taken succeeds all the same', async () => {
  const { random, rewind } = replayable()
  await using app = await testApp({ random })
  const codes = new Set<unknown>()
  for (const path of ['one', 'two']) {
    rewind()
    const urls = Array.from({ length: 20 }, (_, i) => `https://example.com/${path}/${i}`)
    const json = { urls }
    const { status, body } = await app.call('POST', '/api/bulk-shorten', { key: 'pro', json })
    expect({ path, status }).toEqual({ path, status: 201 })
    for (const { code } of body.results as { code: string }[]) codes.add(code)
  }
  expect(codes.size).toBe(40)
})
