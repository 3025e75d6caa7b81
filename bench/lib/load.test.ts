import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CERTIFIED_NAME, createCertificate } from '../../test/support/certificates.ts'
import { testWith } from '../../test/support/tools.ts'
import { TemporaryFolder } from './leftovers.ts'
import {
  type ClosedLoad,
  generateLoad,
  generateLoads,
  type LoadedServer,
  type OpenLoad,
  requireFaultless,
} from './load.ts'
import { isInstalled } from './machine.ts'
import type { Target } from './request.ts'
import { wrkLoad } from './wrk.ts'

const TARGETS: Target[] = ['/a', '/b', '/c'].map((path) => ({
  path,
  status: 302,
  location: `https://example.com${path}`,
}))
/** A hundred requests within a tenth of a second. */
const BRIEF = { ratePerSecond: 1000, seconds: 0.1, connections: 4 }

const redirect = (path: string) =>
  new Response(null, { status: 302, headers: { Location: `https://example.com${path}` } })

/** A server that notes the paths of requests. */
function serve(answer: (path: string) => Response | Promise<Response> = redirect) {
  const paths: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const { pathname } = new URL(url)
      paths.push(pathname)
      return answer(pathname)
    },
  })
  const counts = () => TARGETS.map(({ path }) => paths.filter((other) => other === path).length)
  return { port: server.port ?? 0, paths, counts, [Symbol.dispose]: () => void server.stop(true) }
}

/** A server that sends the pieces for each request, and ends the connection after `last`. */
function serveRaw(pieces: readonly string[], last = Number.POSITIVE_INFINITY, stops = false) {
  let count = 0
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      async data(socket) {
        count += 1
        if (count === last) return void (stops ? listener.stop(true) : socket.end())
        for (const piece of pieces) {
          socket.write(piece)
          socket.flush()
          if (pieces.length > 1) await Bun.sleep(1)
        }
      },
    },
  })
  return { port: listener.port, [Symbol.dispose]: () => void listener.stop(true) }
}

const load = ({ port }: { port: number }, load: ClosedLoad | OpenLoad, targets = TARGETS) =>
  generateLoad({ port, targets }, load)
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

test('a closed loop counts exactly what the server served, target by target in turn', async () => {
  using server = serve()
  const result = await load(server, { connections: 8, seconds: 0.2 })
  requireFaultless(result, 'the load')
  expect(result.rightByTarget).toEqual(server.counts())
  expect(result.answered).toBe(server.paths.length)
  expect(Math.max(...server.counts()) - Math.min(...server.counts())).toBeLessThanOrEqual(1)
  expect(result.latency.p50).toBeGreaterThan(0)
  expect(result.cpuSeconds).toBeGreaterThan(0)
})

const wrongAnswers = [
  { name: 'another status', answer: () => new Response('', { status: 429 }), first: '429' },
  { name: 'another Location', answer: () => redirect('/elsewhere'), first: '302 https://exam' },
  { name: 'no Location', answer: () => new Response(null, { status: 302 }), first: '302 without' },
]
test.each(wrongAnswers)('a wrong answer is never taken for a right one: $name', async (wrong) => {
  using server = serve(wrong.answer)
  for (const kind of [BRIEF, { connections: 4, seconds: 0.1 }]) {
    const result = await load(server, kind)
    expect(result.wrong).toBe(result.answered)
    expect(sum(result.rightByTarget)).toBe(0)
    expect(() => requireFaultless(result, 'the load')).toThrow(`/a: ${wrong.first}`)
  }
})

test('a body of another length than the right one is a failure', async () => {
  using server = serve(() => new Response('12'))
  const target = (bodyBytes: number): Target => ({ path: '/a', status: 200, bodyBytes })
  expect((await load(server, BRIEF, [target(2)])).wrong).toBe(0)
  expect((await load(server, BRIEF, [target(3)])).wrong).toBe(100)
})

const generators = [
  { name: 'our generator', generate: generateLoad },
  ...(isInstalled('wrk') ? [{ name: 'wrk', generate: wrkLoad }] : []),
]
const NOT_FOUND = { connections: 1, seconds: 0.5 }

test.each(generators)('$name numbers its requests from the first on', async ({ generate }) => {
  using server = serve(() => new Response(null, { status: 404 }))
  const targets = [{ path: '/a{number}', status: 404 }]
  const result = await generate({ ...server, targets }, { ...NOT_FOUND, firstNumber: 41 })
  expect(server.paths.slice(0, 3)).toEqual(['/a00000041', '/a00000042', '/a00000043'])
  expect(result.wrong).toBe(0)
})

test.each(generators)('$name takes texts in turn, from the first again', async ({ generate }) => {
  using folder = new TemporaryFolder()
  using server = serve(() => new Response(null, { status: 404 }))
  const textsFile = join(folder.path, 'texts')
  writeFileSync(textsFile, 'AAAAAAAABBBBBBBBCCCCCCCC')
  const targets = [{ path: '/{number}', textsFile, status: 404 }]
  await generate({ ...server, targets }, { ...NOT_FOUND, firstNumber: 1 })
  expect(server.paths.slice(0, 4)).toEqual(['/BBBBBBBB', '/CCCCCCCC', '/AAAAAAAA', '/BBBBBBBB'])
})

test.each(generators)('$name tells a 404 from another refusal', async ({ generate }) => {
  using server = serve(() => new Response(null, { status: 404 }))
  const result = await generate({ ...server, targets: [{ path: '/a', status: 429 }] }, NOT_FOUND)
  expect(result.wrong).toBe(result.answered)
  expect(result.answered).toBeGreaterThan(0)
})

testWith('wrk')('wrk counts all but the last request of each connection', async () => {
  using server = serve()
  const result = await wrkLoad({ ...server, targets: TARGETS }, { connections: 8, seconds: 1 })
  expect(result.wrong).toBe(0)
  expect(result.answered).toBeLessThanOrEqual(server.paths.length)
  expect(result.answered).toBeGreaterThanOrEqual(server.paths.length - 8)
})

test('batches count exactly what each of two servers has served, in time slices', async () => {
  using one = serve()
  using two = serve()
  const servers = [one, two].map(({ port }): LoadedServer => ({ port, targets: TARGETS }))
  const slices = { connections: 2, batch: 3, seconds: 0.4, sliceSeconds: 0.05 }
  const results = await generateLoads(servers, slices)
  expect(results.map(({ answered }) => answered)).toEqual([one, two].map((s) => s.paths.length))
  for (const result of results) {
    requireFaultless(result, 'the load')
    expect(result.answered % 3).toBe(0)
    expect(result.seconds).toBeGreaterThanOrEqual(0.2)
  }
})

test('a closed loop ends after a number of requests, however fast the server is', async () => {
  using server = serve()
  const limited = { connections: 3, batch: 3, seconds: 30, requestsMax: 40 }
  expect((await load(server, limited)).answered).toBe(42)
  expect(server.paths).toHaveLength(42)
})

test('an open loop sends every request that falls due, target by target', async () => {
  using server = serve()
  const result = await load(server, BRIEF)
  requireFaultless(result, 'the load')
  expect(result.rightByTarget).toEqual([34, 33, 33])
  expect(server.counts()).toEqual([34, 33, 33])
})

test('an open loop of batches does too, and leaves out what is not timed', async () => {
  using server = serve()
  const batches = { batch: 3, sleepMs: 0.5, untimedSeconds: 0.2 }
  const result = await load(server, { ...BRIEF, ...batches })
  requireFaultless(result, 'the load')
  expect(result.rightByTarget).toEqual([100, 100, 100])
  expect(server.counts()).toEqual([100, 100, 100])
})

test.each([1, 3])('a stall shows in all requests due meanwhile, batches of %d', async (batch) => {
  const stallMs = 200
  let count = 0
  using server = serve((path) => {
    count += 1
    // The whole server waits: Bun ends a connection that sends more while one response is awaited.
    if (count === 50) Bun.sleepSync(stallMs)
    return redirect(path)
  })
  const result = await load(server, { ...BRIEF, connections: 1, seconds: 0.5, batch })
  expect(result.answered).toBe(500)
  // Of 500 requests, the 100 due in the first half of the stall waited for its second half.
  expect(result.latency.p99).toBeGreaterThan((stallMs / 2) * 1000 * 0.98)
  expect(result.latency.max).toBeGreaterThan(stallMs * 1000 * 0.98)
})

test('a batch whose last redirect leads to another URL is not answered', async () => {
  using server = serve(() => redirect('/elsewhere'))
  const batches = { connections: 1, batch: 3, seconds: 0.1, drainSeconds: 0.1 }
  for (const kind of [batches, { ...batches, ratePerSecond: 5000 }]) {
    const result = await load(server, kind)
    expect(() => requireFaultless(result, 'the load')).toThrow(Error)
  }
})

test('a server that falls behind by more than the backlog ends the run', async () => {
  using server = serve(() => new Promise<Response>(() => {}))
  const open = { connections: 1, ratePerSecond: 1000, seconds: 60, backlogMax: 20 }
  const result = await load(server, { ...open, drainSeconds: 0.01 })
  expect(result).toMatchObject({ answered: 0, unanswered: 1 })
  expect(result.unsent).toBeGreaterThan(20)
  expect(() => requireFaultless(result, 'the load')).toThrow('it cannot keep up')
})

const RAW = `HTTP/1.1 302 Found\r\nLocation: https://example.com/a\r\nContent-Length: 0\r\n\r\n`
const CHUNKED =
  'HTTP/1.1 302 Found\r\nTransfer-Encoding: chunked\r\nLocation: https://example.com/a'
const HOME = TARGETS.slice(0, 1)

test('a broken connection is counted as lost and replaced', async () => {
  using server = serveRaw([RAW], 10)
  const result = await load(server, { ...BRIEF, connections: 1 }, HOME)
  expect(result).toMatchObject({ answered: 99, lost: 1, wrong: 0, unsent: 0 })
  expect(result.firstFault).toBe('the server closed the connection')
})

test('requests that a dead server could not be sent are no faultless run', async () => {
  using server = serveRaw([RAW], 10, true)
  const result = await load(server, { ...BRIEF, connections: 1, drainSeconds: 0.01 }, HOME)
  expect(result).toMatchObject({ answered: 9, lost: 1, unsent: 90 })
  expect(() => requireFaultless(result, 'the load')).toThrow('90 unsent of 100 requests')
})

test.each([
  ['a head in two pieces', [RAW.slice(0, 40), RAW.slice(40)]],
  ['a body in three', [RAW.replace(': 0', ': 5'), '123', '45']],
  ['chunks', [CHUNKED, '\r\n\r\n5\r\nhello\r\n0\r', '\n\r\n']],
])('%s: the response is complete at its end', async (_, pieces) => {
  using server = serveRaw(pieces)
  const one = { connections: 1, seconds: 5, requestsMax: 3 }
  const result = await load(server, one, HOME)
  requireFaultless(result, 'the load')
  expect(result.answered).toBe(3)
})

test.each([
  ['another protocol', 'SSH-2.0-x\r\n\r\n'],
  ['a body without an end', 'HTTP/1.1 200 OK\r\n\r\n'],
  ['bytes after the end', `${RAW}H`],
])('%s is a fault', async (_, text) => {
  using server = serveRaw([text])
  const result = await load(server, { connections: 1, seconds: 5, requestsMax: 1 }, HOME)
  expect(result.lost).toBe(1)
})

/** Notes who ended each connection: the server does after `Connection: close`. */
function serveConnections() {
  const ends: string[] = []
  const listener = Bun.listen<{ isUsed: boolean; isOurs: boolean }>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { isUsed: false, isOurs: false }
      },
      data(socket, bytes) {
        socket.write(RAW)
        socket.data.isUsed = true
        socket.data.isOurs = bytes.includes('Connection: close')
        if (socket.data.isOurs) socket.end()
      },
      close(socket) {
        // Connections for requests beyond the last are closed unused.
        if (socket.data.isUsed) ends.push(socket.data.isOurs ? 'server closes' : 'visitor closes')
      },
    },
  })
  return { port: listener.port, ends, [Symbol.dispose]: () => void listener.stop(true) }
}

test.each(['server closes', 'visitor closes'] as const)(
  'one connection for each request: the %s',
  async (use) => {
    using server = serveConnections()
    const result = await load(server, { use, connections: 3, seconds: 5, requestsMax: 30 }, HOME)
    requireFaultless(result, 'the load')
    expect(result.answered).toBe(30)
    expect(server.ends.filter((end) => end === use).length).toBeGreaterThanOrEqual(27)
    expect(new Set(server.ends)).toEqual(new Set([use]))
  },
)

test('connections that cannot be opened are lost requests', async () => {
  const gone = serveRaw([RAW])
  gone[Symbol.dispose]()
  const use = 'visitor closes'
  const result = await load(gone, { use, connections: 2, seconds: 5, requestsMax: 3 }, HOME)
  expect(result.answered).toBe(0)
  expect(result.lost).toBeGreaterThan(0)
})

testWith('openssl')(
  'TLS sessions are resumed if that is asked for, and another authority is refused',
  async () => {
    using folder = new TemporaryFolder()
    const { certificate, key, authority } = createCertificate(folder.path)
    const [cert, ca] = [certificate, authority].map((file) => readFileSync(file, 'utf8'))
    using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      tls: { cert: cert ?? '', key: readFileSync(key, 'utf8') },
      fetch: () => redirect('/a'),
    })
    const closed: ClosedLoad = {
      use: 'visitor closes',
      connections: 2,
      seconds: 5,
      requestsMax: 20,
    }
    const loadTls = (resumes: boolean, trusted = ca ?? '') =>
      generateLoad(
        {
          port: server.port ?? 0,
          targets: HOME,
          remote: {
            address: '127.0.0.1',
            host: CERTIFIED_NAME,
            tls: { serverName: CERTIFIED_NAME, ca: trusted, resumes },
          },
        },
        closed,
      )
    const resumed = await loadTls(true)
    requireFaultless(resumed, 'the load')
    expect(resumed.resumed).toBeGreaterThanOrEqual(10)
    expect(await loadTls(false)).toMatchObject({ answered: 20, resumed: 0 })
    const other = createCertificate(folder.path)
    const untrusted = await loadTls(false, readFileSync(other.authority, 'utf8'))
    expect(untrusted.answered).toBe(0)
    expect(untrusted.lost).toBeGreaterThan(0)
  },
)
