import { expect, test } from 'bun:test'
import { findListeningSockets } from './sockets.ts'

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

test('no descriptor is found for a port without a listener in this process', () => {
  expect(findListeningSockets(1)).toEqual([])
})
