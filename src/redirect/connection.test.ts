import { expect, test } from 'bun:test'
import { connect as connectSocket } from 'node:net'
import { eventually } from '../../test/support/app.ts'
import { CODE, connect, FOLLOW, head, LANDING, serve } from '../../test/support/connections.ts'
import { peerOf } from '../http/context.ts'
import type { Connection } from './connection.ts'

const MIB = 1024 * 1024

test('requests for links and others take turns on one connection, each with its own answer', async () => {
  const { url, followed, context } = serve((request) => new Response(new URL(request.url).pathname))
  using client = await connect(url)
  for (const [at, path] of ['/a', `/${CODE}`, '/b/c', `/${CODE}`, `/${CODE}`, '/d'].entries()) {
    client.send(head(`GET ${path}`))
    const told = (await client.answers(at + 1))[at]
    const isLink = path === `/${CODE}`
    expect([told?.status, told?.text]).toEqual(isLink ? [302, ''] : [200, path])
    expect(told?.headers.get('location')).toBe(isLink ? LANDING : null)
  }
  expect(followed).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1'])
  expect([...context.limits.connections].map(({ isIdle }) => isIdle)).toEqual([true])
})

test('after a body with a length and a response in chunks, links are followed again', async () => {
  const { url, followed } = serve(async (request) => {
    const text = await request.text()
    const parts = [text, text].map((part) => new TextEncoder().encode(part))
    return new Response(
      new ReadableStream({
        pull(controller) {
          const part = parts.shift()
          if (part === undefined) controller.close()
          else controller.enqueue(part)
        },
      }),
    )
  })
  using client = await connect(url)
  client.send(head('POST /', 'Content-Length: 10'))
  client.send('hello')
  await Bun.sleep(20)
  client.send('world')
  expect((await client.answers(1))[0]?.text).toBe('helloworldhelloworld')
  client.send(FOLLOW)
  expect((await client.answers(2))[1]?.status).toBe(302)
  expect(followed).toHaveLength(1)
})

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
  const answer = await fetch(`${url}/a/b?c=%20d&e=f`, {
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

const CLOSING = head('GET /other', 'Connection: close')

/** A control thread, and the clients of the requests that it has received. */
function servePeers() {
  const peers: string[] = []
  const { control, url } = serve((request) => {
    peers.push(peerOf(request))
    return new Response()
  })
  const isTaken = (port: number) => control.peers.findByPort(port) !== undefined
  const takenPort = () => Array.from({ length: 65_536 }, (_, port) => port).find(isTaken) as number
  /** Another program sends a request to the control thread. */
  const impersonate = async (from: { localAddress: string; localPort?: number }) => {
    const socket = connectSocket({ host: '127.0.0.1', port: control.port, ...from })
    socket.on('error', () => {}).write(CLOSING)
    await new Promise((resolve) => socket.resume().on('close', resolve))
  }
  return { peers, url, isTaken, takenPort, impersonate }
}

test('a request is known by the client of its connection, and by nothing else', async () => {
  const { peers, url, isTaken, takenPort, impersonate } = servePeers()
  using client = await connect(url)
  client.send(head('GET /other'))
  await client.answers(1)
  const localPort = takenPort()
  await impersonate({ localAddress: '127.0.0.2', localPort })
  await impersonate({ localAddress: '127.0.0.1' })
  expect(peers).toEqual(['127.0.0.1', '', ''])
  client[Symbol.dispose]()
  await eventually('its row is cleared', () => !isTaken(localPort))
})

test('another program with the port of a connection that has ended is not its client', async () => {
  const { peers, url, takenPort, impersonate } = servePeers()
  using client = await connect(url)
  client.send(head('GET /other'))
  await client.answers(1)
  const localPort = takenPort()
  client.send(CLOSING)
  await client.answers(2)
  await eventually('the port is free', async () => {
    await impersonate({ localAddress: '127.0.0.1', localPort })
    return peers.length > 2
  })
  expect(peers).toEqual(['127.0.0.1', '127.0.0.1', ''])
})

test('a head that arrives byte by byte is read like one that arrives at once', async () => {
  const { url, followed } = serve((request) => new Response(request.headers.get('x-a')))
  using client = await connect(url)
  for (const bytes of FOLLOW + head('GET /other', 'X-A: 1')) {
    client.send(bytes)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const told = await client.answers(2)
  expect(told.map(({ status }) => status)).toEqual([302, 200])
  expect([told[1]?.text, followed.length]).toEqual(['1', 1])
})

test('pipelined requests for links are answered in order, and others have their turn between', async () => {
  const { url, followed } = serve(() => new Response('other'))
  const count = 1000
  using client = await connect(url)
  client.send(FOLLOW.repeat(count))
  using other = await connect(url)
  other.send(FOLLOW)
  expect((await other.answers(1))[0]?.status).toBe(302)
  expect(await client.answers(count)).toHaveLength(count)
  expect(followed).toHaveLength(count + 1)
  client.send(FOLLOW + head('GET /other'))
  const told = await client.answers(count + 2)
  expect(told.slice(-2).map(({ status, text }) => [status, text])).toEqual([
    [302, ''],
    [200, 'other'],
  ])
})

test('a client that has sent its last request is answered before its connection is closed', async () => {
  const { url } = serve(() => new Response('other'))
  const count = 1000
  const client = connectSocket({ port: Number(new URL(url).port), allowHalfOpen: true })
  let text = ''
  client.on('data', (bytes) => {
    text += bytes
  })
  client.end(FOLLOW.repeat(count))
  await new Promise((resolve) => client.on('close', resolve))
  expect(text.split('302 Found')).toHaveLength(count + 1)
})

test('a client that reads nothing is read no further, and loses nothing', async () => {
  const { url, followed } = serve(() => new Response(), {
    location: `${LANDING}${'a'.repeat(8000)}`,
  })
  const count = 20_000
  let received = 0
  const client = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: {
      data: (_, bytes) => {
        received += bytes.length
      },
    },
  })
  client.pause()
  const bytes = Buffer.from(FOLLOW.repeat(count))
  let sent = client.write(bytes)
  await eventually('requests wait', async () => {
    const before = followed.length
    await Bun.sleep(100)
    return followed.length === before
  })
  expect(followed.length).toBeLessThan(count / 2)
  client.resume()
  await eventually('everything is answered', () => {
    if (sent < bytes.length) sent += Math.max(0, client.write(bytes.subarray(sent)))
    return followed.length === count && received > count * 8000
  })
  client.terminate()
})

test('long bodies arrive whole in both directions, with and without a length', async () => {
  const sent = crypto.getRandomValues(new Uint8Array(60_000))
  const body = Buffer.concat(Array.from({ length: 100 }, () => sent))
  const { url } = serve(async (request) => new Response(new Response(await request.bytes()).body))
  for (const form of [body, new Blob([body]).stream()]) {
    const answer = await fetch(url, { method: 'POST', body: form })
    expect(Buffer.from(await answer.bytes()).equals(body)).toBe(true)
  }
})

test('a response is produced at the pace of its reader, and ends when the client is gone', async () => {
  let produced = 0
  let isCanceled = false
  const { url, context } = serve(() => {
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
    return new Response(body)
  })
  const client = await Bun.connect({
    hostname: '127.0.0.1',
    port: Number(new URL(url).port),
    socket: { data: (socket) => socket.pause() },
  })
  client.write(head('GET /'))
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
  expect(context.limits.connections.size).toBe(0)
})

test('a body that the handler does not read does not delay its response', async () => {
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
    using client = await connect(url)
    client.send(`${head('POST /', `Content-Length: ${length}`)}beginning`)
    await Bun.sleep(50)
  }
  await eventually('both have failed', () => outcomes.length === 2)
  expect(outcomes).toEqual(['cut off', 'cut off'])
})

test('the signal of a request is aborted when its client is gone', async () => {
  let aborted = 0
  let waiting = 0
  const { url } = serve(async ({ signal }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => {
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
})

test.each(['/%', '/%zz?a=%', '/%E0%A4%A'])(
  '%s reaches the handler as a path that it can decode',
  async (path) => {
    const { url } = serve((request) => {
      const { pathname } = new URL(request.url)
      return new Response(decodeURIComponent(pathname))
    })
    const answer = await fetch(url + path)
    expect([answer.status, await answer.text()]).toEqual([200, path.replace(/\?.*/, '')])
  },
)

test('a handler that throws is a logged 500, and the next request is answered', async () => {
  let calls = 0
  const { url, lines } = serve(() => {
    if (++calls === 1) throw new Error('it failed')
    return new Response('text')
  })
  const answer = await fetch(url)
  expect([answer.status, await answer.text()]).toEqual([500, ''])
  expect(lines.join()).toContain('it failed')
  expect(await (await fetch(url)).text()).toBe('text')
})

test('the last request of a connection is answered before its end, during a stop too', async () => {
  const { url, context } = serve(() => new Response())
  using closing = await connect(url)
  closing.send(head(`GET /${CODE}`, 'Connection: close') + FOLLOW)
  expect((await closing.closed()).answers).toHaveLength(1)
  using half = await connect(url)
  half.send(FOLLOW)
  await half.answers(1)
  context.health = { isStopping: true }
  half.send(FOLLOW)
  expect((await half.closed()).answers).toHaveLength(2)
  await eventually('all are closed', () => context.limits.connections.size === 0)
})

test('a connection that was idle for 25 seconds can be used again', async () => {
  const { url, context } = serve((request) => new Response(new URL(request.url).pathname))
  using client = await connect(url)
  client.send(head('GET /before'))
  await client.answers(1)
  context.now += 25_000
  client.send(head('GET /after'))
  expect((await client.answers(2))[1]?.text).toBe('/after')
})

test('a connection is idle between requests, and not during one', async () => {
  const { promise, resolve } = Promise.withResolvers<Response>()
  const { url, context } = serve(() => promise)
  using client = await connect(url)
  client.send(FOLLOW)
  await client.answers(1)
  const [connection] = context.limits.connections as Set<Connection>
  const late = (ms: number) => {
    context.now += ms
    return connection?.isOverdue
  }
  expect([connection?.isIdle, late(29_000)]).toEqual([true, false])
  client.send(head('GET /other'))
  await eventually('it is busy', () => connection?.isIdle === false)
  expect(late(60_000)).toBe(false)
  resolve(new Response('late'))
  expect((await client.answers(2))[1]?.text).toBe('late')
  expect([connection?.isIdle, late(31_000)]).toEqual([true, true])
  client.send('GET /half')
  await eventually('half a head waits', () => connection?.isIdle === false)
  expect([late(29_000), late(2000)]).toEqual([false, true])
})

test('a client that stops sending a body is overdue after seconds', async () => {
  const { url, context } = serve(async (request) => new Response(await request.text()))
  using client = await connect(url)
  client.send(head('POST /', 'Content-Length: 10'))
  await eventually('it is forwarded', () => [...context.limits.connections][0]?.hasRequest === true)
  const [connection] = context.limits.connections as Set<Connection>
  context.now += 7000
  expect(connection?.isOverdue).toBe(false)
  client.send('hello')
  await eventually('it arrives', () => connection?.lastActive === context.now)
  context.now += 9000
  expect(connection?.isOverdue).toBe(true)
  client.send('world')
  expect((await client.answers(1))[0]?.text).toBe('helloworld')
  expect(connection?.isOverdue).toBe(false)
})
