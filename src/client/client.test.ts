import { expect, test } from 'bun:test'
import { Hopcode, HopcodeError, HopcodeNetworkError, type HopcodeOptions } from './client.ts'

const NOW = Date.UTC(2026, 2, 1)

type Reply = Response | Error

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers })
const CREATED = () => json(201, { code: 'SPRING26', reused: false })

/** A client whose requests get the replies in order, and that does not wait. */
function setUp(replies: readonly (() => Reply)[], options: Partial<HopcodeOptions> = {}) {
  const requests: { url: string; init: RequestInit }[] = []
  const delays: number[] = []
  const hopcode = new Hopcode({
    url: 'https://hop.example/',
    apiKey: 'hop_key',
    random: () => 0.5,
    now: () => NOW,
    sleep: async (ms) => void delays.push(ms),
    fetch: async (url, init) => {
      const reply = replies[requests.length]?.() ?? CREATED()
      requests.push({ url, init })
      if (reply instanceof Error) throw reply
      return reply
    },
    ...options,
  })
  return { hopcode, requests, delays }
}

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

test('a request has the key and the body, and its URL has no doubled slash', async () => {
  const { hopcode, requests } = setUp([])
  await hopcode.shorten('https://example.com/')
  expect(requests).toHaveLength(1)
  expect(requests[0]).toMatchObject({
    url: 'https://hop.example/api/shorten',
    init: {
      method: 'POST',
      body: '{"url":"https://example.com/"}',
      headers: { 'x-api-key': 'hop_key', 'content-type': 'application/json' },
    },
  })
})

test('only the options that are given become parameters', async () => {
  const { hopcode, requests } = setUp([])
  await hopcode.list({ offset: 0, search: 'a b&c' })
  expect(requests[0]?.url).toBe('https://hop.example/api/list?offset=0&search=a+b%26c')
})

test.each([429, 500, 502, 503, 504])('%i is retried until it succeeds', async (status) => {
  const failure = () => json(status, { error: 'later' })
  const { hopcode, delays } = setUp([failure, failure])
  expect(await hopcode.shorten('https://example.com/')).toMatchObject({ code: 'SPRING26' })
  expect(delays).toEqual([1000, 2000])
})

test('a network error is retried, also one in the middle of the body', async () => {
  const broken = () =>
    new Response(new ReadableStream({ start: (controller) => controller.error(new Error('cut')) }))
  const { hopcode, delays } = setUp([() => new Error('refused'), broken])
  expect(await hopcode.shorten('https://example.com/')).toMatchObject({ code: 'SPRING26' })
  expect(delays).toEqual([1000, 2000])
})

const NEVER = [
  { status: 400, kind: 'invalid_request' },
  { status: 401, kind: 'invalid_api_key' },
  { status: 403, kind: 'invalid_passcode' },
  { status: 404, kind: 'not_found' },
  { status: 409, kind: 'code_in_use' },
  { status: 422, kind: 'not_allowed' },
] as const
test.each(NEVER)('$status is not retried: $kind', async ({ status, kind }) => {
  const { hopcode, requests, delays } = setUp([() => json(status, { error: 'No.' })])
  const failure = await failureOf(hopcode.reserve('SPRING26'))
  expect(failure).toBeInstanceOf(HopcodeError)
  expect(failure).toMatchObject({ message: 'No.', status, kind, requestId: undefined })
  expect(requests).toHaveLength(1)
  expect(delays).toEqual([])
})

test('after five retries, the last error is thrown', async () => {
  const failure = () => json(503, { error: 'Service under maintenance', request_id: 'r1' })
  const { hopcode, requests, delays } = setUp(Array(6).fill(failure))
  expect(await failureOf(hopcode.status())).toMatchObject({
    status: 503,
    kind: 'unavailable',
    requestId: 'r1',
  })
  expect(requests).toHaveLength(6)
  expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000])
})

test.each([
  [0, [750, 1500, 3000]],
  [1, [1250, 2500, 5000]],
])('with a random number of %d the delays are %j', async (random, expected) => {
  const failure = () => new Error('refused')
  const { hopcode, delays } = setUp(Array(3).fill(failure), { random: () => random })
  await hopcode.status()
  expect(delays).toEqual(expected)
})

test('a delay is at most 30 seconds', async () => {
  const failure = () => new Error('refused')
  const { hopcode, delays } = setUp(Array(7).fill(failure), { retriesMax: 7 })
  await hopcode.status()
  expect(delays.slice(-2)).toEqual([30_000, 30_000])
})

test.each([
  ['45', 45_000],
  ['0', 0],
  [new Date(NOW + 90_000).toUTCString(), 90_000],
  [new Date(NOW - 90_000).toUTCString(), 0],
  ['soon', 1000],
])('Retry-After: %s makes a delay of %i ms', async (header, expected) => {
  const { hopcode, delays } = setUp([() => json(429, {}, { 'retry-after': header })])
  await hopcode.status()
  expect(delays).toEqual([expected])
})

test('an error without JSON names its status', async () => {
  const { hopcode } = setUp([() => new Response('<html>', { status: 413 })])
  expect(await failureOf(hopcode.status())).toMatchObject({
    message: 'HTTP 413',
    kind: 'too_large',
  })
})

test('a service that cannot be reached is a network error with its cause', async () => {
  const cause = new Error('refused')
  const { hopcode } = setUp([() => cause], { retriesMax: 0 })
  const failure = await failureOf(hopcode.status())
  expect(failure).toBeInstanceOf(HopcodeNetworkError)
  expect(failure).toMatchObject({ cause, message: expect.stringContaining('/api/status') })
})

test('a cancelled call rejects with the reason and is not retried', async () => {
  const cancel = new AbortController()
  const { hopcode, requests } = setUp([], {
    fetch: async () => {
      requests.push({ url: '', init: {} })
      cancel.abort(new Error('changed my mind'))
      throw cancel.signal.reason
    },
  })
  const failure = await failureOf(hopcode.status({ signal: cancel.signal }))
  expect(failure).toBe(cancel.signal.reason)
  expect(requests).toHaveLength(1)
  expect(await failureOf(hopcode.status({ signal: cancel.signal }))).toBe(cancel.signal.reason)
  expect(requests).toHaveLength(1)
})

test('a call is cancelled while it waits for its retry', async () => {
  const cancel = new AbortController()
  const hopcode = new Hopcode({
    url: 'https://hop.example',
    fetch: async () => {
      setTimeout(() => cancel.abort(new Error('changed my mind')))
      return json(429, {}, { 'retry-after': '3600' })
    },
  })
  expect(await failureOf(hopcode.status({ signal: cancel.signal }))).toBe(cancel.signal.reason)
})

test('an attempt without an answer ends after timeoutMs', async () => {
  const hang = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  const { hopcode } = setUp([], { fetch: hang, timeoutMs: 1, retriesMax: 1 })
  expect(await failureOf(hopcode.status())).toBeInstanceOf(HopcodeNetworkError)
})

test('all pages of a list follow one another', async () => {
  const page = (from: number, count: number) => () =>
    json(200, { total: 250, items: Array.from({ length: count }, (_, i) => ({ code: from + i })) })
  const { hopcode, requests } = setUp([page(0, 200), page(200, 50)])
  const codes: unknown[] = []
  for await (const { code } of hopcode.listAll({ search: 'x' })) codes.push(code)
  expect(codes).toEqual(Array.from({ length: 250 }, (_, i) => i))
  expect(requests.map(({ url }) => new URL(url).search)).toEqual([
    '?limit=200&offset=0&search=x',
    '?limit=200&offset=200&search=x',
  ])
})

test.each(['ftp://hop.example', 'hop.example', ''])('%j is no address of a service', (url) => {
  expect(() => new Hopcode({ url })).toThrow(TypeError)
})
