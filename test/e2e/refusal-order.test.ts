import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallOptions, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { ENDPOINTS, LIST, nameOf, pathOf, WITH_KEY, WRITES } from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { outcome } from '../support/outcome.ts'

/**
 * A request that deserves several refusals gets the first of 503 maintenance, 429, 401, 400, 403 or
 * 404, 409, 422.
 */

const INVALID_KEY = { error: 'Invalid or missing API key' }
const UNTIL = Date.UTC(2026, 2, 2)
const IN_MAINTENANCE = /^Service under maintenance until 2026-03-02T00:00:00\.000Z$/

/** Bad in every way that can be told without an account. */
const WRONG_IN_ALL: CallOptions = {
  key: 'nonsense',
  raw: '{',
  headers: { 'content-type': 'text/plain' },
}

/** With `blocked.example` on the blocklist. */
async function blockingApp(folder: string): Promise<TestApp> {
  const list = join(folder, 'hosts.txt')
  writeFileSync(list, 'blocked.example\n')
  return testApp({ env: { BLOCKLIST_FILES: list } })
}

/** Until both budgets of the address that tests call from are spent. */
async function spendAll(app: TestApp): Promise<void> {
  const writes = Array.from({ length: 60 }, () => app.call('POST', '/api/shorten'))
  const reads = Array.from({ length: 300 }, () => app.call('GET', '/UNKNOWN1'))
  await Promise.all([...writes, ...reads])
}

// spec: Errors | 503 planned maintenance
// design: 4.4 order of refusals
test('503 maintenance comes before 429, 401, 405, 415 and 400', async () => {
  await using app = await testApp()
  await spendAll(app)
  app.maintenance(UNTIL)
  for (const endpoint of ENDPOINTS.filter(({ duringMaintenance }) => !duringMaintenance)) {
    for (const method of [endpoint.method, 'PUT']) {
      const at = `${nameOf(endpoint)} asked with ${method}`
      const options = method === 'GET' ? { key: 'nonsense' } : WRONG_IN_ALL
      const answer = await app.call(method, `${pathOf(endpoint)}?limit=x&size=x`, options)
      expect(outcome(at, answer)).toMatchObject({ at, status: 503 })
      expect(answer.body.error).toMatch(IN_MAINTENANCE)
    }
  }
})

// spec: Errors | 429 rate limit exceeded
// design: 4.4 order of refusals
test('429 comes before 401, 405, 415, 400 and 404, during maintenance too where that goes on', async () => {
  await using app = await testApp()
  await spendAll(app)
  const expectTooMany = async (endpoints: typeof ENDPOINTS) => {
    for (const endpoint of endpoints) {
      for (const method of [endpoint.method, 'PUT']) {
        const at = `${nameOf(endpoint)} asked with ${method}`
        const options = method === 'GET' ? { key: 'nonsense' } : WRONG_IN_ALL
        const path = `${pathOf(endpoint, 'UNKNOWN1')}?limit=x&size=x`
        const answer = await app.call(method, path, options)
        const body = { error: 'Rate limit exceeded. Retry in 60 seconds.' }
        expect(outcome(at, answer)).toEqual({ at, status: 429, body })
      }
    }
  }
  await expectTooMany(ENDPOINTS)
  app.maintenance(UNTIL)
  await expectTooMany(ENDPOINTS.filter(({ duringMaintenance }) => duringMaintenance))
})

// spec: Errors | 401 API key missing
// design: 4.4 order of refusals
test('401 comes before 415, 413, 400, 403, 409 and 422', async () => {
  using folder = temporaryFolder()
  await using app = await blockingApp(folder.path)
  const { code } = await app.reserve('SPRING26')
  const bodies: CallOptions[] = [
    WRONG_IN_ALL,
    { raw: '{', headers: { 'content-type': JSON_TYPE } },
    { json: {} },
    { json: { code, passcode: 'WRONG', url: 'http://blocked.example/', urls: [] } },
  ]
  for (const endpoint of WITH_KEY) {
    for (const options of endpoint === LIST ? [{}] : bodies) {
      const at = nameOf(endpoint)
      const answer = await app.call(endpoint.method, `${pathOf(endpoint)}?limit=x`, options)
      expect(outcome(at, answer)).toEqual({ at, status: 401, body: INVALID_KEY })
    }
  }
  expect(await app.call('GET', `/api/lookup/${code}`)).toMatchObject({
    body: { code, url: null },
  })
})

// design: 4.16 order of what is wrong with a body
test('415 comes before 413, 413 before 400 for what is not JSON, and that before the fields', async () => {
  await using app = await testApp()
  const tooLong = new Uint8Array(4 * 1024 * 1024).fill(0x7b)
  const json = { 'content-type': JSON_TYPE }
  for (const { path } of WRITES) {
    const rows: readonly (readonly [number, RegExp, CallOptions])[] = [
      [415, /^Unsupported media type/, { raw: tooLong, headers: { 'content-type': 'text/plain' } }],
      [413, /^Request body too large/, { raw: tooLong, headers: json }],
      [400, /^Invalid JSON/, { raw: '{"code":1,"url":2,', headers: json }],
    ]
    for (const [status, error, options] of rows) {
      const answer = await app.call('POST', path, { key: 'free', ...options })
      const body = { error: expect.stringMatching(error) }
      expect(outcome(path, answer)).toEqual({ at: path, status, body })
    }
  }
})

// design: 4.4 order of refusals
test('400 comes before 403, 404 and 422, and 403 before 422', async () => {
  using folder = temporaryFolder()
  await using app = await blockingApp(folder.path)
  const { code, passcode } = await app.shorten('https://example.com/kept')
  const foreign = await app.shorten('https://example.com/foreign', 'pro')
  const blocked = 'http://blocked.example/'
  const unwell = 'http://blocked.example/a space'
  const invalidUrl = /^Invalid URL: /
  const invalidPasscode = /^Invalid passcode for code /
  const wrong = 'WRONGWRONGWRONGWRONGWRON'
  const rows: readonly (readonly [string, string, unknown, number, RegExp])[] = [
    ['bad url, blocked host', '/api/shorten', { url: unwell }, 400, invalidUrl],
    [
      'bad url, wrong passcode',
      '/api/update',
      { code, passcode: wrong, url: 'x' },
      400,
      invalidUrl,
    ],
    ['bad url, unknown code', '/api/update', { code: 'x', passcode, url: unwell }, 400, invalidUrl],
    ['no url, wrong passcode', '/api/update', { code, passcode: wrong }, 400, /^Missing .*: url$/],
    ['no passcode, unknown code', '/api/delete', { code: 'x' }, 400, /^Missing .*: passcode$/],
    [
      'blocked, wrong passcode',
      '/api/update',
      { code, passcode: wrong, url: blocked },
      403,
      invalidPasscode,
    ],
    [
      'blocked, unknown',
      '/api/update',
      { code: 'UNKNOWN1', passcode, url: blocked },
      403,
      invalidPasscode,
    ],
    ['blocked, foreign', '/api/update', { ...foreign, url: blocked }, 403, invalidPasscode],
    [
      'blocked, all else right',
      '/api/update',
      { code, passcode, url: blocked },
      422,
      /not allowed/,
    ],
    ['one bad, one blocked', '/api/bulk-shorten', { urls: [blocked, 'x'] }, 400, invalidUrl],
  ]
  for (const [at, path, json, status, error] of rows) {
    const answer = await app.call('POST', path, { key: 'free', json })
    const body = { error: expect.stringMatching(error) }
    expect(outcome(at, answer)).toEqual({ at, status, body })
  }
  for (const [kept, url] of [
    [code, 'https://example.com/kept'],
    [foreign.code, 'https://example.com/foreign'],
  ]) {
    expect(await app.call('GET', `/api/lookup/${kept}`)).toMatchObject({ body: { url } })
  }
  expect(await app.call('GET', '/api/qr/UNKNOWN1?size=5')).toMatchObject({
    status: 400,
    body: { error: 'Invalid size: must be an integer between 64 and 2048' },
  })
})

// design: 4.4 order of refusals
test('400 comes before 409: a code in use is told only to who could have claimed it', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26', 'pro')
  const rows = [
    [{ raw: '{"code":"SPRING26"', headers: { 'content-type': JSON_TYPE } }, 400],
    [{ raw: '{"code":"SPRING26"}', headers: { 'content-type': 'text/plain' } }, 415],
    [{ json: { code: ['SPRING26'] } }, 400],
    [{ json: { code: 'SPRING26 ' } }, 400],
    [{ json: { code: 'SPRING26' } }, 409],
  ] as const
  for (const [options, status] of rows) {
    const answer = await app.call('POST', '/api/reserve', { key: 'free', ...options })
    expect(outcome(JSON.stringify(options), answer)).toMatchObject({ status })
  }
})
