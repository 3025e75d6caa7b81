import { expect, test } from 'bun:test'
import { Histogram } from './histogram.ts'
import { type OpenLoopOptions, openLoop } from './open-loop.ts'
import type { Target } from './raw-client.ts'
import { requireFaultless } from './tally.ts'

const LOCATION = 'https://example.com/'
const HOME: Target = { path: '/home', status: 302, location: LOCATION }

const RAW_REDIRECT = `HTTP/1.1 302 Found\r\nLocation: ${LOCATION}\r\nContent-Length: 0\r\n\r\n`

/** A hundred requests within a tenth of a second. */
const BRIEF = {
  hostname: '127.0.0.1',
  targets: [HOME],
  ratePerSecond: 1000,
  seconds: 0.1,
  connections: 4,
}

type Answer = (path: string, request: Request) => Response | Promise<Response>

const redirected = () => new Response(null, { status: 302, headers: { Location: LOCATION } })

async function load(answer: Answer, options: Partial<OpenLoopOptions>) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => answer(new URL(request.url).pathname, request),
  })
  try {
    return await openLoop({ ...BRIEF, port: server.port ?? 0, ...options })
  } finally {
    await server.stop(true)
  }
}

test('a stall of the server shows in every request that fell due meanwhile', async () => {
  const stallMs = 200
  let count = 0
  const stallsOnce = async () => {
    count += 1
    // The stall is what is measured: it lasts at least this long, however busy the machine.
    if (count === 50) await Bun.sleep(stallMs)
    return redirected()
  }
  const result = await load(stallsOnce, { connections: 1, seconds: 0.5 })
  requireFaultless(result, 'the load')
  expect(result.answered).toBe(500)
  // Of 500 requests, the 100 due in the first half of the stall waited for its second half.
  const latency = Histogram.fromJson(result.latency)
  expect(latency.count).toBe(500)
  expect(latency.percentile(81)).toBeGreaterThan((stallMs / 2) * 1e6 * 0.98)
  expect(latency.max).toBeGreaterThan(stallMs * 1e6 * 0.98)
})

test('every request that falls due is sent, target by target, and answered once', async () => {
  const paths: string[] = []
  const targets = ['/a', '/b', '/c'].map((path) => ({ ...HOME, path }))
  const result = await load(
    (path) => {
      paths.push(path)
      return redirected()
    },
    { targets },
  )
  expect(result).toMatchObject({
    sent: 100,
    answered: 100,
    byStatus: { 302: 100 },
    rightByTarget: [34, 33, 33],
    wrong: 0,
    lost: 0,
    unanswered: 0,
    unsent: 0,
    saturated: false,
  })
  expect(paths.filter((path) => path === '/b')).toHaveLength(33)
  expect(Histogram.fromJson(result.lateness).count).toBeGreaterThan(0)
})

const wrongAnswers: { name: string; answer: Answer; first: string }[] = [
  {
    name: 'another status',
    answer: () => new Response('', { status: 429, headers: { Location: LOCATION } }),
    first: `/home: 429 ${LOCATION}`,
  },
  {
    name: 'another Location',
    answer: () => new Response(null, { status: 302, headers: { Location: `${LOCATION}x` } }),
    first: `/home: 302 ${LOCATION}x`,
  },
  {
    name: 'no Location',
    answer: () => new Response(null, { status: 302 }),
    first: '/home: 302 without Location',
  },
]
test.each(wrongAnswers)('a wrong answer is never taken for a right one: $name', async (wrong) => {
  const result = await load(wrong.answer, {})
  expect(result).toMatchObject({
    answered: 100,
    wrong: 100,
    firstWrong: wrong.first,
    rightByTarget: [0],
  })
  expect(() => requireFaultless(result, 'the load')).toThrow(wrong.first)
})

test('a marked body is another one in each request', async () => {
  const urls = new Set<string>()
  const create: Target = {
    method: 'POST',
    path: '/api/shorten',
    headers: { 'Content-Type': 'application/json' },
    body: '{"url":"https://example.com/é/{number}"}',
    status: 201,
  }
  const answer: Answer = async (_, request) => {
    urls.add(((await request.json()) as { url: string }).url)
    return Response.json({}, { status: 201 })
  }
  requireFaultless(await load(answer, { targets: [create] }), 'the load')
  expect(urls.size).toBe(100)
  expect(urls).toContain('https://example.com/é/00000099')
})

test('a HEAD is answered without the body that its headers announce', async () => {
  const head: Target = { method: 'HEAD', path: '/home', status: 200 }
  requireFaultless(await load(() => new Response('0123456789'), { targets: [head] }), 'the load')
})

test('a server that falls behind by more than the backlog ends the run as saturated', async () => {
  const held = Promise.withResolvers<Response>()
  const result = await load(() => held.promise, {
    connections: 1,
    seconds: 60,
    backlogMax: 20,
    drainSeconds: 0.01,
  })
  expect(result).toMatchObject({ saturated: true, sent: 1, answered: 0, unanswered: 1 })
  expect(result.unsent).toBeGreaterThan(20)
  // Those that never came count with their age: leaving them out would flatter the server.
  expect(Histogram.fromJson(result.latency).count).toBe(1 + result.unsent)
  expect(() => requireFaultless(result, 'the load')).toThrow('1 unanswered')
})

test('a broken connection is counted as lost and replaced', async () => {
  let count = 0
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        count += 1
        if (count === 10) socket.end()
        else socket.write(RAW_REDIRECT)
      },
    },
  })
  try {
    const result = await openLoop({ ...BRIEF, port: listener.port, connections: 1 })
    expect(result).toMatchObject({ sent: 100, answered: 99, lost: 1, wrong: 0, unsent: 0 })
    expect(result.firstLost).toBe('the server closed the connection')
  } finally {
    listener.stop(true)
  }
})

test('requests that a dead server could not be sent are no faultless run', async () => {
  let count = 0
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        count += 1
        if (count < 10) socket.write(RAW_REDIRECT)
        else listener.stop(true)
      },
    },
  })
  const { port } = listener
  const result = await openLoop({ ...BRIEF, port, connections: 1, drainSeconds: 0.01 })
  expect(result).toMatchObject({ sent: 10, answered: 9, lost: 1, unsent: 90, saturated: false })
  expect(() => requireFaultless(result, 'the load')).toThrow('90 unsent of 100 requests')
})

test('a generator that rests sends every request all the same', async () => {
  const result = await load(redirected, { sleepMs: 1 })
  expect(result).toMatchObject({ sent: 100, answered: 100, wrong: 0, saturated: false })
})

test('a run without a target, or of more requests than the bound, is refused', async () => {
  expect(load(redirected, { targets: [] })).rejects.toThrow(RangeError)
  expect(load(redirected, { ratePerSecond: 1e6, seconds: 60 })).rejects.toThrow(RangeError)
})
