import { expect, test } from 'bun:test'
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts'
import { backoffAfter, planOrder, type Situation, usualWindow } from './schedule.ts'
import type { CertificateState, OrderRecord } from './store.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
const NAMES = ['go.example', 'go2.example', 'go3.example']

const plan = (
  more: Partial<Omit<Situation, 'state'>> & { state?: Partial<CertificateState> } = {},
) =>
  planOrder({
    names: NAMES,
    certified: undefined,
    changedAt: NOW - HOUR,
    now: NOW,
    ...more,
    state: { orders: [], names: {}, blockedUntil: 0, aheadMs: 0, ...more.state },
  })

const order = (ago: number, more: Partial<OrderRecord> = {}): OrderRecord => ({
  at: NOW - ago,
  names: NAMES,
  isRenewal: false,
  result: 'issued',
  failed: [],
  ...more,
})
const failure = (ms: number) => ({ failures: 1, error: 'no', nextAt: NOW + ms })
const renewal = (ms: number) => ({ id: 'x', start: 0, end: 0, at: NOW + ms, askAt: NOW + DAY })

test('without a certificate an order is due at once, for all names', () => {
  expect(plan()).toMatchObject({ names: NAMES, isRenewal: false })
  expect(plan()?.at).toBeLessThanOrEqual(NOW)
})

test('a certificate with all names, and with more, needs no order before its renewal', () => {
  expect(plan({ certified: NAMES })).toBeUndefined()
  expect(plan({ certified: [...NAMES, 'old.example'] })).toBeUndefined()
  const state = { renewal: renewal(DAY) }
  expect(plan({ certified: NAMES, state })).toEqual({
    names: NAMES,
    isRenewal: true,
    at: NOW + DAY,
  })
  // A removed name leaves with it.
  const certified = [...NAMES, 'old.example']
  expect(plan({ certified, state: { renewal: renewal(-1) } })?.names).toEqual(NAMES)
})

test('names that are added wait 10 seconds for others', () => {
  const certified = ['go.example']
  expect(plan({ certified, changedAt: NOW - 4 * SECOND })).toEqual({
    names: NAMES,
    isRenewal: false,
    at: NOW + 6 * SECOND,
  })
})

test('a name that has failed is left out, and the others do not wait for it', () => {
  const state = { names: { 'go2.example': failure(15 * MINUTE) } }
  expect(plan({ state })?.names).toEqual(['go.example', 'go3.example'])
  const certified = ['go.example', 'go3.example']
  expect(plan({ certified, state })).toMatchObject({ names: NAMES, at: NOW + 15 * MINUTE })
})

test('the pauses of a name grow to a day', () => {
  const hours = [1, 2, 3, 4, 5, 6, 99].map((failures) => backoffAfter(failures) / HOUR)
  expect(hours).toEqual([0.25, 1, 4, 12, 24, 24, 24])
})

const limits: { limit: string; state: Partial<CertificateState>; at: number }[] = [
  {
    limit: 'one a minute',
    state: { orders: [order(20 * SECOND, { names: [] })] },
    at: 40 * SECOND,
  },
  {
    limit: '10 in 3 hours',
    state: {
      orders: Array.from({ length: 10 }, (_, i) =>
        order((170 - i * 10) * MINUTE, { names: [`${i}`], result: 'failed' }),
      ),
    },
    at: 10 * MINUTE,
  },
  {
    limit: '3 of the same names in 7 days',
    state: { orders: [order(6 * DAY), order(5 * DAY, { names: NAMES.toReversed() }), order(DAY)] },
    at: DAY,
  },
  {
    limit: '3 of the same names, of which one was lost',
    state: { orders: [order(6 * DAY), order(5 * DAY), order(DAY, { result: undefined })] },
    at: DAY,
  },
  {
    limit: '20 in 7 days that replace none',
    state: {
      orders: Array.from({ length: 20 }, (_, i) => order((140 - i) * HOUR, { names: [`${i}`] })),
    },
    at: 28 * HOUR,
  },
  { limit: 'what the authority has said', state: { blockedUntil: NOW + HOUR }, at: HOUR },
  {
    limit: '4 failures of a name in an hour',
    state: {
      orders: [50, 40, 30, 20].map((minutes) =>
        order(minutes * MINUTE, { names: ['go.example'], result: 'failed', failed: NAMES }),
      ),
    },
    at: 10 * MINUTE,
  },
]
test.each(limits)('an order waits for the limit of $limit', ({ state, at }) => {
  expect((plan({ state })?.at ?? 0) - NOW).toBe(at)
})

test('a renewal is no new certificate', () => {
  const orders = Array.from({ length: 20 }, (_, i) => order((140 - i) * HOUR, { names: [`${i}`] }))
  const state = { orders, renewal: renewal(-HOUR) }
  expect(plan({ certified: NAMES, state })?.at).toBeLessThanOrEqual(NOW)
})

test('a refused order counts for no set of names', () => {
  const orders = [3, 2, 1].map((days) => order(days * DAY, { result: 'failed' }))
  expect(plan({ state: { orders } })?.at).toBeLessThanOrEqual(NOW)
})

test('random histories never exceed the limits of the authority', () => {
  let seed = 7
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed / 2 ** 31
  }
  for (let run = 0; run < 8; run++) {
    const state: CertificateState = { orders: [], names: {}, blockedUntil: 0, aheadMs: 0 }
    let certified: string[] | undefined
    for (let now = NOW; now < NOW + 14 * DAY; now += 40 * MINUTE * random()) {
      const names = NAMES.slice(0, 1 + Math.floor(3 * random()))
      // Somebody asks for retries all the time.
      for (const name of names) delete state.names[name]
      if (random() < 0.02) certified = undefined
      const due = planOrder({ names, certified, changedAt: NOW, state, now })
      if (!due || due.at > now) continue
      const result = random() < 0.5 ? ('issued' as const) : ('failed' as const)
      const failed = result === 'failed' ? due.names : []
      state.orders.push({ at: now, names: due.names, isRenewal: false, result, failed })
      if (result === 'issued') certified = due.names
    }
    const { orders } = state
    expect(orders.length).toBeGreaterThan(20)
    for (const { at, names } of orders) {
      const within = (ms: number) => orders.filter((one) => one.at <= at && one.at > at - ms)
      const issued = within(7 * DAY).filter(({ result }) => result === 'issued')
      const same = issued.filter((one) => one.names.join() === names.join())
      expect(within(3 * HOUR).length).toBeLessThanOrEqual(10)
      expect(issued.length).toBeLessThanOrEqual(20)
      expect(same.length).toBeLessThanOrEqual(3)
      for (const name of names) {
        const failures = within(HOUR).filter(({ failed }) => failed?.includes(name))
        expect(failures.length).toBeLessThanOrEqual(4)
      }
    }
  }
})

test('without a word of the authority, 90 days are renewed at 60 and 6 days at 3', () => {
  for (const [days, at, spread] of [
    [90, 60, 4.5],
    [6, 3, 0.3],
  ] as const) {
    const { start, end } = usualWindow({ from: 0, until: days * DAY })
    expect(start / DAY).toBeCloseTo(at - spread)
    expect(end / DAY).toBeCloseTo(at + spread)
  }
})
