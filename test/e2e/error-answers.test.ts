import { expect, test } from 'bun:test'
import { type Answer, type CallOptions, START, testApp } from '../support/app.ts'
import { breakDatabase } from '../support/broken-database.ts'
import { ENDPOINTS, nameOf, pathOf, WRITES } from '../support/endpoints.ts'
import { outcome } from '../support/outcome.ts'

/** The spec's chapter "Errors": failures and waits, and what every error answer has in common. */

/** Without any text that only the service itself should see. */
function expectFailure(at: string, answer: Answer, status: number, error: string) {
  expect(outcome(at, answer)).toEqual({
    at,
    status,
    body: { error, request_id: answer.headers.get('x-request-id') },
  })
  expect(answer.body.request_id).toMatch(/./)
  expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/)
}

// spec: Errors | 500 internal failure
// spec: Errors | All error responses are JSON
test('500: an internal failure carries request_id, the header X-Request-Id, and no cause', async () => {
  // One link in memory: of any other that is held, the database has to tell.
  await using app = await testApp({ env: { LINK_CACHE_MAX: '1' } })
  await app.claim('UNCACHED')
  const { code, passcode } = await app.shorten('https://example.com/')
  await app.call('GET', `/${code}`)
  using _broken = breakDatabase(app.dataDir)
  const limits: object[] = []
  const wanted: object[] = []
  const fields = { code, passcode, url: 'https://example.com/new', urls: ['https://a.example/'] }
  for (const endpoint of ENDPOINTS.filter(({ path }) => path !== '/api/status')) {
    const json = endpoint.path === '/api/reserve' ? { code: 'SPRING26' } : fields
    const options: CallOptions = endpoint.method === 'POST' ? { json } : {}
    // Another code than the one that the cache still knows.
    const path = pathOf(endpoint, 'UNCACHED')
    const at = nameOf(endpoint)
    const answer = await app.call(endpoint.method, path, { ...options, key: 'free' })
    expectFailure(at, answer, 500, 'Internal server error')
    limits.push({ at, limit: answer.headers.get('x-ratelimit-limit') })
    wanted.push({ at, limit: endpoint.budget === 'write' ? '60' : '300' })
    expect(answer.headers.get('retry-after')).toBeNull()
    // The log tells what the answer does not.
    const line = app.log.find((text) => text.includes(String(answer.body.request_id)))
    expect(line).toContain('links')
  }
  expect(limits).toEqual(wanted)
  expect(app.log.join('\n')).not.toContain(passcode)
})

// spec: Errors | 503 planned maintenance
// design: 4.13 maintenance
test('503: during maintenance the API says until when, and redirects and images go on', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  app.maintenance(START + 1_800_500)
  app.advance(500)
  for (const endpoint of ENDPOINTS) {
    const at = nameOf(endpoint)
    const options: CallOptions = endpoint.method === 'POST' ? { json: {} } : {}
    const answer = await app.call(endpoint.method, pathOf(endpoint, code), options)
    if (endpoint.duringMaintenance) {
      expect({ at, status: answer.status }).toEqual({ at, status: 302 })
    } else {
      const error = 'Service under maintenance until 2026-03-01T12:30:00.500Z'
      expectFailure(at, answer, 503, error)
      expect(answer.headers.get('retry-after')).toBe('1800')
    }
  }
  app.advance(1_799_999)
  const last = await app.call('GET', '/api/status')
  expect([last.status, last.headers.get('retry-after')]).toEqual([503, '1'])
  app.advance(1)
  expect(await app.call('GET', '/api/status')).toMatchObject({ status: 200 })
})

// spec: Errors | 429 rate limit exceeded
test('429: every endpoint says how long to wait, in words and in Retry-After', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  app.advance(60_000)
  await Promise.all([
    ...Array.from({ length: 60 }, () => app.call('POST', '/api/delete', { key: 'free', json: {} })),
    ...Array.from({ length: 300 }, () => app.call('GET', `/${code}`, { key: 'free' })),
  ])
  app.advance(17_250)
  for (const endpoint of ENDPOINTS) {
    const at = nameOf(endpoint)
    const options: CallOptions = endpoint.method === 'POST' ? { json: {} } : {}
    const path = pathOf(endpoint, code)
    const answer = await app.call(endpoint.method, path, { ...options, key: 'free' })
    const body = { error: 'Rate limit exceeded. Retry in 43 seconds.' }
    expect(outcome(at, answer)).toEqual({ at, status: 429, body })
    expect(answer.headers.get('retry-after')).toBe('43')
    expect(answer.headers.get('location')).toBeNull()
  }
})

// spec: Limits | `Retry-After` (seconds) appears on 429 and 503 only
test('Retry-After is on no other answer, and X-Request-Id on every one, unique', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  const ids: (string | null)[] = []
  for (const endpoint of ENDPOINTS) {
    for (const key of ['free', 'nonsense']) {
      for (const method of [endpoint.method, 'PUT', 'HEAD']) {
        for (const asked of [code, 'UNKNOWN1']) {
          const answer = await app.call(method, pathOf(endpoint, asked), { key, from: '192.0.2.9' })
          ids.push(answer.headers.get('x-request-id'))
          expect(answer.headers.get('retry-after')).toBeNull()
        }
      }
    }
    app.advance(60_000)
  }
  for (const path of ['/nothing/here', '/api', '/api/nothing']) {
    ids.push((await app.call('GET', path)).headers.get('x-request-id'))
  }
  for (const id of ids) expect(id).toMatch(/^[\w-]+$/)
  expect(new Set(ids).size).toBe(ids.length)
})

test('no refusal says back the passcode or the body, nor does the log', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const canary = 'CANARY7F3'
  const bodies = [
    { code, passcode, url: `ftp://${canary}` },
    { code, passcode, url: 5, more: canary },
    { code, passcode: [passcode], url: canary },
    { code: [code, canary], passcode },
    { code: 'no code', passcode, url: `gopher://example.com/${canary}` },
    [passcode, canary],
  ]
  const type = { 'content-type': 'application/json' }
  for (const { path } of WRITES) {
    const answers = [
      ...bodies.map((json) => app.call('POST', path, { key: 'pro', json })),
      app.call('POST', path, {
        key: 'pro',
        raw: `{"passcode":"${passcode}",${canary}`,
        headers: type,
      }),
      app.call('POST', path, { key: 'pro', raw: `${passcode}&${canary}` }),
    ]
    for (const { status, text, headers } of await Promise.all(answers)) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(text + JSON.stringify([...headers])).not.toContain(passcode)
      expect(text).not.toContain(canary)
    }
  }
  expect(app.log.join('\n')).not.toContain(passcode)
  expect(app.log.join('\n')).not.toContain(canary)
})
