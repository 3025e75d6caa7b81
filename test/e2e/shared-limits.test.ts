import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { eventually, type TestApp, testApp } from '../support/app.ts'
import { Redis } from '../support/redis.ts'
import { testWith } from '../support/tools.ts'

const WINDOW_MS = 60_000
const SEED = 7_310_551
const RUNS = Number(process.env.LIMITER_RUNS ?? 12)

const BUDGETS = {
  ANONYMOUS_READS_PER_MINUTE: '7',
  ENTERPRISE_READS_PER_MINUTE: '6',
  ENTERPRISE_WRITES_PER_MINUTE: '4',
}
const LIMITS = { address: 7, read: 6, write: 4 } as const
type Kind = keyof typeof LIMITS

interface Caller {
  /** An account of both hosts with the same id, and an address. */
  key: string
  from: string
}

/** A request that is charged, whatever else is wrong with it. */
function send(app: TestApp, kind: Kind, { key, from }: Caller) {
  if (kind === 'address') return app.call('GET', '/api/lookup/NOTHING1', { from })
  if (kind === 'read') return app.call('GET', '/api/list', { key, from })
  return app.call('POST', '/api/update', { key, from, json: {} })
}

interface HostOptions {
  env?: Record<string, string>
  sharedLimitsTimeoutMs?: number
}

async function hosts(redis: Pick<Redis, 'url'>, { env, ...rest }: HostOptions = {}) {
  const settings = { ...rest, env: { ...BUDGETS, VALKEY_URL: redis.url, ...env } }
  return [await testApp(settings), await testApp(settings)] as const
}

const metric = async (app: TestApp, name: string): Promise<number> => {
  const text = await (await fetch(`${app.url}/-/metrics`)).text()
  return Number(new RegExp(`^hopcode_shared_limits_${name} (\\S+)$`, 'm').exec(text)?.[1])
}

const events = (app: TestApp) => app.log.filter((line) => line.includes('"shared_limits.'))

const isUp = async (app: TestApp) => (await metric(app, 'up')) === 1

const step = fc.record({
  kind: fc.constantFrom<Kind[]>('address', 'read', 'write'),
  host: fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
  // No sum of them is near the length of the window: the server's clock runs on meanwhile.
  advanceMs: fc.constantFrom(0, 0, 7000, 14_000, 35_000),
})

testWith('redis')(
  'limits of accounts and addresses are exact across hosts, whichever requests come at once',
  async () => {
    await using redis = await Redis.start()
    const [one, two] = await hosts(redis)
    await using _one = one
    await using _two = two
    let run = 0
    const property = fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      run++
      const caller = { key: `enterprise-${run}`, from: `198.51.100.${run % 250}` }
      for (const app of [one, two]) app.key(caller.key)
      const logs: Record<Kind, number[]> = { address: [], read: [], write: [] }
      for (const { kind, host, advanceMs } of steps) {
        if (advanceMs > 0) await redis.advance(advanceMs)
        for (const app of [one, two]) app.advance(advanceMs)
        const now = one.now()
        const log = logs[kind].filter((at) => at > now - WINDOW_MS)
        logs[kind] = log
        const left = LIMITS[kind] - log.length
        const answers = await Promise.all(
          host.map((isFirst) => send(isFirst ? one : two, kind, caller)),
        )
        const passed = answers.filter(({ status }) => status !== 429)
        expect(passed).toHaveLength(Math.min(left, answers.length))
        for (const _ of passed) log.push(now)
        const remaining = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
        expect(remaining.sort((a, b) => b - a)).toEqual(passed.map((_, i) => left - 1 - i))
        for (const { status, headers } of answers) {
          expect(headers.get('x-ratelimit-limit')).toBe(String(LIMITS[kind]))
          if (status !== 429) continue
          expect(headers.get('x-ratelimit-remaining')).toBe('0')
          const waitMs = (log[0] ?? now) + WINDOW_MS - now
          expect(Number(headers.get('retry-after'))).toBeWithin(
            Math.ceil(waitMs / 1000) - 3,
            Math.ceil(waitMs / 1000) + 1,
          )
        }
      }
    })
    await fc.assert(property, { seed: SEED, numRuns: RUNS })
    for (const app of [one, two]) expect(await metric(app, 'local_total')).toBe(0)
  },
)

testWith('redis')('keys contain no address, account or secret, and expire', async () => {
  await using redis = await Redis.start()
  const [one, two] = await hosts(redis)
  await using _one = one
  await using _two = two
  const caller = { key: 'enterprise', from: '198.51.100.7' }
  for (const kind of ['address', 'read', 'write'] as const) await send(one, kind, caller)
  const keys = (await redis.command('KEYS', '*')) as string[]
  const limits = keys.filter((key) => key !== 'hopcode:probe').sort()
  expect(limits).toHaveLength(3)
  for (const key of limits) {
    expect(key).toMatch(/^hopcode:[\w-]{8}:(read|write):[\w-]{22}$/)
    expect(await redis.command('PTTL', key)).toBeWithin(1, WINDOW_MS + 1)
  }
})

testWith('redis')(
  'without the server, limits apply per host, and neither its end nor its return gives a new budget there',
  async () => {
    await using redis = await Redis.start()
    const [one, two] = await hosts(redis)
    await using _one = one
    await using _two = two
    const caller = { key: 'enterprise', from: '198.51.100.7' }
    for (const app of [one, two]) app.key(caller.key)
    const statuses = async (app: TestApp, times: number) => {
      const found: number[] = []
      for (let i = 0; i < times; i++) found.push((await send(app, 'read', caller)).status)
      return found
    }
    expect(await statuses(one, 2)).toEqual([200, 200])
    expect(await statuses(two, 1)).toEqual([200])

    await redis.kill()
    expect(await statuses(one, 5)).toEqual([200, 200, 200, 200, 429])
    expect(await statuses(two, 6)).toEqual([200, 200, 200, 200, 200, 429])
    for (const app of [one, two]) {
      expect(await metric(app, 'up')).toBe(0)
      expect(await metric(app, 'local_total')).toBeWithin(4, 7)
    }

    await redis.restart()
    for (const app of [one, two]) await eventually('limits are shared again', () => isUp(app))
    expect(await statuses(one, 1)).toEqual([429])
    expect(await statuses(two, 1)).toEqual([429])
    const other = { key: 'enterprise-2', from: '198.51.100.8' }
    for (const app of [one, two]) app.key(other.key)
    for (let i = 0; i < 3; i++) await send(one, 'read', other)
    const last = await send(two, 'read', other)
    expect(last.headers.get('x-ratelimit-remaining')).toBe('2')

    for (const app of [one, two]) {
      const lines = events(app).map((line) => JSON.parse(line).event)
      expect(lines).toEqual(['shared_limits.up', 'shared_limits.down', 'shared_limits.up'])
      expect(app.log.join('\n')).not.toContain(new URL(redis.url).password)
    }
  },
)

testWith('redis')(
  'while the server hangs, only the requests of one moment wait for it, and none fails',
  async () => {
    await using redis = await Redis.start()
    const [one, two] = await hosts(redis, {
      env: { ENTERPRISE_READS_PER_MINUTE: '0' },
      sharedLimitsTimeoutMs: 90,
    })
    await using _one = one
    await using _two = two
    const times = async (count: number, atOnce: number) => {
      const began = performance.now()
      for (let i = 0; i < count; i += atOnce) {
        const sent = Array.from({ length: atOnce }, (_, j) =>
          send(one, 'write', { key: `enterprise-${i + j}`, from: '198.51.100.9' }),
        )
        for (const { status } of await Promise.all(sent)) expect(status).toBe(400)
      }
      return performance.now() - began
    }
    for (let i = 0; i < 400; i++) one.key(`enterprise-${i}`)
    await times(20, 20)
    redis.pause()
    const first = await times(20, 20)
    expect(await metric(one, 'up')).toBe(0)
    expect(await metric(one, 'local_total')).toBe(20)
    const rest = await times(400, 1)
    expect(await metric(one, 'local_total')).toBe(420)
    console.log(`20 at once: ${first.toFixed(0)} ms; then 400 in a row: ${rest.toFixed(0)} ms`)
    // Each waiting alone, the 400 would take 40 seconds.
    expect(rest).toBeLessThan(20_000)
    redis.resume()
    await eventually('limits are shared again', () => isUp(one))
    expect(events(one)).toHaveLength(3)
  },
)

test('a service starts without the server, and says so once', async () => {
  await using app = await testApp({ env: { VALKEY_URL: 'redis://user:hidden@127.0.0.1:1' } })
  const { status, headers } = await send(app, 'address', { key: '', from: '198.51.100.7' })
  expect([status, headers.get('x-ratelimit-remaining')]).toEqual([404, '299'])
  expect(await metric(app, 'up')).toBe(0)
  expect(events(app)).toHaveLength(1)
  expect(app.log.join('\n')).not.toContain('hidden')
})
