import { expect, test } from 'bun:test'
import { ClientAddress, clientIp, clientNetwork, networkOf } from './client-address.ts'

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['255.255.255.255', '255.255.255.0/24'],
  ['::ffff:192.0.2.1', '192.0.2.0/24'],
  ['2001:db8:abcd:12::1', '2001:db8:abcd::/48'],
  ['::1', '0:0:0::/48'],
  ['', 'unknown'],
])('%s is logged as %s', (peer, network) => {
  const { client } = new ClientAddress([]).parsePeer(peer)
  expect(clientNetwork(client)).toBe(network)
  expect(networkOf(clientIp(client))).toBe(network)
})

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:abcd:12::/64', '2001:db8:abcd::/48'],
  ['0:0:0:0::/64', '0:0:0::/48'],
  ['unknown', 'unknown'],
])('the text %s belongs to %s', (address, network) => expect(networkOf(address)).toBe(network))
