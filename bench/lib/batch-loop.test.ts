import { expect, test } from 'bun:test'
import { batchLoop } from './batch-loop.ts'
import { Histogram } from './histogram.ts'
import { openBatches } from './open-batches.ts'
import type { Target } from './raw-client.ts'

const TARGETS: Target[] = ['/a', '/b', '/c'].map((path) => ({
  path,
  status: 302,
  location: `https://example.com${path}`,
}))

/** A server that counts what it serves of each path. */
function serveCounted(answer: (path: string) => Response = redirect) {
  const served = new Map<string, number>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const { pathname } = new URL(url)
      served.set(pathname, (served.get(pathname) ?? 0) + 1)
      return answer(pathname)
    },
  })
  const counts = () => TARGETS.map(({ path }) => served.get(path) ?? 0)
  return { port: server.port ?? 0, counts, [Symbol.dispose]: () => void server.stop(true) }
}

const redirect = (path: string) =>
  new Response(null, { status: 302, headers: { Location: `https://example.com${path}` } })

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

test('batches count exactly what each of two servers has served, and the servers have turns', async () => {
  using one = serveCounted()
  using two = serveCounted()
  const { figures, cpuSeconds } = await batchLoop({
    hostname: '127.0.0.1',
    servers: [one, two].map(({ port }) => ({ port, targets: TARGETS })),
    connections: 2,
    pipelineDepth: 7,
    seconds: 0.4,
    sliceSeconds: 0.05,
  })
  expect(figures.map(({ requests }) => requests)).toEqual([sum(one.counts()), sum(two.counts())])
  for (const { requests, seconds, latency } of figures) {
    expect(requests % 7).toBe(0)
    expect(seconds).toBeGreaterThanOrEqual(0.2)
    expect(latency.count).toBe(requests / 7)
  }
  expect(cpuSeconds).toBeGreaterThan(0)
})

test('batches end after a number of requests, however fast the server is', async () => {
  using server = serveCounted()
  const { figures } = await batchLoop({
    hostname: '127.0.0.1',
    servers: [{ port: server.port, targets: TARGETS }],
    connections: 3,
    pipelineDepth: 5,
    seconds: 30,
    sliceSeconds: 30,
    requestsMax: 42,
  })
  expect(figures[0]?.requests).toBe(45)
  expect(sum(server.counts())).toBe(45)
})

test('an open loop of batches sends every request that falls due, target by target', async () => {
  using server = serveCounted()
  const load = { hostname: '127.0.0.1', targets: TARGETS, ratePerSecond: 1000, seconds: 0.2 }
  const { result } = await openBatches({ ...load, port: server.port, connections: 4 })
  // The first second is not timed.
  expect(result.byTarget).toEqual([400, 400, 400])
  expect(server.counts()).toEqual(result.byTarget)
  expect(Histogram.fromJson(result.latency).count).toBe(200)
})

test('a stall of the server shows in every request that fell due meanwhile', async () => {
  const stallMs = 200
  let count = 0
  using server = serveCounted((path) => {
    count += 1
    // The whole server waits: Bun ends a connection that sends more while one response is awaited.
    if (count === 1100) Bun.sleepSync(stallMs)
    return redirect(path)
  })
  const load = { hostname: '127.0.0.1', targets: TARGETS, ratePerSecond: 1000, seconds: 0.5 }
  const { result } = await openBatches({ ...load, port: server.port, connections: 1 })
  // Of 500 requests, the 100 due in the first half of the stall waited for its second half.
  const latency = Histogram.fromJson(result.latency)
  expect(latency.percentile(81)).toBeGreaterThan((stallMs / 2) * 1e6 * 0.98)
  expect(latency.max).toBeGreaterThan(stallMs * 1e6 * 0.98)
})

test('a redirect to another URL is no answer', async () => {
  using server = serveCounted(() => redirect('/elsewhere'))
  const { port } = server
  const load = { hostname: '127.0.0.1', seconds: 0.1, connections: 1 }
  const servers = [{ port, targets: TARGETS }]
  const loads = [
    openBatches({ ...load, port, targets: TARGETS, ratePerSecond: 100 }),
    batchLoop({ ...load, servers, pipelineDepth: 1, sliceSeconds: 0.1 }),
  ]
  const outcomes = await Promise.allSettled(loads)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
}, 60_000)
