import { expect, test } from 'bun:test'
import { isIP, isIPv4 } from 'node:net'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { ClientAddress, clientIp, clientNetwork, ipv4Of, networkOf } from './client-address.ts'

/** The text of the client that a request is charged to. IPv6 is without its `::/64`. */
function clientOf(trusted: readonly string[], peer: string, forwardedFor: string | null): string {
  const address = new ClientAddress(trusted)
  const client = address.resolve(address.parsePeer(peer), { get: () => forwardedFor })
  for (const half of [client.keyHigh, client.keyLow]) expect(half >>> 0).toBe(half)
  return clientIp(client).replace('::/64', '')
}

/** The same by `ipaddr.js` alone, for an address that is one. */
function expectedOf(text: string): string {
  // That parser takes IPv4-compatible IPv6 (::1.2.3.4) for IPv4-mapped (::ffff:1.2.3.4).
  const address = ipaddr.process(text.replace(/^::(?=\d+\.)/, '0::0:'))
  if (address.kind() === 'ipv4') return address.toString()
  return (address as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}

const NONE: readonly string[] = []
const CLIENT = '198.51.100.7'

const PEERS: Record<string, string> = {
  '0.0.0.0': '0.0.0.0',
  '255.255.255.255': '255.255.255.255',
  '::ffff:203.0.113.5': '203.0.113.5',
  '::FFFF:CB00:7105': '203.0.113.5',
  '0:0:0:0:0:ffff:203.0.113.5': '203.0.113.5',
  '::ffff:192.0.2.7%eth0': '192.0.2.7',
  '::203.0.113.5': '0:0:0:0',
  '::fffe:192.0.2.7': '0:0:0:0',
  '64:ff9b::203.0.113.5': '64:ff9b:0:0',
  '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
  '2001:db8:1:2:ffff::1': '2001:db8:1:2',
  '2001:db8:1:3::1': '2001:db8:1:3',
  '2001:0db8:0001:0002::9': '2001:db8:1:2',
  '2001:db8::2:3:4:5:6': '2001:db8:0:2',
  '1:2:3:4:5:6:192.0.2.7': '1:2:3:4',
  'fe80:0:0:7::1%2': 'fe80:0:0:7',
  'feff:ffff:ffff:ffff::': 'feff:ffff:ffff:ffff',
}
// design: 4.5 an address is an IPv4 or the /64 of an IPv6
test.each(Object.entries(PEERS))(
  'the peer %s is %s, and its header is not read',
  (peer, client) => {
    for (const trusted of [NONE, ['10.0.0.0/24', '2001:db8:f::/48']]) {
      for (const header of [null, CLIENT]) expect(clientOf(trusted, peer, header)).toBe(client)
    }
  },
)

const UNKNOWN = `
localhost /run/hopcode.sock 192.0.2.07 3221225991 192.0.2.7/32 192.0.2.7: 192.0.2.7%eth0 %eth0
::192.0.2.7.1 ::192.0.2.07 [::1 ::1] [192.0.2.7] [] [::1]x [::1]: [::1]:123456
ff02::1 ffff:1:c000:207:: ffff:2:: １９２.0.2.7
`.split(/\s/)
test.each(UNKNOWN)('a peer that is no address is trusted by no range: %j', (peer) => {
  expect(clientOf(['0.0.0.0/0', '::/0'], peer, CLIENT)).toBe('unknown')
})

const PROXY = '10.0.0.1'
const chain = (length: number, entry: string) => Array<string>(length).fill(entry).join(', ')
/** `X-Forwarded-For`, with its lines joined by commas, as HTTP joins them. */
const FORWARDED: readonly (readonly [why: string, header: string | null, client: string])[] = [
  ['no header', null, PROXY],
  ['one client', CLIENT, CLIENT],
  ['spoofed from the left', `1.1.1.1, ${CLIENT}`, CLIENT],
  ['spoofed as a proxy', `10.9.9.9, ${CLIENT}`, CLIENT],
  ['spoofed with garbage', `<script>, ${CLIENT}`, CLIENT],
  ['two proxies, spoofed', `1.1.1.1, ${CLIENT}, 10.2.2.2`, CLIENT],
  ['a proxy of others before ours', `${CLIENT}, 203.0.113.5, 10.2.2.2`, '203.0.113.5'],
  ['proxies of both kinds', `${CLIENT}, fd00::9, 10.2.2.2`, CLIENT],
  ['a mapped proxy', `${CLIENT}, ::ffff:10.2.2.2`, CLIENT],
  ['proxies alone', '10.3.3.3, 10.2.2.2', '10.3.3.3'],
  ['three lines joined', `1.1.1.1, 2.2.2.2,${CLIENT} , 10.2.2.2`, CLIENT],
  ['an empty line first', `, ${CLIENT}`, CLIENT],
  ['an empty line last', `${CLIENT}, `, PROXY],
  ['an empty entry between', `${CLIENT},,10.2.2.2`, '10.2.2.2'],
  ['an empty header', '', PROXY],
  ['commas alone', ',,,', PROXY],
  ['tabs and spaces', `\t${CLIENT}\t ,\t 10.2.2.2 `, CLIENT],
  ['another white space', `${CLIENT}\u00a0`, PROXY],
  ['an IPv6 client', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['a mapped client', `::ffff:${CLIENT}`, CLIENT],
  ['a port', `${CLIENT}:5678`, CLIENT],
  ['a port of six digits', `${CLIENT}:567890`, PROXY],
  ['a colon without a port', `${CLIENT}:`, PROXY],
  ['a port of letters', `${CLIENT}:http`, PROXY],
  ['brackets', '[2001:db8:1:2::3]', '2001:db8:1:2'],
  ['brackets and a port', '[2001:db8:1:2::3]:443', '2001:db8:1:2'],
  ['brackets around IPv4', `[${CLIENT}]`, PROXY],
  ['a bracket in the next entry', '[2001:db8::1, 10.1.1.1]', PROXY],
  ['quotes, as in Forwarded', `"${CLIENT}"`, PROXY],
  ['a name, as in Forwarded', `for=${CLIENT}`, PROXY],
  ['a zone in brackets', '[fe80:0:0:5::1%25eth0]:80', 'fe80:0:0:5'],
  ['the word unknown before a proxy', `${CLIENT}, unknown, 10.2.2.2`, '10.2.2.2'],
  ['a hidden name behind the client', `${CLIENT}, _hidden`, PROXY],
  ['hexadecimal', '0xc6.0x33.0x64.0x07', PROXY],
  ['octal', '0306.063.0144.07', PROXY],
  ['a sign', `-${CLIENT}`, PROXY],
  ['a range', `${CLIENT}/32`, PROXY],
  ['a group address', 'ffff:1:c633:6401::', PROXY],
  ['a space for a comma', `1.1.1.1 ${CLIENT}`, PROXY],
  ['NUL behind the address', `${CLIENT}\0`, PROXY],
  ['63 proxies', `${CLIENT}, ${chain(63, '10.2.2.2')}`, CLIENT],
  ['64 proxies: further left is not read', `1.1.1.1, ${chain(64, '10.2.2.2')}`, '10.2.2.2'],
  ['a million spoofed entries', `${chain(1e6, '1.1.1.1')}, ${CLIENT}`, CLIENT],
  ['a million commas', `${CLIENT}${','.repeat(1e6)}`, PROXY],
  ['a million digits', '1'.repeat(1e6), PROXY],
  ['a million colons', ':'.repeat(1e6), PROXY],
]
// design: 4.5 budgets
test.each(FORWARDED)('behind a proxy, %s', (_why, header, client) => {
  expect(clientOf(['10.0.0.0/8', 'fd00::/8'], PROXY, header)).toBe(client)
})

const RANGES: Record<string, { inside: string[]; outside: string[] }> = {
  '0.0.0.0/0': { inside: ['0.0.0.0', '::ffff:9.9.9.9'], outside: ['::1', '::'] },
  '::/0': { inside: ['::1', '2001:db8::1'], outside: ['9.9.9.9', '::ffff:9.9.9.9'] },
  '::ffff:0:0/96': { inside: ['9.9.9.9', '::ffff:9.9.9.9'], outside: ['::9.9.9.9'] },
  '::ffff:9.0.0.0/64': { inside: ['::9.9.9.9', '::1'], outside: ['9.0.0.0', '1::'] },
  '::ffff:10.0.0.0/104': { inside: ['10.255.0.1'], outside: ['11.0.0.0', '9.255.255.255'] },
  '10.1.2.3/8': { inside: ['10.255.255.255', '10.0.0.0'], outside: ['11.0.0.0'] },
  '172.16.0.0/12': { inside: ['172.16.0.0', '172.31.255.255'], outside: ['172.32.0.0'] },
  '192.0.2.6/31': { inside: ['192.0.2.6', '192.0.2.7'], outside: ['192.0.2.8', '192.0.2.5'] },
  '192.0.2.7': { inside: ['192.0.2.7', '::ffff:192.0.2.7'], outside: ['192.0.2.6'] },
  '2001:db8::/33': { inside: ['2001:db8:7fff::'], outside: ['2001:db8:8000::', '2001:db7::'] },
  '2001:db8::8:0:0:0/77': { inside: ['2001:db8::f:0:0:1'], outside: ['2001:db8::10:0:0:0'] },
  'fe80::1%eth0': { inside: ['fe80::1', 'fe80::1%eth1'], outside: ['fe80::2'] },
}
test.each(Object.entries(RANGES))('the range %s holds %j', (range, { inside, outside }) => {
  for (const peer of inside) expect(clientOf([range], peer, CLIENT)).toBe(CLIENT)
  for (const peer of outside) expect(clientOf([range], peer, CLIENT)).toBe(expectedOf(peer))
})

test('what is neither an address nor a range is an error', () => {
  for (const text of ['', 'proxy.example', '10.0.0.0/33', '::/129', '10.0.0.0/']) {
    expect(() => new ClientAddress([text])).toThrow()
  }
})

const GROUP_ADDRESS = /^ff[0-9a-f]{2}:/i
const PIECES = ['0', '1', 'ffff', '12', '255', ':', '::', '.', '.0.2.7']

test('any text is an address exactly if Node says so', () => {
  const text = fc.oneof(
    fc.stringMatching(/^[0-9a-f:.]{0,24}$/),
    fc.array(fc.constantFrom(...PIECES), { maxLength: 14 }).map((list) => list.join('')),
    fc.ipV4(),
    fc.ipV6(),
  )
  const check = fc.property(text, (peer) => {
    fc.pre(!/^\d+(\.\d+){3}:\d{1,5}$/.test(peer) && !GROUP_ADDRESS.test(peer))
    expect(clientOf(NONE, peer, null)).toBe(isIP(peer) ? expectedOf(peer) : 'unknown')
  })
  fc.assert(check, { numRuns: 5000 })
})

test('no text of a peer or a header is a failure', () => {
  const text = fc.string({ unit: 'binary' })
  const check = fc.property(text, text, (peer, header) => {
    clientOf(['0.0.0.0/0', '::/0'], peer, header)
    clientOf(['0.0.0.0/0', '::/0'], PROXY, header)
  })
  fc.assert(check)
})

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['::ffff:192.0.2.1', '192.0.2.0/24'],
  ['2001:db8:abcd:12::1', '2001:db8:abcd::/48'],
  ['::1', '0:0:0::/48'],
  ['', 'unknown'],
])('%s is logged as %s', (peer, network) => {
  const { client } = new ClientAddress([]).parsePeer(peer)
  expect(clientNetwork(client)).toBe(network)
  expect(networkOf(clientIp(client))).toBe(network)
})

test('an IPv4 address is read as ipaddr.js reads it, and no other text is one', () => {
  const part = fc.oneof(
    fc.integer({ min: 0, max: 300 }).map(String),
    fc.constantFrom('', '00', '1a'),
  )
  const parts = fc.array(part, { minLength: 3, maxLength: 5 })
  const texts = fc.oneof(
    parts.map((all) => all.join('.')),
    fc.ipV4(),
    fc.ipV6(),
    fc.string(),
  )
  fc.assert(
    fc.property(texts, (text) => {
      const bytes = isIPv4(text) ? ipaddr.IPv4.parse(text).toByteArray() : undefined
      expect(ipv4Of(text)).toBe(bytes && Buffer.from(bytes).readUInt32BE())
    }),
    { numRuns: 2000 },
  )
})

test('peers are told apart, also after many others', () => {
  for (const trusted of [NONE, ['10.0.0.0/24']]) {
    const address = new ClientAddress(trusted)
    for (let n = 0; n < 5000; n++) {
      const peer = `10.${n >> 8}.0.${n & 255}`
      const { client, isProxy } = address.parsePeer(peer)
      expect([clientIp(client), isProxy]).toEqual([peer, trusted !== NONE && n < 256])
      expect(address.parsePeer(peer).client).toEqual(client)
    }
  }
})
