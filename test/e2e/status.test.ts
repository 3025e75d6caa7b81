import { expect, test } from 'bun:test'
import { basename } from 'node:path'
import { version } from '../../package.json' with { type: 'json' }
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { openBeside } from '../support/database.ts'
import { messageOf } from '../support/refusals.ts'

/** The spec's chapter "GET /api/status". */

/** Runs statements beside the service, as another program with the same database file would. */
function meddle(app: TestApp, sql: string): void {
  const db = openBeside(app.dataDir)
  db.run(sql)
  db.close()
}

// spec: Endpoints | GET /api/status
// spec: GET /api/status | Response 200
// spec: Versioning | version
test('GET /api/status tells anyone the state, the redirects ever served, the time and the version', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  for (let i = 0; i < 3; i++) await app.call('GET', '/SPRING26')
  app.advance(1234)
  const { status, body, headers } = await app.call('GET', '/api/status')
  expect(status).toBe(200)
  expect(body).toEqual({
    status: 'operational',
    database: 'ok',
    total_redirects: 3,
    response_time_ms: expect.any(Number),
    timestamp: '2026-03-01T12:00:01.234Z',
    version,
  })
  expect(version).toMatch(/^\d+\.\d+\.\d+/)
  expect(body.response_time_ms).toBeWithin(0, 60_000)
  expect(Number.isInteger(body.response_time_ms)).toBe(true)
  expect(headers.get('content-type')).toStartWith('application/json')
  expect(headers.get('retry-after')).toBeNull()
})

test('status beyond the read budget is 429 and tells nothing of the service', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  expect((await app.call('GET', '/api/status')).status).toBe(200)
  const { status, body, headers } = await app.call('GET', '/api/status')
  expect([status, headers.get('retry-after')]).toEqual([429, '60'])
  expect(body).toEqual({ error: messageOf('rate_limited', '60') })
})

// design: 4.6 HEAD
test('HEAD on status gives its headers without a body', async () => {
  await using app = await testApp()
  const { status, bytes, headers } = await app.call('HEAD', '/api/status')
  expect([status, bytes.length]).toEqual([200, 0])
  expect(headers.get('x-ratelimit-remaining')).toBe('299')
})

// design: 4.12 unhealthy status
test('a database that refuses writes makes status 503 degraded; redirects go on, and no hit is lost', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '10' } })
  await app.claim('SPRING26')
  meddle(
    app,
    `CREATE TRIGGER refuse BEFORE UPDATE ON hit_totals
     BEGIN SELECT RAISE(ABORT, 'secret words of the disk'); END`,
  )
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  await eventually('status says degraded', async () => {
    return (await app.call('GET', '/api/status', { key: 'pro' })).status === 503
  })
  const { body, headers } = await app.call('GET', '/api/status', { key: 'pro' })
  expect(body).toEqual({
    error: expect.stringMatching(/./),
    request_id: expect.stringMatching(/./),
    status: 'degraded',
    database: 'error',
  })
  expect(JSON.stringify(body)).not.toContain('secret words')
  expect(headers.get('x-ratelimit-limit')).toBe('3000')
  expect((await app.call('GET', '/-/ready')).status).toBe(503)
  expect((await app.call('GET', '/-/live')).status).toBe(200)
  for (let i = 0; i < 4; i++) expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(5)

  meddle(app, 'DROP TRIGGER refuse')
  await eventually('status says operational', async () => {
    return (await app.call('GET', '/api/status', { key: 'pro' })).status === 200
  })
  expect((await app.call('GET', '/api/status')).body).toMatchObject({
    status: 'operational',
    database: 'ok',
    total_redirects: 5,
  })
  expect((await app.call('GET', '/-/ready')).status).toBe(200)
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(5)
})

// design: 4.12 unhealthy status
// spec: Errors | 500 internal failure
test('a database that does not answer makes status 503 and look-ups 500, and says no more than that', async () => {
  await using app = await testApp({ env: { HIT_FLUSH_MS: '60000' } })
  await app.claim('SPRING26')
  await app.call('GET', '/SPRING26')
  meddle(app, 'ALTER TABLE hit_totals RENAME TO elsewhere')
  const { status, body } = await app.call('GET', '/api/status')
  expect(status).toBe(503)
  expect(body).toMatchObject({ status: 'degraded', database: 'error' })
  expect(body).not.toHaveProperty('total_redirects')
  expect(body.error).not.toMatch(/hit_totals|table|SQL/i)
  expect((await app.call('GET', '/-/ready')).status).toBe(503)
  const failed = await app.call('GET', '/api/lookup/SPRING26')
  expect(failed.status).toBe(500)
  expect(failed.body).toEqual({
    error: 'Internal server error',
    request_id: expect.stringMatching(/./),
  })
  expect(failed.headers.get('retry-after')).toBeNull()
  expect(failed.headers.get('x-ratelimit-limit')).toBe('300')
  const logged = app.log.filter((line) => line.includes(String(failed.body.request_id)))
  expect(logged).toHaveLength(1)
  expect(logged[0]).toContain('"level":"error"')
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)

  meddle(app, 'ALTER TABLE elsewhere RENAME TO hit_totals')
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(2)
  expect((await app.call('GET', '/api/status')).body.total_redirects).toBe(2)
})

// design: 4.12 unhealthy status
test.each([
  ['the accounts cannot be read', 'accounts', 'pro'],
  ['the settings cannot be read', 'settings', undefined],
  ['the settings cannot be read, with a key', 'settings', 'pro'],
] as const)(
  'status is 503 degraded while %s, charged to the address, and no failure is logged',
  async (_, table, key) => {
    await using app = await testApp({ env: { HIT_FLUSH_MS: '60000' } })
    if (key) app.key(key)
    meddle(app, `ALTER TABLE ${table} RENAME TO elsewhere`)
    const options = key ? { key } : {}
    const { status, body, headers } = await app.call('GET', '/api/status', options)
    expect(status).toBe(503)
    expect(body).toMatchObject({ status: 'degraded', database: 'error' })
    expect(body.request_id).toBe(headers.get('x-request-id') as string)
    expect(headers.get('retry-after')).toBe('1')
    const isAccountKnown = key && table === 'settings'
    expect(headers.get('x-ratelimit-limit')).toBe(isAccountKnown ? '3000' : '300')
    expect(app.log.filter((line) => line.includes('request.failed'))).toEqual([])
    meddle(app, `ALTER TABLE elsewhere RENAME TO ${table}`)
    expect((await app.call('GET', '/api/status', options)).status).toBe(200)
  },
)

test('status beyond the read budget is 429 even while the database cannot be read', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  meddle(app, 'ALTER TABLE settings RENAME TO elsewhere')
  expect((await app.call('GET', '/api/status')).status).toBe(503)
  expect((await app.call('GET', '/api/status')).status).toBe(429)
  meddle(app, 'ALTER TABLE elsewhere RENAME TO settings')
})

/** The service, and a way to end one of its threads as a fault of the runtime would. */
async function mortalApp() {
  const workers = new Map<string, Worker>()
  const app = await testApp({
    openWorker(url) {
      const worker = new Worker(url)
      workers.set(basename(url.pathname, '.ts'), worker)
      return worker
    },
  })
  return { app, end: (thread: string) => workers.get(thread)?.terminate() }
}

test('a writer thread that ends makes the probes and status 503, is logged once, and redirects go on', async () => {
  const { app, end } = await mortalApp()
  await using _ = app
  await app.claim('SPRING26')
  end('writer')
  await eventually('the probe says so', async () => {
    return (await app.call('GET', '/-/live')).status === 503
  })
  for (const path of ['/-/live', '/-/ready', '/api/status']) {
    const { status, body } = await app.call('GET', path)
    expect([path, status]).toEqual([path, 503])
    expect(body).toMatchObject({ status: 'degraded', database: 'error' })
    expect(body.error).toContain('writer thread has ended')
  }
  const text = await (await fetch(`${app.url}/-/metrics`)).text()
  expect(text).toContain('hopcode_ready 0')
  expect(text).toContain('hopcode_thread_running{thread="writer"} 0')
  expect(text).toContain('hopcode_thread_running{thread="reader"} 1')
  expect((await app.call('GET', '/SPRING26')).status).toBe(302)
  expect(eventsOf(app, 'thread.')).toMatchObject([{ event: 'thread.ended', thread: 'writer' }])

  // Without a writer the hit cannot be counted any more: it waits for the next start.
  await app.stop().catch(() => {})
  await using next = await testApp({ dataDir: app.dataDir })
  expect((await next.call('GET', '/-/ready')).status).toBe(200)
  expect((await next.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(1)
})

test.each(['reader', 'qr'])(
  'a %s thread that ends is started again, and the log says both',
  async (name) => {
    const { app, end } = await mortalApp()
    await using _ = app
    const { code } = await app.shorten('https://example.com/landing')
    // Both threads start with their first use.
    await app.call('GET', '/api/list', { key: 'free' })
    await app.call('GET', `/api/qr/${code}?format=svg`)
    end(name)
    await eventually('it runs again', () => eventsOf(app, 'thread.restarted').length === 1)
    expect(eventsOf(app, 'thread.')).toMatchObject([
      { level: 'error', event: 'thread.ended', thread: name },
      { level: 'info', event: 'thread.restarted', thread: name },
    ])
    for (const path of ['/-/live', '/-/ready', '/api/status']) {
      expect([path, (await app.call('GET', path)).status]).toEqual([path, 200])
    }
    const list = await app.call('GET', '/api/list', { key: 'free' })
    expect([list.status, list.body.total]).toEqual([200, 1])
    // No stored image serves this one.
    const image = await app.call('GET', `/api/qr/${code}?format=svg`)
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    const stored = await app.call('GET', `/cdn/qr/${code}.png`)
    expect(stored.status).toBe(200)
  },
)

function eventsOf(app: TestApp, name: string): Record<string, unknown>[] {
  const events = app.log.map((line) => JSON.parse(line) as Record<string, unknown>)
  return events.filter(({ event }) => String(event).startsWith(name))
}

// design: 3 /-/live, /-/ready
test('the probes answer without a key and outside every budget, during maintenance too', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '1' } })
  app.maintenance(app.now() + 60_000)
  for (const path of ['/-/live', '/-/live', '/-/ready', '/-/ready']) {
    const { status, headers } = await app.call('GET', path)
    expect([path, status, headers.get('x-ratelimit-limit')]).toEqual([path, 200, null])
  }
  app.maintenance(undefined)
  const { headers } = await app.call('GET', '/api/status')
  expect(headers.get('x-ratelimit-remaining')).toBe('0')
})
