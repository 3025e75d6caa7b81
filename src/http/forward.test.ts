import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../test/support/app.ts'
import { peerOf } from './context.ts'
import { Forwarder } from './forward.ts'
import { ForwardedRequests, STREAMED } from './forwarded.ts'

const MIB = 1024 * 1024

const opened: Disposable[] = []
afterEach(() => {
  for (const server of opened.splice(0)) server[Symbol.dispose]()
})

/** A server whose every request is answered by `answer`, on the other end of a port. */
function serve(answer: (request: Request) => Response | Promise<Response>) {
  const { port1, port2 } = new MessageChannel()
  const errors: unknown[] = []
  const forwarded = new ForwardedRequests(port1, {
    answer,
    onNote: () => {},
    log: { error: (_event, _fields, cause) => errors.push(cause) },
  })
  const forwarder = new Forwarder(port2)
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, to) => forwarder.forward(request, to),
  })
  const close = () => {
    void server.stop(true)
    port1.close()
    port2.close()
  }
  opened.push({ [Symbol.dispose]: close })
  return { url: server.url.href, forwarder, forwarded, errors }
}

test('a request arrives with its method, path, query, headers, body and client', async () => {
  const { url } = serve(async (request) =>
    Response.json({
      method: request.method,
      path: request.url.slice(new URL(request.url).origin.length),
      type: request.headers.get('content-type'),
      peer: peerOf(request),
      body: await request.text(),
    }),
  )
  const answer = await fetch(`${url}a/b?c=%20d&e=f`, {
    method: 'PATCH',
    body: 'text',
    headers: { 'content-type': 'text/plain' },
  })
  expect(await answer.json()).toEqual({
    method: 'PATCH',
    path: '/a/b?c=%20d&e=f',
    type: 'text/plain',
    peer: '127.0.0.1',
    body: 'text',
  })
})

test.each([
  ['a body', new Response('text', { status: 201 })],
  [
    'several cookies',
    new Response('', {
      headers: [
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
      ],
    }),
  ],
  ['no body', new Response(null, { status: 204 })],
  ['a redirect', new Response(null, { status: 303, headers: { location: '/elsewhere' } })],
  [
    'compressed bytes',
    new Response(Bun.gzipSync('text'), { headers: { 'content-encoding': 'gzip' } }),
  ],
])('a response with %s arrives as it is', async (_, response) => {
  const { status } = response
  const headers = [...response.headers]
  const bytes = await response.clone().bytes()
  const { url } = serve(() => response)
  const answer = await fetch(url, { redirect: 'manual', decompress: false })
  expect(answer.status).toBe(status)
  expect([...answer.headers]).toEqual(expect.arrayContaining(headers))
  expect(await answer.bytes()).toEqual(bytes)
})

test('long bodies arrive whole in both directions, with and without a length', async () => {
  const sent = crypto.getRandomValues(new Uint8Array(60_000))
  const body = Buffer.concat(Array.from({ length: 100 }, () => sent))
  const { url } = serve(async (request) => {
    const stream = new Response(await request.bytes()).body
    return new Response(stream, { headers: { [STREAMED]: '1' } })
  })
  for (const form of [body, new Blob([body]).stream()]) {
    const answer = await fetch(url, { method: 'POST', body: form })
    expect(answer.headers.has(STREAMED)).toBe(false)
    expect(Buffer.from(await answer.bytes()).equals(body)).toBe(true)
  }
})

test('a response is produced at the pace of its reader, and ends when the client is gone', async () => {
  let produced = 0
  let isCanceled = false
  const { url, forwarder } = serve(() => {
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          produced += MIB
          controller.enqueue(new Uint8Array(MIB))
        },
        cancel: () => {
          isCanceled = true
        },
      },
      { highWaterMark: 0 },
    )
    return new Response(body, { headers: { [STREAMED]: '1' } })
  })
  const client = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: { data: (socket) => socket.pause() },
  })
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the body begins', () => produced > 0)
  let before = -1
  await eventually('the body stops', async () => {
    const isSame = produced === before
    before = produced
    await Bun.sleep(100)
    return isSame
  })
  expect(produced).toBeLessThan(64 * MIB)
  client.terminate()
  await eventually('the body is canceled', () => isCanceled)
  expect(forwarder.pending).toBe(0)
})

test('a body that the handler does not read is not read from the client', async () => {
  const { url } = serve(() => new Response('refused', { status: 413 }))
  const answer = await fetch(url, { method: 'POST', body: new Uint8Array(5 * MIB) })
  expect([answer.status, await answer.text()]).toEqual([413, 'refused'])
})

test('a body that its client cuts off fails for the handler', async () => {
  const outcomes: string[] = []
  const { url } = serve(async (request) => {
    await request.bytes().then(
      () => outcomes.push('whole'),
      () => outcomes.push('cut off'),
    )
    return new Response()
  })
  for (const length of [1000, 1_000_000]) {
    const client = await Bun.connect({
      hostname: '127.0.0.1',
      port: Number(new URL(url).port),
      socket: { data() {} },
    })
    client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\nbeginning`)
    await Bun.sleep(50)
    client.terminate()
  }
  await eventually('both have failed', () => outcomes.length === 2)
  expect(outcomes).toEqual(['cut off', 'cut off'])
})

test('the signal of a request is aborted when its client is gone, or its thread has ended', async () => {
  let aborted = 0
  let waiting = 0
  const { url, forwarded } = serve(async (request) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    request.signal.addEventListener('abort', () => {
      aborted++
      resolve()
    })
    waiting++
    await promise
    return new Response()
  })
  const client = new AbortController()
  const call = fetch(url, { signal: client.signal }).catch(() => 'gone')
  await eventually('it waits', () => waiting === 1)
  client.abort()
  expect(await call).toBe('gone')
  await eventually('it is aborted', () => aborted === 1)
  fetch(url).catch(() => {})
  await eventually('another waits', () => waiting === 2)
  forwarded.close()
  await eventually('it is aborted too', () => aborted === 2)
})

test.each(['/%', '/%zz?a=%', '/%E0%A4%A'])(
  '%s reaches the handler as a path that it can decode',
  async (path) => {
    const { url } = serve((request) => {
      const { pathname } = new URL(request.url)
      return new Response(decodeURIComponent(pathname))
    })
    const answer = await fetch(url.replace(/\/$/, '') + path)
    expect([answer.status, await answer.text()]).toEqual([200, path.replace(/\?.*/, '')])
  },
)

test('a handler that throws is a logged 500, and the next request is answered', async () => {
  let calls = 0
  const { url, errors } = serve(() => {
    if (++calls === 1) throw new Error('it failed')
    return new Response('text')
  })
  expect((await fetch(url)).status).toBe(500)
  expect(errors).toEqual([new Error('it failed')])
  expect(await (await fetch(url)).text()).toBe('text')
})
