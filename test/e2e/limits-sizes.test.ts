import { expect, test } from 'bun:test'
import { type CallOptions, testApp } from '../support/app.ts'
import { inspectPng } from '../support/decode-qr.ts'

/** The spec's chapter "Limits": lengths and sizes, each at its edges. */

// spec: Limits | Code length
test('a code has 6 to 20 characters', async () => {
  await using app = await testApp()
  const claim = async (length: number) => {
    const json = { code: 'A'.repeat(length) }
    return (await app.call('POST', '/api/reserve', { key: 'free', json })).status
  }
  expect(await Promise.all([5, 6, 7, 19, 20, 21].map(claim))).toEqual([
    400, 201, 201, 201, 201, 400,
  ])
  const { code } = await app.shorten('https://example.com/')
  expect(code).toMatch(/^[A-Z0-9]{6,20}$/)
  for (const [length, status] of [
    [5, 404],
    [6, 200],
    [20, 200],
    [21, 404],
  ] as const) {
    const lookup = await app.call('GET', `/api/lookup/${'a'.repeat(length)}`)
    expect({ length, status: lookup.status }).toEqual({ length, status })
  }
})

// spec: Limits | Passcode length
test('a passcode has 24 uppercase letters and digits, and nothing shorter or longer opens', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const reserved = await app.reserve('SPRING26')
  const json = { urls: ['https://example.com/bulk'] }
  const bulk = await app.call('POST', '/api/bulk-shorten', { key: 'free', json })
  const [{ passcode: inBulk }] = bulk.body.results as [{ passcode: string }]
  for (const one of [passcode, reserved.passcode, inBulk]) expect(one).toMatch(/^[A-Z0-9]{24}$/)
  expect(new Set([passcode, reserved.passcode, inBulk]).size).toBe(3)
  for (const tried of [passcode.slice(0, -1), `${passcode}A`, ` ${passcode}`, `${passcode}\0`]) {
    const attempt = { key: 'free', json: { code, passcode: tried } }
    expect(await app.call('POST', '/api/delete', attempt)).toMatchObject({ status: 403 })
  }
  const right = { key: 'free', json: { code, passcode } }
  expect(await app.call('POST', '/api/delete', right)).toMatchObject({ status: 200 })
})

// spec: Limits | QR size
// design: 4.10 QR parameters out of range
test('a QR image has 64 to 2048 pixels, and 512 by default', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  for (const [query, size] of [
    ['', 512],
    ['?size=64', 64],
    ['?size=65', 65],
    ['?size=2047', 2047],
    ['?size=2048', 2048],
  ] as const) {
    const { bytes } = await app.call('GET', `/api/qr/${code}${query}`)
    expect({ query, ...inspectPng(bytes) }).toMatchObject({ query, width: size, height: size })
  }
  for (const size of ['63', '2049', '0', '-64', '64.5', '1e2', '0x40', '', 'large', ' 64', '064']) {
    const answer = await app.call('GET', `/api/qr/${code}?size=${encodeURIComponent(size)}`)
    expect({ size, status: answer.status, body: answer.body }).toEqual({
      size,
      status: 400,
      body: { error: 'Invalid size: must be an integer between 64 and 2048' },
    })
  }
})

// spec: Limits | List limit
// design: 4.11 a bad limit or offset
test('a list has 1 to 200 items, and 50 by default', async () => {
  await using app = await testApp({ env: { ENTERPRISE_BULK_MAX: '201' } })
  const urls = Array.from({ length: 201 }, (_, i) => `https://example.com/${i}`)
  const key: CallOptions = { key: 'enterprise' }
  await app.call('POST', '/api/bulk-shorten', { ...key, json: { urls } })
  for (const [query, limit] of [
    ['', 50],
    ['?limit=1', 1],
    ['?limit=200', 200],
  ] as const) {
    const { body } = await app.call('GET', `/api/list${query}`, key)
    expect({ query, ...body }).toMatchObject({ query, total: 201, limit, count: limit, offset: 0 })
    expect(body.items).toHaveLength(limit)
  }
  for (const limit of ['0', '201', '-1', '1.5', '1e1', '0x10', '', 'all', ' 5', '99999999999']) {
    const answer = await app.call('GET', `/api/list?limit=${encodeURIComponent(limit)}`, key)
    expect({ limit, status: answer.status, body: answer.body }).toEqual({
      limit,
      status: 400,
      body: { error: 'Invalid limit: must be an integer between 1 and 200' },
    })
  }
})

// spec: Limits | Bulk batch size, Free
// spec: Limits | Bulk batch size, Pro
// spec: Account | Has a plan
// design: 2 ENTERPRISE_BULK_MAX
test('a batch has up to 100 URLs on Free, 1,000 on Pro, and what is set on Enterprise', async () => {
  await using app = await testApp({ env: { ENTERPRISE_BULK_MAX: '1500' } })
  for (const [key, most] of Object.entries({ free: 100, pro: 1000, enterprise: 1500 })) {
    const batch = (count: number) => ({ key, json: { urls: Array(count).fill('https://a.test/') } })
    const { status, body } = await app.call('POST', '/api/bulk-shorten', batch(most))
    expect({ key, status, count: body.count }).toEqual({ key, status: 201, count: most })
    const refused = await app.call('POST', '/api/bulk-shorten', batch(most + 1))
    const error = `urls must contain between 1 and ${most} items`
    expect({ key, status: refused.status, body: refused.body }).toEqual({
      key,
      status: 400,
      body: { error },
    })
  }
})
