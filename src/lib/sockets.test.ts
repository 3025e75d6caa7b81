import { expect, test } from 'bun:test'
import { findListeningSockets, refuseConnections } from './sockets.ts'

test('only the descriptor that listens on the port is found', () => {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('well') })
  const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('well') })
  const found = findListeningSockets(server.port ?? 0)
  expect(found).toHaveLength(1)
  expect(found[0]).toBeGreaterThan(2)
  expect(findListeningSockets(other.port ?? 0)).not.toEqual(found)
  server.stop(true)
  other.stop(true)
})

test('a port that refuses connections answers the open ones, and can be listened on again', async () => {
  const options = { hostname: '127.0.0.1', fetch: () => new Response('well') }
  const server = Bun.serve({ port: 0, ...options })
  const port = server.port ?? 0
  let received = ''
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  const client = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, bytes) {
        received += bytes.toString()
        if (received.endsWith('well')) resolve()
      },
    },
  })
  // A first answer shows that the service has taken the connection.
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await answered
  refuseConnections(port)
  expect(fetch(server.url)).rejects.toThrow()
  received = ''
  const { promise: answeredAgain, resolve: resolveAgain } = Promise.withResolvers<void>()
  client.reload({ socket: { data: () => resolveAgain() } })
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await answeredAgain
  client.end()
  await server.stop()
  const next = Bun.serve({ port, ...options })
  expect(await (await fetch(next.url)).text()).toBe('well')
  next.stop(true)
})

test('nothing happens for a port without a listener in this process', () => {
  expect(findListeningSockets(1)).toEqual([])
  refuseConnections(1)
})
