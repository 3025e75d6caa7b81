import { expect, test } from 'bun:test'
import { HOUR } from '../../src/lib/clock.ts'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { invalid } from '../support/refusals.ts'
import { shared, sharedApp } from '../support/shared.ts'

/** GET /api/links/{code}/hits and GET /api/hits. The time is 2026-03-01T12:00Z. */

const ENV = { HIT_FLUSH_MS: '1', ANONYMOUS_READS_PER_MINUTE: '0' }

async function follow(app: TestApp, code: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await app.call('GET', `/${code}`)
}

const get = (app: TestApp, path: string, key = 'free') => app.call('GET', path, { key })

test('the buckets of a link add up to its hit_count, the redirect just served included', async () => {
  await using app = await testApp({ env: { ...ENV, HIT_FLUSH_MS: '60000' } })
  const { code } = await app.shorten('https://example.com/spring')
  await follow(app, code, 3)
  app.advance(2 * HOUR)
  await follow(app, code, 2)
  const { status, body, headers } = await get(app, `/api/links/${code.toLowerCase()}/hits?by=hour`)
  expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, '300'])
  expect(body).toMatchObject({
    code,
    by: 'hour',
    time_zone: 'UTC',
    from: '2026-02-28T15:00:00.000Z',
    to: '2026-03-01T15:00:00.000Z',
    total: 5,
  })
  expect(body.buckets).toHaveLength(24)
  expect((await get(app, `/api/lookup/${code}`)).body.hit_count).toBe(5)
})

test('the buckets of an account have the hits of all its links', async () => {
  await using app = await testApp({ env: ENV })
  const codes = await Promise.all(
    ['a', 'b'].map((name) => app.shorten(`https://example.com/${name}`)),
  )
  for (const { code } of codes) await follow(app, code, 2)
  await follow(app, (await app.shorten('https://example.com/c', 'pro')).code, 1)
  await eventually('all hits are counted', async () => {
    const { body } = await get(app, '/api/hits')
    return body.total === 4
  })
  const { body } = await get(app, '/api/hits?from=2026-02-28&to=2026-03-01')
  expect(body).toEqual({
    from: '2026-02-28T00:00:00.000Z',
    to: '2026-03-02T00:00:00.000Z',
    by: 'day',
    time_zone: 'UTC',
    total: 4,
    buckets: [
      { start: '2026-02-28T00:00:00.000Z', hits: 0 },
      { start: '2026-03-01T00:00:00.000Z', hits: 4 },
    ],
  })
})

const withoutLinks = shared(testApp)

test.each([
  // A date is included; a time is not.
  ['by=day&from=2026-02-27&to=2026-02-28', '2026-02-27T00', '2026-03-01T00', 2],
  ['by=hour&from=2026-02-28&to=2026-02-28', '2026-02-28T00', '2026-03-01T00', 24],
  [
    'by=hour&from=2026-03-01T10:30:00Z&to=2026-03-01T12:00:00Z',
    '2026-03-01T10',
    '2026-03-01T12',
    2,
  ],
  [
    'by=hour&from=2026-03-01T10:30:00%2B02:00&to=2026-03-01T09:00Z',
    '2026-03-01T08',
    '2026-03-01T09',
    1,
  ],
  ['', '2026-01-31T00', '2026-03-02T00', 30],
  ['by=hour', '2026-02-28T13', '2026-03-01T13', 24],
  // Narrowed to what is kept, and to the present.
  ['from=2025-01-25&to=2026-02-28', '2025-01-26T00', '2026-03-01T00', 399],
  ['from=2026-02-28&to=2026-12-24', '2026-02-28T00', '2026-03-02T00', 2],
  ['by=hour&from=2025-11-20&to=2025-11-22', '2025-11-22T00', '2025-11-23T00', 24],
  ['by=hour&from=2025-11-01&to=2025-11-02', '2025-11-01T00', '2025-11-01T00', 0],
  ['from=2030-01-01&to=2030-01-02', '2030-01-01T00', '2030-01-01T00', 0],
])('the range of ?%s', async (query, from, to, buckets) => {
  const app = await withoutLinks()
  const { status, body } = await get(app, `/api/hits?${query}`)
  const found = [body.from, body.to].map((time) => String(time).slice(0, 13))
  expect([query, status, ...found]).toEqual([query, 200, from, to])
  expect(body.buckets).toHaveLength(buckets)
})

const withLink = sharedApp((app) => app.claim('SPRING', 'https://example.com/spring'))

test.each([
  ['from=yesterday', invalid('from')],
  ['from=', invalid('from')],
  ['to=2026-02-30', invalid('to')],
  ['to=2026-02-30T10:00Z', invalid('to')],
  ['to=2026-02-20T25:00Z', invalid('to')],
  ['from=2026-02-20T10:00', invalid('from')],
  ['from=1767225600000', invalid('from')],
  ['by=week', invalid('by')],
  ['by=', invalid('by')],
  ['from=2026-02-21&to=2026-02-20', invalid('range')],
  ['from=2026-03-05', invalid('range')],
  ['by=hour&from=2026-01-29&to=2026-03-01', invalid('range')],
  ['from=2025-01-01&to=2026-03-01', invalid('range')],
  ['from=0001-01-01', invalid('range')],
])('both endpoints refuse ?%s', async (query, error) => {
  const { app } = await withLink()
  for (const path of ['/api/hits', '/api/links/SPRING/hits']) {
    expect([path, await get(app, `${path}?${query}`)]).toMatchObject([
      path,
      { status: 400, body: { error } },
    ])
  }
})

test('the hits of a code are for its owner: any other code is not found', async () => {
  await using app = await testApp()
  await app.claim('SPRING', 'https://example.com/spring')
  for (const [code, key] of [
    ['SPRING', 'pro'],
    ['SUMMER', 'free'],
    ['x', 'free'],
  ] as const) {
    const answer = await get(app, `/api/links/${code}/hits`, key)
    const error = `Code not found: ${code.toUpperCase()}`
    expect(answer).toMatchObject({ status: 404, body: { error } })
  }
  for (const path of ['/api/hits', '/api/links/SPRING/hits']) {
    const error = 'Invalid or missing API key'
    expect(await app.call('GET', path)).toMatchObject({ status: 401, body: { error } })
  }
})
