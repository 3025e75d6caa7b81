import { expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { type CallOptions, testApp } from '../support/app.ts'
import {
  BEYOND_THE_SPEC,
  nameOf,
  outcome,
  PUBLIC,
  pathOf,
  WITH_KEY,
  WRITES,
} from '../support/endpoints.ts'

/** The spec's chapter "Authentication". */

const HOUR = 3_600_000
const DAY = 24 * HOUR

const REFUSED = { status: 401, body: { error: 'Invalid or missing API key' } }

/** The form of a key once more, so that a key well formed and unknown can be made here. */
function forgeKey(random: string): string {
  const body = `hop_${random}`
  return body + base62(crc32(body)).padStart(6, '0')
}

function base62(value: number): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const rest = Math.floor(value / 62)
  return (rest > 0 ? base62(rest) : '') + digits[value % 62]
}

// spec: Authentication | 7
// spec: API key | Sent in the `X-API-Key` header
// design: 4.15 API key format
test('an API key is hop_, 30 base62 characters and their CRC-32', async () => {
  await using app = await testApp()
  const key = app.key('free')
  expect(key).toMatch(/^hop_[0-9A-Za-z]{36}$/)
  expect(key).toBe(forgeKey(key.slice(4, 34)))
  for (const name of ['X-API-Key', 'x-api-key', 'X-API-KEY']) {
    const answer = await app.call('GET', '/api/list', { headers: { [name]: key } })
    expect(answer.status).toBe(200)
  }
  expect(app.key('free-2')).not.toBe(key)
})

// spec: Authentication | 2
test('lookup, QR images, redirects and status need no key', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  for (const endpoint of PUBLIC) {
    const { status } = await app.call(endpoint.method, pathOf(endpoint, code))
    const at = nameOf(endpoint)
    expect({ at, isServed: status === 200 || status === 302 }).toEqual({ at, isServed: true })
  }
})

// spec: Authentication | 3
// spec: Errors | 401 API key missing
test('a missing, empty or unmatched key is 401 wherever one is required, and does nothing', async () => {
  await using app = await testApp()
  const key = app.key('free')
  const ended = app.rotateKey('pro', { now: true })
  const unknown = forgeKey('0'.repeat(30))
  const header = (value: string): CallOptions => ({ headers: { 'x-api-key': value } })
  const bearer = (authorization: string): CallOptions => ({ headers: { authorization } })
  const forms: Record<string, CallOptions> = {
    missing: {},
    empty: header(''),
    'only spaces': header('   '),
    'not a key at all': header('secret'),
    'the prefix alone': header('hop_'),
    'without its prefix': header(key.slice(4)),
    'another prefix': header(key.replace('hop_', 'hip_')),
    'one character short': header(key.slice(0, -1)),
    'one character long': header(`${key}A`),
    'a wrong checksum': header(key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A')),
    'a wrong letter before the checksum': header(
      key.slice(0, 10) + (key[10] === 'A' ? 'B' : 'A') + key.slice(11),
    ),
    'in upper case': header(key.toUpperCase()),
    'well formed and unknown': header(unknown),
    ended: header(ended),
    'twice in one header': header(`${key}, ${key}`),
    'quoted like SQL': header(`${key}' OR '1'='1`),
    'ten thousand characters': header(key.repeat(250)),
    'unknown, as a bearer token': bearer(`Bearer ${unknown}`),
    'ended, as a bearer token': bearer(`Bearer ${ended}`),
    'twice as a bearer token': bearer(`Bearer ${key}, Bearer ${key}`),
    'with another word behind it': bearer(`Bearer ${key} ${key}`),
    'after no scheme': bearer(key),
    'after another scheme': bearer(`Basic ${key}`),
    'as a password': bearer(`Basic ${btoa(`:${key}`)}`),
    'unknown, beside a good bearer token': {
      headers: { 'x-api-key': unknown, authorization: `Bearer ${key}` },
    },
    'empty, beside a good bearer token': {
      headers: { 'x-api-key': '', authorization: `Bearer ${key}` },
    },
  }
  for (const [form, options] of Object.entries(forms)) {
    for (const [index, endpoint] of [...WITH_KEY, ...BEYOND_THE_SPEC].entries()) {
      const json = { url: 'https://example.com/', code: `CLAIMED${index}`, urls: ['http://a.test'] }
      const answer = await app.call(endpoint.method, pathOf(endpoint), {
        ...(endpoint.method !== 'GET' && { json }),
        ...options,
        headers: {
          ...(endpoint.method !== 'GET' && { 'content-type': 'application/json' }),
          ...options.headers,
        },
      })
      const at = `${nameOf(endpoint)} with a key ${form}`
      expect(outcome(at, answer)).toEqual({ at, ...REFUSED })
    }
    app.advance(60_000)
  }
  for (const name of ['free', 'pro']) {
    expect(await app.call('GET', '/api/list', { key: name })).toMatchObject({ body: { total: 0 } })
  }
  expect(await app.call('GET', '/api/lookup/CLAIMED1')).toMatchObject({ status: 404 })
  expect(app.log.join('\n')).not.toContain(key.slice(10))
})

test('a bearer token is a key wherever X-API-Key is one, and charged as that', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/', 'pro')
  const key = app.key('pro')
  const left = (headers: Headers) => Number(headers.get('x-ratelimit-remaining'))
  for (const endpoint of [...WITH_KEY, ...BEYOND_THE_SPEC, ...PUBLIC]) {
    const at = nameOf(endpoint)
    const ask = (headers: Record<string, string>) =>
      app.call(endpoint.method, pathOf(endpoint, code), {
        // The field is unknown everywhere: nothing is written.
        ...(endpoint.method !== 'GET' && { json: { nothing: 1 } }),
        headers,
      })
    const first = await ask({ 'x-api-key': key })
    expect([at, first.status]).not.toEqual([at, 401])
    for (const [i, authorization] of [`Bearer ${key}`, `bearer  ${key}`].entries()) {
      const { status, headers } = await ask({ authorization })
      const limit = first.headers.get('x-ratelimit-limit')
      expect([at, status, headers.get('x-ratelimit-limit')]).toEqual([at, first.status, limit])
      expect([at, left(headers)]).toEqual([at, left(first.headers) - 1 - i])
    }
    app.advance(60_000)
  }
})

test('a key in the query or in the body opens nothing', async () => {
  await using app = await testApp()
  const key = app.key('free')
  expect(await app.call('GET', `/api/list?api_key=${key}&X-API-Key=${key}`)).toMatchObject(REFUSED)
  const json = { url: 'https://example.com/', api_key: key, 'X-API-Key': key }
  expect(await app.call('POST', '/api/shorten', { json })).toMatchObject(REFUSED)
})

// spec: Authentication | 4
test('a rotated key works for 24 hours and not a millisecond longer', async () => {
  await using app = await testApp()
  const old = app.rotateKey('free')
  const { status } = await app.call('GET', '/api/list', { key: 'free' })
  expect(status).toBe(200)
  app.advance(DAY - 1)
  expect(await app.call('GET', '/api/list', { key: old })).toMatchObject({ status: 200 })
  const json = { code: 'WITHOLD' }
  expect(await app.call('POST', '/api/reserve', { key: old, json })).toMatchObject({ status: 201 })
  app.advance(1)
  expect(await app.call('GET', '/api/list', { key: old })).toMatchObject(REFUSED)
  // What the old key made belongs to the account.
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({
    body: { total: 1, items: [{ code: 'WITHOLD' }] },
  })
})

// spec: Authentication | 4
test('a key rotated twice gives each former key 24 hours of its own', async () => {
  await using app = await testApp()
  const first = app.rotateKey('free')
  app.advance(10 * HOUR)
  const second = app.rotateKey('free')
  const statuses = async () => {
    const keys = [first, second, 'free']
    return Promise.all(
      keys.map(async (key) => (await app.call('GET', '/api/list', { key })).status),
    )
  }
  expect(await statuses()).toEqual([200, 200, 200])
  app.advance(14 * HOUR - 1)
  expect(await statuses()).toEqual([200, 200, 200])
  app.advance(1)
  expect(await statuses()).toEqual([401, 200, 200])
  app.advance(10 * HOUR - 1)
  expect(await statuses()).toEqual([401, 200, 200])
  app.advance(1)
  expect(await statuses()).toEqual([401, 401, 200])
  app.advance(1000 * DAY)
  expect(await statuses()).toEqual([401, 401, 200])
})

// spec: Authentication | 4
test('a revoked key works for 24 hours, and revoking it again gives it no more', async () => {
  await using app = await testApp()
  app.revokeKey('free')
  app.advance(12 * HOUR)
  app.revokeKey('free')
  app.advance(12 * HOUR - 1)
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({ status: 200 })
  app.advance(1)
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject(REFUSED)
})

// design: 2 key rotate and revoke --now
test('--now ends at once every key but the new one', async () => {
  await using app = await testApp()
  const first = app.rotateKey('free')
  const second = app.rotateKey('free', { now: true })
  for (const key of [first, second]) {
    expect(await app.call('GET', '/api/list', { key })).toMatchObject({ status: 401 })
  }
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({ status: 200 })
  app.revokeKey('free', { now: true })
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({ status: 401 })
})

test('keys of one account end without touching those of another', async () => {
  await using app = await testApp()
  app.key('free-2')
  app.revokeKey('free', { now: true })
  expect(await app.call('GET', '/api/list', { key: 'free-2' })).toMatchObject({ status: 200 })
})

// design: 4.5 all keys of an account share its budgets
test('the old and the new key of a rotated account share its budgets', async () => {
  await using app = await testApp()
  const old = app.rotateKey('free')
  for (const [remaining, key] of [
    [299, old],
    [298, 'free'],
    [297, old],
  ] as const) {
    const { headers } = await app.call('GET', '/api/list', { key })
    expect(headers.get('x-ratelimit-remaining')).toBe(String(remaining))
  }
  for (let i = 0; i < 60; i++) {
    const json = { code: 'bad' }
    const key = i % 2 === 0 ? old : 'free'
    expect(await app.call('POST', '/api/reserve', { key, json })).toMatchObject({ status: 400 })
  }
  for (const key of [old, 'free']) {
    const json = { code: 'SPRING26' }
    expect(await app.call('POST', '/api/reserve', { key, json })).toMatchObject({ status: 429 })
  }
})

// spec: Authentication | 6
// spec: Code rules | 3
test('no endpoint gives the passcode again or makes another', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const texts: string[] = []
  for (const endpoint of PUBLIC) {
    const { text, headers } = await app.call('GET', pathOf(endpoint, code), { key: 'free' })
    texts.push(text, JSON.stringify([...headers]))
  }
  texts.push((await app.call('GET', '/api/list', { key: 'free' })).text)
  const again = { key: 'free', json: { url: 'https://example.com/' } }
  const reused = await app.call('POST', '/api/shorten', again)
  expect(reused.body).toMatchObject({ code, passcode: null, reused: true })
  const json = { code, passcode }
  const change = { key: 'free', json: { ...json, url: 'https://example.com/new' } }
  texts.push((await app.call('POST', '/api/update', change)).text)
  texts.push((await app.call('POST', '/api/delete', { key: 'free', json })).text)
  for (const text of texts) expect(text).not.toContain(passcode)
  expect(app.log.join('\n')).not.toContain(passcode)
  const { body } = await app.call('GET', '/docs/json')
  expect(
    Object.keys(body.paths as object).filter((path) => /passcode|keys?.*rotate/i.test(path)),
  ).toEqual([])
})

// design: 4.5 keys on public endpoints
test('a public endpoint ignores an invalid key and charges a valid one to its account', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/', 'pro')
  const ended = app.rotateKey('free', { now: true })
  let remaining = 3000
  for (const [index, endpoint] of PUBLIC.entries()) {
    const from = `192.0.2.${100 + index}`
    // A redirect that finds its link has a budget of its own where there is no account.
    const budget = endpoint.path === '/{code}' ? 6000 : 300
    const limit = String(budget)
    const ask = async (options: CallOptions) => {
      const answer = await app.call('GET', pathOf(endpoint, code), { ...options, from })
      const [limit, rest] = ['limit', 'remaining'].map((name) =>
        answer.headers.get(`x-ratelimit-${name}`),
      )
      return { isServed: answer.status === 200 || answer.status === 302, limit, rest }
    }
    for (const [i, key] of ['', 'nonsense', forgeKey('1'.repeat(30)), ended].entries()) {
      const paid = { isServed: true, limit, rest: String(budget - 1 - i) }
      expect(await ask({ headers: { 'x-api-key': key } })).toEqual(paid)
    }
    remaining--
    const charged = { isServed: true, limit: '3000', rest: String(remaining) }
    expect(await ask({ key: 'pro' })).toEqual(charged)
    // The address has paid for its own four requests and this one, not for the account's.
    expect(await ask({})).toEqual({ isServed: true, limit, rest: String(budget - 5) })
  }
})

// design: 4.5 keys on public endpoints
test('writes refused with 401 are charged to the address, 60 in any minute', async () => {
  await using app = await testApp()
  for (const [index, endpoint] of WRITES.entries()) {
    const answer = await app.call('POST', pathOf(endpoint), { key: 'nonsense', json: {} })
    expect(answer.headers.get('x-ratelimit-limit')).toBe('60')
    expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(59 - index))
  }
})
