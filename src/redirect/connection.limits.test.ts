import { expect, test } from 'bun:test'
import { connect as connectSocket } from 'node:net'
import { eventually } from '../../test/support/app.ts'
import {
  BROKEN,
  connect,
  FOLLOW,
  head,
  LANDING,
  opened,
  serve,
} from '../../test/support/connections.ts'
import { release } from '../lib/release.ts'

const MIB = 1024 * 1024

test('an exception is answered with 500, and the requests around it are answered', async () => {
  const { url, failures } = serve(() => new Response())
  using client = await connect(url)
  // More than are answered in one tick: the last ones are read in a callback of their own.
  client.send(FOLLOW.repeat(100) + head(`GET /${BROKEN}`) + FOLLOW)
  const told = await client.answers(102)
  expect(told.slice(-2).map(({ status }) => status)).toEqual([500, 302])
  expect(JSON.parse(told[100]?.text ?? '')).toMatchObject({ request_id: 'id' })
  expect(failures.map(String)).toEqual(['Error: a bug'])
})

test('an exception elsewhere ends its connection alone, and is reported', async () => {
  const { url, context, failures } = serve(() => new Response())
  const { admit } = context.limits
  context.limits.admit = () => {
    throw new Error('another bug')
  }
  for (const before of ['', FOLLOW.repeat(100)]) {
    using client = await connect(url)
    client.send(before + head('GET /other'))
    await client.closed()
  }
  expect(failures.map(String)).toEqual(Array(2).fill('Error: another bug'))
  context.limits.admit = admit
  expect((await fetch(`${url}/other`)).status).toBe(200)
})

test('a client that leaves while its request waits is never connected to the control thread', async () => {
  let requests = 0
  const held = Promise.withResolvers<void>()
  const limits = { connectionsMax: 100, upstreamsMax: 2, bytesMax: MIB }
  const { url, context } = serve(
    async () => {
      requests++
      await held.promise
      return new Response('late')
    },
    { limits },
  )
  using first = await connect(url)
  using second = await connect(url)
  for (const client of [first, second]) client.send(head('GET /other'))
  await eventually('both are answered', () => requests === 2)
  const leaving = await connect(url)
  leaving.send(head('GET /gone'))
  using staying = await connect(url)
  staying.send(head('GET /last'))
  await eventually('four are open', () => context.limits.connections.size === 4)
  leaving[Symbol.dispose]()
  await eventually('one has left', () => context.limits.connections.size === 3)
  held.resolve()
  expect((await staying.answers(1))[0]?.text).toBe('late')
  expect(requests).toBe(3)
})

test('a request whose body comes while it waits is forwarded when it is complete', async () => {
  const limits = { connectionsMax: 100, upstreamsMax: 4, bytesMax: MIB }
  const { url, context } = serve(async (request) => new Response(await request.text()), { limits })
  const stalled = await Promise.all([0, 1, 2].map(() => connect(url)))
  for (const client of stalled) client.send(`${head('POST /', 'Content-Length: 10')}begin`)
  using client = await connect(url)
  client.send(head('POST /', 'Content-Length: 10'))
  await Bun.sleep(20)
  client.send('helloworld')
  expect((await client.answers(1))[0]?.text).toBe('helloworld')
  // The others still wait: none has made room by a timeout.
  expect(context.limits.connections.size).toBe(4)
  for (const each of stalled) each[Symbol.dispose]()
})

test('what is held for a client that reads nothing is counted, and not more than a little', async () => {
  const { url, context } = serve(() => new Response(), {
    location: `${LANDING}${'a'.repeat(8000)}`,
  })
  const clients = await Promise.all(
    Array.from({ length: 20 }, () =>
      Bun.connect({
        hostname: '127.0.0.1',
        port: Number(new URL(url).port),
        socket: { data: () => {} },
      }),
    ),
  )
  for (const client of clients) {
    client.pause()
    client.write(FOLLOW.repeat(2000))
  }
  let before = -1
  await eventually('all are blocked', async () => {
    const isSame = context.limits.bytes === before
    before = context.limits.bytes
    await Bun.sleep(100)
    return isSame
  })
  const requests = FOLLOW.length * 2000
  for (const { bytes } of context.limits.connections) {
    expect(bytes).toBeLessThanOrEqual(requests + 48 * 1024)
  }
  for (const client of clients) client.terminate()
  await eventually('all are closed', () => context.limits.connections.size === 0)
  expect(context.limits.bytes).toBe(0)
})

test('many connections with pipelined requests wait for each other, and another address for none', async () => {
  // A clock on which an answer takes half a millisecond.
  const { url, followed } = serve(() => new Response(), { monotonic: () => followed.length / 2 })
  const heavy = await Promise.all(Array.from({ length: 8 }, () => connect(url)))
  const from = { host: '127.0.0.1', port: Number(new URL(url).port), localAddress: '127.0.0.2' }
  const light = connectSocket(from)
  await new Promise((resolve) => light.on('connect', resolve))
  for (const client of heavy) client.send(FOLLOW.repeat(40))
  await heavy[0]?.answers(1)
  light.end(FOLLOW)
  await new Promise((resolve) => light.resume().on('close', resolve))
  for (const client of heavy) expect(await client.answers(40)).toHaveLength(40)
  expect(followed.indexOf('127.0.0.2')).toBeLessThan(8 * 20)
})

test.each([1, 100, 5000, 40_000])(
  'heads and bodies of %i bytes that arrive in one piece with requests for links are read whole',
  async (length) => {
    const { url, followed } = serve(async (request) => {
      const text = await request.text()
      return new Response(`${text.length} ${request.headers.get('x-end') ?? ''}`)
    })
    using client = await connect(url)
    const body = 'x'.repeat(length)
    const post = head('POST /other', `Content-Length: ${length}`, 'X-End: end') + body
    const many = FOLLOW.repeat(700)
    client.send(many + post)
    const told = await client.answers(701)
    expect(told[700]?.text).toBe(`${length} end`)
    expect(followed).toHaveLength(700)
  },
)

test('no two data events have the same buffer, of clients or of the control thread', async () => {
  const PIECE = 100_000
  const events: { bytes: Buffer; first: number }[] = []
  const data = (_: unknown, bytes: Buffer) => {
    events.push({ bytes, first: bytes[0] as number })
  }
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data } })
  opened.push(() => listener.stop(true))
  const echo = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data: () => {},
      open: (socket) => {
        socket.write(new Uint8Array(PIECE).fill(9))
      },
    },
  })
  opened.push(() => echo.stop(true))
  const clients = await Promise.all(
    Array.from({ length: 8 }, () =>
      Bun.connect({ hostname: '127.0.0.1', port: listener.port, socket: { data } }),
    ),
  )
  const links = Array.from({ length: 8 }, () =>
    Bun.connect({ hostname: '127.0.0.1', port: echo.port, socket: { data } }),
  )
  await Promise.all(links)
  for (const [i, client] of clients.entries()) client.write(new Uint8Array(PIECE).fill(i))
  const received = () => events.reduce((sum, { bytes }) => sum + bytes.length, 0)
  await eventually('everything is there', () => received() === 16 * PIECE)
  const large = events.filter(({ bytes }) => bytes.buffer.byteLength > Buffer.poolSize)
  expect(large.length).toBeGreaterThanOrEqual(16)
  expect(new Set(large.map(({ bytes }) => bytes.buffer)).size).toBe(large.length)
  for (const { bytes, first } of events) {
    expect(bytes.every((byte) => byte === first)).toBe(true)
    // Detaches this buffer, and must not detach those of the others.
    release(bytes)
  }
})
