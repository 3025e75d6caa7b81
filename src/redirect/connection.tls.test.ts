import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { eventually } from '../../test/support/app.ts'
import { createCertificate } from '../../test/support/certificates.ts'
import { FOLLOW, head, opened, serve } from '../../test/support/connections.ts'
import { temporaryFolder } from '../../test/support/folder.ts'
import { HOSTS, openTls } from '../../test/support/https.ts'
import { type HandshakeResult, listenForTls } from './connection.ts'

/** Connections with TLS of one redirect thread. */

const SECOND = 1000

function serveTls(...args: Parameters<typeof serve>) {
  const served = serve(...args)
  const folder = temporaryFolder()
  const files = createCertificate(folder.path, HOSTS)
  const pair = {
    cert: readFileSync(files.certificate, 'utf8'),
    key: readFileSync(files.key, 'utf8'),
  }
  const ca = readFileSync(files.authority, 'utf8')
  folder[Symbol.dispose]()
  const results: HandshakeResult[] = []
  const tls = {
    pair: pair as typeof pair | undefined,
    count: (one: HandshakeResult) => void results.push(one),
  }
  const listener = listenForTls({ hostname: '127.0.0.1', port: 0 }, served.context, tls)
  opened.push(() => listener.stop(true))
  const port = listener.port
  return { ...served, tls, ca, results, port, url: `https://127.0.0.1:${port}` }
}

/** A connection without TLS to a port, and whether the service has closed it. */
async function raw(port: number, bytes: Uint8Array = new Uint8Array()) {
  const socket = connectTcp({ host: '127.0.0.1', port })
  const state = { socket, isClosed: false, received: 0 }
  socket.on('close', () => (state.isClosed = true))
  socket.on('error', () => {})
  socket.on('data', (some) => (state.received += some.length))
  await new Promise((resolve) => socket.once('connect', resolve))
  if (bytes.length > 0) socket.write(bytes)
  opened.push(() => socket.destroy())
  return state
}

/** What a tick of the thread does with connections. */
function tickAt(context: ReturnType<typeof serve>['context'], now: number): void {
  context.now = now
  for (const connection of context.limits.connections) {
    if (connection.isOverdue) connection.expire()
  }
}

test('connections in a handshake are counted from the beginning, and closed after 10 s', async () => {
  const { context, port, results } = serveTls(() => new Response())
  const start = Uint8Array.of(22, 3, 1)
  const stalled = await Promise.all([raw(port), raw(port, start), raw(port, start)])
  await eventually('all are counted', () => context.limits.connections.size === 3)
  stalled[2]?.socket.write(Uint8Array.of(2))
  tickAt(context, 10 * SECOND)
  expect(context.limits.connections.size).toBe(3)
  stalled[2]?.socket.write(Uint8Array.of(0))
  tickAt(context, 12 * SECOND)
  await eventually('all are closed', () => stalled.every(({ isClosed }) => isClosed))
  expect(context.limits.connections.size).toBe(0)
  expect(results).toEqual(['timeout', 'timeout', 'timeout'])
})

test('the address with most connections yields first, also in handshakes', async () => {
  const limits = { connectionsMax: 4, upstreamsMax: 2, bytesMax: 1024 * 1024 }
  const { context, port } = serveTls(() => new Response(), { limits })
  const mine: Socket[] = []
  for (const localAddress of ['127.0.0.1', ...Array(6).fill('127.0.0.2')]) {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress })
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('connect', resolve))
    opened.push(() => socket.destroy())
    mine.push(socket)
  }
  await eventually('some are closed', () => context.limits.connections.size === 4)
  const addresses = [...context.limits.connections].map(({ peer }) => peer)
  expect(addresses.filter((one) => one === '127.0.0.1')).toHaveLength(1)
})

test('a client that leaves in its handshake, or sends no TLS, is a failed handshake', async () => {
  const { context, port, results } = serveTls(() => new Response())
  const leaving = await raw(port)
  await eventually('it is counted', () => context.limits.connections.size === 1)
  leaving.socket.destroy()
  await eventually('it is gone', () => context.limits.connections.size === 0)
  const clear = await raw(port, Buffer.from(FOLLOW))
  await eventually('it is closed', () => clear.isClosed)
  await eventually('both are counted', () => results.length === 2)
  expect(results).toEqual(['failed', 'failed'])
  expect(context.limits.connections.size).toBe(0)
})

test('without a certificate connections are closed at once', async () => {
  const { context, port, tls } = serveTls(() => new Response())
  tls.pair = undefined
  const client = await raw(port)
  await eventually('it is closed', () => client.isClosed)
  expect(client.received).toBe(0)
  expect(context.limits.connections.size).toBe(0)
})

test('60,000 pipelined requests of a client that reads late are all answered', async () => {
  const { url, ca, followed } = serveTls(() => new Response())
  using client = await openTls(url, ca)
  const count = 60_000
  let answers = 0
  let rest = ''
  client.socket.pause()
  client.socket.write(FOLLOW.repeat(count))
  await eventually('the service waits', () => followed.length > 0)
  client.socket.on('data', (bytes) => {
    const text = rest + bytes.toString('latin1')
    answers += text.split('\r\n\r\n').length - 1
    rest = text.slice(text.lastIndexOf('\r\n\r\n') + 4)
  })
  client.socket.resume()
  await eventually('all are answered', () => answers === count)
  expect(followed).toHaveLength(count)
})

test('a client that ends its half still gets the answers to its requests for links', async () => {
  const { url, ca } = serveTls(() => new Response())
  using client = await openTls(url, ca)
  let text = ''
  client.socket.on('data', (bytes) => {
    text += bytes
  })
  client.socket.end(FOLLOW.repeat(100))
  await new Promise((resolve) => client.socket.on('end', resolve))
  expect(text.match(/^HTTP\/1.1 302 Found/gm)).toHaveLength(100)
})

test('a body of 15 MiB arrives whole in both directions', async () => {
  const { url, ca } = serveTls(async (request) => new Response(await request.text()))
  using client = await openTls(url, ca)
  const body = 'x'.repeat(15 * 1024 * 1024)
  let received = 0
  client.socket.on('data', (bytes) => {
    received += bytes.length
  })
  client.socket.write(`${head('POST /other', `Content-Length: ${body.length}`)}${body}`)
  await eventually('all is received', () => received > body.length)
})

test('a handshake is counted once, with any name or none', async () => {
  const { url, ca, results, context } = serveTls(() => new Response())
  for (const servername of ['go.example', 'go2.example', '']) {
    using client = await openTls(url, ca, { servername })
    const answer = Promise.withResolvers<string>()
    client.socket.on('data', (bytes) => answer.resolve(String(bytes)))
    client.socket.write(FOLLOW)
    expect(await answer.promise).toStartWith('HTTP/1.1 302 Found')
  }
  await eventually('all are gone', () => context.limits.connections.size === 0)
  expect(results).toEqual(['ok', 'ok', 'ok'])
})

test('a certificate that is replaced is that of the next connection, and none is lost', async () => {
  const { url, ca, tls } = serveTls(() => new Response())
  using kept = await openTls(url, ca)
  const other = serveTls(() => new Response())
  const before = kept.socket.getPeerCertificate().serialNumber
  tls.pair = other.tls.pair
  using next = await openTls(url, ca + other.ca)
  expect(next.socket.getPeerCertificate().serialNumber).not.toBe(before)
  const answer = Promise.withResolvers<string>()
  kept.socket.on('data', (bytes) => answer.resolve(String(bytes)))
  kept.socket.write(FOLLOW)
  expect(await answer.promise).toStartWith('HTTP/1.1 302 Found')
})
