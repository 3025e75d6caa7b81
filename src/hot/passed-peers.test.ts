import { expect, test } from 'bun:test'
import { PassedPeers } from './passed-peers.ts'

test('an address is found by the port in all threads that share the memory', () => {
  const written = new PassedPeers()
  const read = new PassedPeers(written.memory)
  const longest = '2001:0db8:85a3:0000:0000:8a2e:255.255.255.255'
  written.set(1, '192.0.2.1')
  written.set(65_535, longest)
  expect([read.findByPort(1), read.findByPort(65_535), read.findByPort(2)]).toEqual([
    '192.0.2.1',
    longest,
    undefined,
  ])
  written.set(1, '::1')
  expect(read.findByPort(1)).toBe('::1')
})

test('the end of a connection clears its row, but not that of a later one on the same port', () => {
  const peers = new PassedPeers()
  const first = peers.set(7, '192.0.2.1')
  const second = peers.set(7, '192.0.2.2')
  peers.clear(7, first)
  expect(peers.findByPort(7)).toBe('192.0.2.2')
  peers.clear(7, second)
  expect(peers.findByPort(7)).toBeUndefined()
})
