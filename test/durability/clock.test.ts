import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { eventually, START, type TestApp, testApp } from '../support/app.ts'
import { makeAccount, Service } from '../support/binary.ts'
import { temporaryFolder } from '../support/folder.ts'
import { SEED } from '../support/seed.ts'
import { findFaketime, testWith } from '../support/tools.ts'
import { SeededRandom } from './lib/seeded-random.ts'

/**
 * A wall clock that is set ahead or back. Budgets go by a clock that cannot be set; keys that end,
 * maintenance and dates go by the wall.
 */

const DAY = 24 * HOUR
const STEPS = [
  { name: 'an hour ahead', ms: HOUR },
  { name: 'an hour back', ms: -HOUR },
  { name: 'a second back', ms: -SECOND },
  { name: 'over a day’s end', ms: 12 * HOUR },
  { name: 'over a month’s end', ms: 31 * DAY },
  { name: 'over a year’s end', ms: 320 * DAY },
  { name: 'three years back, over a leap day', ms: -1096 * DAY },
]

/** Spends one read. Returns what is seen of the budget, its reset as seconds from now. */
async function read(app: TestApp) {
  const { status, headers } = await app.call('GET', '/api/lookup/NOSUCH')
  return {
    status,
    remaining: headers.get('x-ratelimit-remaining'),
    retryAfter: headers.get('retry-after'),
    resetIn: Number(headers.get('x-ratelimit-reset')) - Math.ceil(app.now() / 1000),
  }
}

test.each(STEPS)('the wall clock set $name changes no decision about a budget', async ({ ms }) => {
  const env = { ANONYMOUS_READS_PER_MINUTE: '20' }
  await using stepped = await testApp({ env })
  await using steady = await testApp({ env })
  const random = new SeededRandom(SEED)
  const seen = new Set<number>()
  for (let request = 0; request < 120; request++) {
    const passed = random.below(5 * SECOND)
    stepped.advance(passed)
    steady.advance(passed)
    // Whole seconds, so that the rounding of the reset is the same on both clocks.
    if (request % 7 === 3) stepped.stepWall(request % 2 === 0 ? ms : -ms)
    const expected = await read(steady)
    expect([SEED, request, await read(stepped)]).toEqual([SEED, request, expected])
    seen.add(expected.status)
  }
  expect([...seen].sort()).toEqual([404, 429])
})

test.each(STEPS)(
  'after the wall clock is set $name, a refused caller passes after Retry-After seconds, not before',
  async ({ ms }) => {
    await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '3' } })
    for (let i = 0; i < 3; i++) expect((await read(app)).status).toBe(404)
    app.advance(10 * SECOND)
    app.stepWall(ms)
    const refused = await read(app)
    expect(refused).toMatchObject({ status: 429, retryAfter: '50', resetIn: 50 })
    app.advance(50 * SECOND - 1)
    app.stepWall(ms)
    expect((await read(app)).status).toBe(429)
    app.advance(1)
    expect((await read(app)).status).toBe(404)
  },
)

// spec: Authentication | 4
test('a rotated key ends by the wall clock: set ahead it ends sooner, set back it works again', async () => {
  await using app = await testApp()
  const old = app.rotateKey('free')
  const status = async () => (await app.call('GET', '/api/list', { key: old })).status
  app.advance(12 * HOUR)
  app.stepWall(12 * HOUR - 1)
  expect(await status()).toBe(200)
  app.stepWall(1)
  expect(await status()).toBe(401)
  app.stepWall(-HOUR)
  expect(await status()).toBe(200)
  app.advance(HOUR)
  expect(await status()).toBe(401)
})

test('maintenance ends by the wall clock, whichever way it is set', async () => {
  await using app = await testApp()
  app.maintenance(app.now() + HOUR)
  const seen = async () => {
    const { status, headers } = await app.call('GET', '/api/lookup/NOSUCH')
    return [status, headers.get('retry-after')]
  }
  app.stepWall(30 * MINUTE)
  expect(await seen()).toEqual([503, '1800'])
  app.stepWall(-HOUR)
  expect(await seen()).toEqual([503, '5400'])
  app.advance(90 * MINUTE)
  expect(await seen()).toEqual([404, null])
  app.stepWall(-1)
  expect(await seen()).toEqual([503, '1'])
})

test('with the clock set back, new codes are still listed first, and counts and status go on', async () => {
  await using app = await testApp()
  const first = await app.shorten('https://example.com/first')
  app.stepWall(-DAY)
  const second = await app.shorten('https://example.com/second')
  expect((await app.call('GET', `/${second.code}`)).status).toBe(302)
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  expect(body.items).toMatchObject([
    { code: second.code, created_at: new Date(START - DAY).toISOString(), hit_count: 1 },
    { code: first.code, created_at: new Date(START).toISOString(), hit_count: 0 },
  ])
  const status = await app.call('GET', '/api/status')
  expect(status.body).toMatchObject({
    status: 'operational',
    timestamp: new Date(app.now()).toISOString(),
  })
  expect(status.body.response_time_ms).toBeLessThan(1000)
})

test.each([
  ['the end of a day', Date.UTC(2026, 2, 1, 23, 59, 59, 500)],
  ['the end of a month', Date.UTC(2026, 3, 30, 23, 59, 59, 500)],
  ['the end of a February with a leap day', Date.UTC(2028, 1, 29, 23, 59, 59, 500)],
  ['the end of a year', Date.UTC(2026, 11, 31, 23, 59, 59, 500)],
])('%s passes unnoticed by budgets and keys', async (_, almost) => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  app.advance(almost - START)
  const old = app.rotateKey('free')
  expect(await read(app)).toMatchObject({ status: 404, remaining: '1' })
  app.advance(SECOND)
  expect(await read(app)).toMatchObject({ status: 404, remaining: '0' })
  expect(await read(app)).toMatchObject({ status: 429, retryAfter: '59' })
  const { code } = await app.shorten('https://example.com/midnight')
  const { body } = await app.call('GET', '/api/list', { key: old })
  const [item] = body.items as { code: string; created_at: string }[]
  expect(item).toMatchObject({ code, created_at: new Date(almost + SECOND).toISOString() })
  app.advance(DAY - SECOND - 1)
  expect((await app.call('GET', '/api/list', { key: old })).status).toBe(200)
  app.advance(1)
  expect((await app.call('GET', '/api/list', { key: old })).status).toBe(401)
})

testWith('faketime')(
  'the program itself, with its clock set an hour ahead and two back: budgets hold, and hits are committed',
  async () => {
    using folder = temporaryFolder()
    const dataDir = join(folder.path, 'data')
    const step = join(folder.path, 'step')
    writeFileSync(step, '+0')
    const env = { DATA_DIR: dataDir, HIT_FLUSH_MS: '10', ANONYMOUS_REDIRECTS_PER_MINUTE: '6' }
    const key = await makeAccount(env)
    await using service = await Service.start({
      ...env,
      ...withSettableClock(findFaketime() ?? '', step),
    })
    const code = await service.shorten(key, 'https://example.com/clock')
    const follow = async (redirects: number) => {
      for (let i = 0; i < redirects; i++) expect((await service.fetch(`/${code}`)).status).toBe(302)
    }
    const committed = () => {
      using db = new Database(join(dataDir, 'hopcode.db'), { readonly: true })
      return db.query<{ redirects: number }, []>('SELECT redirects FROM hit_totals').get()
        ?.redirects
    }
    await follow(1)
    for (const [seconds, redirects] of [
      ['+3600', 2],
      ['-3600', 3],
    ] as const) {
      writeFileSync(step, seconds)
      await follow(redirects)
      await eventually(
        'the hits are committed',
        () => committed() === (redirects * (redirects + 1)) / 2,
      )
    }
    for (const seconds of ['-3600', '+3600', '+0']) {
      writeFileSync(step, seconds)
      const refused = await service.fetch(`/${code}`)
      expect(refused.status).toBe(429)
      const wait = Number(refused.headers.get('retry-after'))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(60)
      const now = Date.now() / 1000 + Number(seconds)
      const resetIn = Number(refused.headers.get('x-ratelimit-reset')) - now
      expect(Math.abs(resetIn - wait)).toBeLessThan(5)
    }
    expect(await service.end('SIGTERM')).toBe(0)
    // The library leaves these behind.
    for (const name of ['faketime_shm', 'sem.faketime_sem']) {
      rmSync(`/dev/shm/${name}_${service.pid}`, { force: true })
    }
  },
)

/** Debian's faketime: the wall clock is ahead of the machine's by the seconds that `file` says. */
function withSettableClock(library: string, file: string): Record<string, string> {
  return {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    DONT_FAKE_MONOTONIC: '1',
  }
}
