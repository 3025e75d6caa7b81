import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ADDRESSES_MAX, freshIpv4, ipv6Networks } from '../../test/abuse/addresses.ts'
import { type Client, ClientAddress } from '../hot/client-address.ts'
import { RateLimiter } from './budgets.ts'

const WINDOW_MS = 60_000
const SEED = 4_052_611
const RUNS = Number(process.env.LIMITER_RUNS ?? 50)

const PLANS = {
  free: { read: 5, write: 4 },
  pro: { read: 50, write: 40 },
  enterprise: { read: 0, write: 0 },
}

interface Setup {
  anonymous?: { read: number; write: number; redirect: number }
  addressesMax?: number
}

/** A limiter on a clock that only `at` moves. */
function limiterOf({ anonymous, addressesMax }: Setup = {}) {
  const time = { ms: 1000 }
  const memory = RateLimiter.allocate({
    plans: PLANS,
    anonymous: anonymous ?? { read: 300, write: 60, redirect: 6000 },
    pagesPerMinute: 600,
    addressesMax,
  })
  const clocks = { clock: () => time.ms, monotonic: () => time.ms }
  return { limiter: new RateLimiter(memory, clocks), clocks, time }
}

const keyOf = (text: string): Client => new ClientAddress([]).parsePeer(text).client

const windowOf = (limiter: RateLimiter, budget: string) =>
  limiter.windows().find((one) => one.callers === 'address' && one.budget === budget)?.window

const SCHOOL = keyOf('198.51.100.20')

/** How many of `times` takes in a row pass. */
function passed(limiter: RateLimiter, charge: 'read' | 'redirect', key: Client, times: number) {
  let count = 0
  for (let i = 0; i < times; i++) if (limiter.take(charge, undefined, key).allowed) count++
  return count
}

test('redirects of an address have a window of their own, and an account’s are its reads', () => {
  const { limiter } = limiterOf()
  expect(passed(limiter, 'read', SCHOOL, 400)).toBe(300)
  expect(passed(limiter, 'redirect', SCHOOL, 7000)).toBe(6000)
  expect(limiter.take('redirect', undefined, SCHOOL)).toMatchObject({
    allowed: false,
    limit: 6000,
    remaining: 0,
    retryAfter: 60,
  })
  const account = { id: 1, plan: 'free' as const }
  for (const charge of ['redirect', 'read', 'redirect', 'read', 'redirect'] as const) {
    expect(limiter.take(charge, account, SCHOOL).allowed).toBe(true)
  }
  expect(limiter.take('redirect', account, SCHOOL)).toMatchObject({
    allowed: false,
    limit: 5,
    remaining: 0,
  })
})

test('the highest budget of an address is exact', () => {
  const { limiter } = limiterOf({ anonymous: { read: 1_000_000, write: 1, redirect: 1 } })
  expect(passed(limiter, 'read', SCHOOL, 1_000_100)).toBe(1_000_000)
  expect(windowOf(limiter, 'read')).toMatchObject({ arenaRefused: 0 })
})

test('limiters of the same memory, as in other threads, share all windows', () => {
  const { limiter, clocks } = limiterOf()
  const other = new RateLimiter(structuredClone(limiter.memory), { ...clocks, thread: 2 })
  expect(passed(limiter, 'redirect', SCHOOL, 4000)).toBe(4000)
  expect(passed(other, 'redirect', SCHOOL, 4000)).toBe(2000)
  expect(passed(limiter, 'read', SCHOOL, 200)).toBe(200)
  expect(passed(other, 'read', SCHOOL, 200)).toBe(100)
  const account = { id: 1, plan: 'free' as const }
  for (let i = 0; i < 3; i++) other.take('write', account, SCHOOL)
  expect(limiter.usage(account).write).toEqual({ limit: 4, used: 3 })
})

const step = fc.record({
  address: fc.nat({ max: 2 }),
  act: fc.constantFrom('read' as const, 'redirect' as const),
  advanceMs: fc.oneof(fc.constant(0), fc.nat({ max: 30_000 }), fc.constantFrom(59_999, 60_001)),
  times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 70 })),
})

// design: 4.5 the window is exact
test('reads and redirects of addresses agree with plain logs, and are counted independently', () => {
  const budgets = { read: 7, write: 1, redirect: 11 }
  const steps = fc.array(step, { maxLength: 60, size: 'max' })
  const property = fc.property(steps, (all) => {
    const { limiter, time } = limiterOf({ anonymous: budgets })
    const logs = new Map<string, number[]>()
    const counted = (name: string) => {
      const times = (logs.get(name) ?? []).filter((at) => at > time.ms - WINDOW_MS)
      logs.set(name, times)
      return times
    }
    for (const { address, act, advanceMs, times } of all) {
      time.ms += advanceMs
      const key = keyOf(`198.51.100.${address}`)
      for (let i = 0; i < times; i++) {
        const log = counted(`${act} ${address}`)
        const allowed = log.length < budgets[act]
        if (allowed) log.push(time.ms)
        const limit = budgets[act]
        const remaining = limit - log.length
        const resetAt = Math.ceil(((log[0] ?? 0) + WINDOW_MS) / 1000)
        const budget = limiter.take(act, undefined, key)
        expect(budget).toMatchObject({ allowed, limit, remaining, resetAt })
      }
    }
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})

/** More than the limiter tells apart, so that each of its shards is full. */
const FLOOD = Math.floor(ADDRESSES_MAX * 1.05)
const SHARDS = 8

test('after more IPv4 addresses in a minute than can be counted, 400 new clients follow links', () => {
  const { limiter } = limiterOf()
  const address = new ClientAddress([])
  let reads = 0
  for (const text of freshIpv4(FLOOD, 10)) {
    const { client } = address.parsePeer(text)
    if (!limiter.take('redirect', undefined, client).allowed) throw new Error(`${text} is refused`)
    if (limiter.take('read', undefined, client).allowed) reads++
  }
  expect(windowOf(limiter, 'redirect')?.size).toBe(ADDRESSES_MAX)
  for (const text of freshIpv4(400, 100)) {
    const key = keyOf(text)
    expect([text, limiter.take('redirect', undefined, key).allowed]).toEqual([text, true])
  }
  const uncounted = FLOOD - ADDRESSES_MAX + 400
  expect(windowOf(limiter, 'redirect')).toMatchObject({ refused: 0, uncounted })
  // Reads stay strict: newcomers share one budget for each shard.
  expect(reads).toBe(ADDRESSES_MAX + SHARDS * 300)
})

test('an IPv6 /45 with 393,216 networks takes little more than half of the table, and all clients are counted', () => {
  const { limiter } = limiterOf()
  const address = new ClientAddress([])
  for (const text of ipv6Networks(ADDRESSES_MAX, { prefixLength: 45 })) {
    const { client } = address.parsePeer(text)
    limiter.take('redirect', undefined, client)
    limiter.take('read', undefined, client)
  }
  for (const budget of ['redirect', 'read']) {
    const window = windowOf(limiter, budget)
    expect(window).toMatchObject({ overflowed: 0, uncounted: 0 })
    expect(window?.size).toBeLessThanOrEqual(ADDRESSES_MAX / 2 + SHARDS + 8)
  }
  for (const text of freshIpv4(400, 100)) {
    const budget = limiter.take('redirect', undefined, keyOf(text))
    expect(budget).toMatchObject({ allowed: true, remaining: 5999 })
  }
  // A network that came before the flood keeps its own count.
  const [early] = ipv6Networks(1)
  const budget = limiter.take('read', undefined, keyOf(early as string))
  expect(budget).toMatchObject({ allowed: true, remaining: 298 })
})
