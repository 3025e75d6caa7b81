import { expect, test } from 'bun:test'
import { maintenanceCommands } from '../../src/cli/service.ts'
import { START, testApp } from '../support/app.ts'

/** The spec's row "503 planned maintenance", and design 4.13. */

const HOUR = 3_600_000
const url = 'https://example.com/landing'

const message = (until: number) =>
  `Service under maintenance until ${new Date(until).toISOString()}`

// design: 4.13 every /api/*
test('an address under /api that names no endpoint is 503 during maintenance too', async () => {
  await using app = await testApp()
  app.maintenance(START + HOUR)
  const { status, body } = await app.call('GET', '/api/none')
  expect([status, body.error]).toEqual([503, message(START + HOUR)])
})

// design: 4.6 HEAD
test('HEAD is 503 without a body during maintenance', async () => {
  await using app = await testApp()
  app.maintenance(START + HOUR)
  const { status, headers, bytes } = await app.call('HEAD', '/api/status')
  expect([status, headers.get('retry-after'), bytes.length]).toEqual([503, '3600', 0])
})

// spec: GET /{code} | Redirects remain available during API maintenance
// design: 4.13 maintenance
test('redirects, /qr and the stored images go on during maintenance, and hits are counted', async () => {
  await using app = await testApp()
  await app.claim('SPRING26', url)
  app.maintenance(START + HOUR)
  for (const remaining of ['5999', '5998']) {
    const { status, headers } = await app.call('GET', '/SPRING26')
    expect([status, headers.get('location')]).toEqual([302, url])
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-service-code')).toBe('SPRING26')
    expect(headers.get('x-ratelimit-remaining')).toBe(remaining)
    expect(headers.get('retry-after')).toBeNull()
  }
  const qr = await app.call('GET', '/qr/SPRING26')
  expect([qr.status, qr.headers.get('retry-after')]).toEqual([302, null])
  expect(qr.headers.get('location')).toBe('http://hop.test/cdn/qr/SPRING26.png')
  const image = await app.call('GET', '/cdn/qr/SPRING26.png')
  expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/png'])
  expect((await app.call('GET', '/NOBODY1')).body).toEqual({ error: 'Code not found: NOBODY1' })
  expect((await app.call('GET', '/qr/NOBODY1')).status).toBe(404)
  app.maintenance(undefined)
  expect((await app.call('GET', '/api/lookup/SPRING26')).body.hit_count).toBe(2)
})

// design: 4.13 maintenance
test('nothing is stored, changed or deleted during maintenance', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.claim('SPRING26', url)
  app.maintenance(START + HOUR)
  for (const [path, json] of [
    ['shorten', { url: 'https://example.com/new' }],
    ['bulk-shorten', { urls: ['https://example.com/new'] }],
    ['reserve', { code: 'SUMMER26' }],
    ['update', { code, passcode, url: 'https://example.com/new' }],
    ['delete', { code, passcode }],
  ] as const) {
    expect((await app.call('POST', `/api/${path}`, { key: 'free', json })).status).toBe(503)
  }
  expect((await app.call('GET', '/SPRING26')).headers.get('location')).toBe(url)
  app.maintenance(undefined)
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  expect(body).toMatchObject({ total: 1, items: [{ code, url }] })
})

// design: 4.13 maintenance
test('maintenance ends by the clock, to the millisecond, and Retry-After leads right there', async () => {
  await using app = await testApp()
  app.maintenance(START + 90_500)
  const status = async () => {
    const answer = await app.call('GET', '/api/status')
    return [answer.status, answer.headers.get('retry-after')]
  }
  expect(await status()).toEqual([503, '91'])
  app.advance(60_500)
  expect(await status()).toEqual([503, '30'])
  app.advance(29_999)
  expect(await status()).toEqual([503, '1'])
  app.advance(1)
  expect(await status()).toEqual([200, null])
})

test('maintenance may be given another end, and may begin again after it ended', async () => {
  await using app = await testApp()
  for (const until of [START + HOUR, START + 2 * HOUR, START + 1000]) {
    app.maintenance(until)
    const { status, body } = await app.call('GET', '/api/status')
    expect([status, body.error]).toEqual([503, message(until)])
  }
  app.maintenance(undefined)
  expect((await app.call('GET', '/api/status')).status).toBe(200)
  app.maintenance(START + HOUR)
  expect((await app.call('GET', '/api/status')).status).toBe(503)
})

test('maintenance outlives a restart of the service', async () => {
  await using app = await testApp()
  app.maintenance(START + HOUR)
  await app.stop()
  await using again = await testApp({ dataDir: app.dataDir })
  expect((await again.call('GET', '/api/status')).status).toBe(503)
  again.maintenance(undefined)
  expect((await again.call('GET', '/api/status')).status).toBe(200)
})

// design: 2 maintenance on, off, status
test('the commands begin, show and end maintenance of a running service', async () => {
  await using app = await testApp()
  const { beginMaintenance, endMaintenance, showMaintenance } = maintenanceCommands
  const until = Date.UTC(2099, 0, 2, 3, 4, 5)
  await beginMaintenance(app.administration, { until })
  const { status, body } = await app.call('GET', '/api/status')
  expect([status, body.error]).toEqual([503, message(until)])
  expect(showMaintenance(app.administration, {})).toContain('2099-01-02T03:04:05.000Z')
  const json = JSON.parse(showMaintenance(app.administration, { json: true }))
  expect(json).toEqual({ until: '2099-01-02T03:04:05.000Z' })
  expect((await app.call('GET', '/NOBODY1')).status).toBe(404)
  const ended = JSON.parse(await endMaintenance(app.administration, { json: true }))
  expect(ended).toEqual({ until: null })
  expect((await app.call('GET', '/api/status')).status).toBe(200)
  expect(showMaintenance(app.administration, {})).not.toContain('2099')
})
