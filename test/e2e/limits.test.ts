import { expect, test } from 'bun:test'
import { type Answer, type CallOptions, START, type TestApp, testApp } from '../support/app.ts'
import { ALL, type Endpoint, nameOf, pathOf, READS, WRITES } from '../support/endpoints.ts'

/** The spec's chapter "Limits": budgets and their window. */

const WINDOW = 60_000
const PLANS = {
  free: { write: 60, read: 300 },
  pro: { write: 600, read: 3000 },
  enterprise: { write: 70, read: 90 },
}
const ENTERPRISE = { ENTERPRISE_WRITES_PER_MINUTE: '70', ENTERPRISE_READS_PER_MINUTE: '90' }

const secondsAt = (msFromStart: number) => String(Math.ceil((START + msFromStart) / 1000))

function budgetOf({ headers }: Answer) {
  const [limit, remaining, reset] = ['Limit', 'Remaining', 'Reset'].map((name) =>
    headers.get(`X-RateLimit-${name}`),
  )
  return { limit, remaining, reset }
}

/** One request that is refused or found nothing, and is charged all the same. */
function ask(app: TestApp, endpoint: Endpoint, options: CallOptions = {}): Promise<Answer> {
  const json = endpoint.method === 'POST' ? { json: {} } : {}
  return app.call(endpoint.method, pathOf(endpoint, 'UNKNOWN1'), { ...json, ...options })
}

/** `count` requests at once, over all endpoints in turn. */
async function spend(
  app: TestApp,
  endpoints: readonly Endpoint[],
  count: number,
  options: CallOptions = {},
): Promise<Answer[]> {
  const answers: Answer[] = []
  while (answers.length < count) {
    const batch = Array.from({ length: Math.min(100, count - answers.length) }, (_, i) =>
      ask(app, endpoints[(answers.length + i) % endpoints.length] as Endpoint, options),
    )
    answers.push(...(await Promise.all(batch)))
  }
  return answers
}

const passedOf = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status !== 429).length

// spec: Limits | Write budget, Free
// spec: Limits | Write budget, Pro
// spec: Limits | Read budget, Free
// spec: Limits | Read budget, Pro
// spec: Limits | Read and write budgets are separate
// design: 2 ENTERPRISE_WRITES_PER_MINUTE and ENTERPRISE_READS_PER_MINUTE
test.each(['free', 'pro', 'enterprise'] as const)(
  'the endpoints of a group share the budget of the plan %s, exactly',
  async (plan) => {
    await using app = await testApp({ env: ENTERPRISE })
    for (const [endpoints, budget] of [
      [WRITES, PLANS[plan].write],
      [READS, PLANS[plan].read],
    ] as const) {
      const answers = await spend(app, endpoints, budget, { key: plan })
      expect(passedOf(answers)).toBe(budget)
      const left = answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
      expect(left.sort((a, b) => b - a)).toEqual(
        Array.from({ length: budget }, (_, i) => budget - 1 - i),
      )
      for (const endpoint of endpoints) {
        const answer = await ask(app, endpoint, { key: plan })
        const at = nameOf(endpoint)
        expect({ at, status: answer.status, ...budgetOf(answer) }).toEqual({
          at,
          status: 429,
          limit: String(budget),
          remaining: '0',
          reset: secondsAt(WINDOW),
        })
      }
    }
  },
)

// spec: Limits | Rate-limit response headers on every request
test('X-RateLimit-Limit, -Remaining and -Reset are exact on every endpoint, errors too', async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/', 'pro')
  app.advance(250)
  const left = { read: 300, write: 60 }
  for (const endpoint of ALL) {
    const options: CallOptions = endpoint.method === 'GET' ? {} : { json: {} }
    for (const asked of [code, 'UNKNOWN1']) {
      const path = pathOf(endpoint, asked)
      const answer = await app.call(endpoint.method, path, { ...options, key: 'free' })
      left[endpoint.budget]--
      expect({ path, ...budgetOf(answer) }).toEqual({
        path,
        limit: endpoint.budget === 'read' ? '300' : '60',
        remaining: String(left[endpoint.budget]),
        reset: secondsAt(250 + WINDOW),
      })
    }
    // The reset is that of the oldest request, which these later ones do not move.
    app.advance(100)
  }
})

// spec: Limits | Rate window
// design: 4.5 the window is exact
test('the window slides: a request leaves it 60 seconds later, to the millisecond', async () => {
  await using app = await testApp()
  const key = { key: 'free' }
  for (let third = 0; third < 3; third++) {
    expect(passedOf(await spend(app, WRITES, 20, key))).toBe(20)
    app.advance(20_000)
  }
  for (let third = 0; third < 6; third++) {
    app.advance(-1)
    const early = await spend(app, WRITES, 100, key)
    expect(passedOf(early)).toBe(0)
    expect(early[0]?.headers.get('retry-after')).toBe('1')
    app.advance(1)
    const answers = await spend(app, WRITES, 30, key)
    expect(passedOf(answers)).toBe(20)
    // Alone, because requests sent at once may be answered in another order.
    const [next] = await spend(app, WRITES, 1, key)
    expect(budgetOf(next as Answer)).toEqual({
      limit: '60',
      remaining: '0',
      reset: secondsAt((third + 4) * 20_000),
    })
    app.advance(20_000)
  }
})

test('a caller who keeps to the budget is never refused, and one a millisecond faster is', async () => {
  await using app = await testApp()
  for (let i = 0; i < 150; i++) {
    expect((await ask(app, WRITES[0] as Endpoint, { key: 'free' })).status).toBe(400)
    app.advance(1000)
  }
  const statuses: number[] = []
  for (let i = 0; i < 61; i++) {
    statuses.push((await ask(app, WRITES[0] as Endpoint, { key: 'free-2' })).status)
    app.advance(999)
  }
  expect(statuses).toEqual([...Array(60).fill(400), 429])
})

// spec: Errors | 429 rate limit exceeded
// design: 4.5 after Retry-After seconds the next request passes
test('Retry-After is the least number of whole seconds after which a request passes', async () => {
  await using app = await testApp({ env: { ENTERPRISE_READS_PER_MINUTE: '2' } })
  const visit = () => app.call('GET', '/api/status', { key: 'enterprise' })
  for (const waited of [700, 701, 999, 1000, 1001, 30_500, 58_999, 59_000, 59_001, 59_999]) {
    await visit()
    app.advance(700)
    await visit()
    app.advance(waited - 700)
    const refused = await visit()
    const seconds = Number(refused.headers.get('retry-after'))
    expect({ waited, status: refused.status, seconds }).toEqual({
      waited,
      status: 429,
      seconds: Math.ceil((WINDOW - waited) / 1000),
    })
    expect(refused.body).toEqual({ error: `Rate limit exceeded. Retry in ${seconds} seconds.` })
    expect(budgetOf(refused).reset).toBe(secondsAt(app.now() - START + WINDOW - waited))
    app.advance((seconds - 1) * 1000)
    expect((await visit()).status).toBe(429)
    app.advance(1000)
    expect((await visit()).status).toBe(200)
    app.advance(WINDOW)
  }
})

test('200 simultaneous requests on a budget of 60 let exactly 60 pass', async () => {
  await using app = await testApp()
  const answers = Array.from({ length: 200 }, (_, i) =>
    app.call('POST', '/api/reserve', { key: 'free', json: { code: `LAUNCH${i}` } }),
  )
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 201)).toHaveLength(60)
  expect(statuses.filter((status) => status === 429)).toHaveLength(140)
  app.advance(WINDOW)
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({ body: { total: 60 } })
})

// design: 4.5 accounts and their budgets
test('a budget is for one account, whatever addresses it calls from', async () => {
  await using app = await testApp()
  for (let i = 0; i < 60; i++) {
    const from = `198.51.100.${i}`
    expect((await ask(app, WRITES[0] as Endpoint, { key: 'free', from })).status).toBe(400)
  }
  for (const from of ['198.51.100.1', '203.0.113.77']) {
    expect((await ask(app, WRITES[0] as Endpoint, { key: 'free', from })).status).toBe(429)
    const other = await ask(app, WRITES[0] as Endpoint, { key: 'free-2', from })
    expect(other.status).toBe(400)
  }
  const anonymous = await app.call('GET', '/api/status', { from: '198.51.100.1' })
  expect(budgetOf(anonymous).remaining).toBe('299')
})

test('another plan gives another budget at once, with the requests made so far counted', async () => {
  await using app = await testApp()
  await spend(app, WRITES, 60, { key: 'free' })
  expect((await ask(app, WRITES[0] as Endpoint, { key: 'free' })).status).toBe(429)
  app.setPlan('free', 'pro')
  expect(budgetOf(await ask(app, WRITES[0] as Endpoint, { key: 'free' }))).toEqual({
    limit: '600',
    remaining: '539',
    reset: secondsAt(WINDOW),
  })
})

// design: 2 a budget of 0 means no limit
test('a budget of 0 means no limit, and its headers are still whole numbers', async () => {
  const env = {
    ANONYMOUS_READS_PER_MINUTE: '0',
    ANONYMOUS_REDIRECTS_PER_MINUTE: '0',
    ENTERPRISE_READS_PER_MINUTE: '0',
    ENTERPRISE_WRITES_PER_MINUTE: '0',
  }
  await using app = await testApp({ env })
  const callers: readonly (readonly [readonly Endpoint[], CallOptions])[] = [
    [[READS[6] as Endpoint], {}],
    [READS, { key: 'enterprise' }],
    [WRITES, { key: 'enterprise' }],
  ]
  for (const [endpoints, options] of callers) {
    const answers = await spend(app, endpoints, 400, options)
    expect(passedOf(answers)).toBe(400)
    for (const answer of answers.slice(-7)) {
      const { limit, remaining, reset } = budgetOf(answer)
      for (const value of [limit, remaining, reset]) expect(value).toMatch(/^\d+$/)
      expect(Number(remaining)).toBeGreaterThan(0)
    }
  }
  // The others keep their limits: without a key, writes are 60 a minute.
  const writes = await spend(app, WRITES, 61, {})
  expect(passedOf(writes)).toBe(60)
})

// spec: Limits | Recommended status polling
// spec: GET /api/status | Counts against the read budget
test('asking the status every 30 seconds takes two of the read budget', async () => {
  await using app = await testApp()
  for (let i = 0; i < 20; i++) {
    const answer = await app.call('GET', '/api/status')
    expect(answer.status).toBe(200)
    expect(budgetOf(answer)).toEqual({
      limit: '300',
      remaining: i === 0 ? '299' : '298',
      reset: secondsAt(i === 0 ? WINDOW : (i + 1) * 30_000),
    })
    app.advance(30_000)
  }
})
