import { describe, expect, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { ClientAddress } from './client-address.ts'

const hex = (half: number) => half.toString(16).padStart(8, '0')

function keyOf(trusted: readonly string[], peer: string, forwardedFor: string | null): string {
  const address = new ClientAddress(trusted)
  const headers = { get: () => forwardedFor }
  const { keyHigh, keyLow } = address.resolve(address.parsePeer(peer), headers)
  expect([keyHigh >>> 0, keyLow >>> 0]).toEqual([keyHigh, keyLow])
  return `${hex(keyHigh)}${hex(keyLow)}`
}

/** The key that an address should have, by another parser. */
function expectedKey(text: string): string {
  // That parser takes IPv4-compatible IPv6 (::1.2.3.4) for IPv4-mapped (::ffff:1.2.3.4).
  const address = ipaddr.process(text.replace(/^::(?=\d+\.)/, '0::0:'))
  const bytes = Buffer.from(address.toByteArray())
  return address.kind() === 'ipv4'
    ? `ffff0001${bytes.toString('hex')}`
    : bytes.toString('hex', 0, 8)
}

const UNKNOWN = 'ffff000200000000'
const GROUP_ADDRESS = /^ff[0-9a-f]{2}:/i
const NONE: readonly string[] = []

describe('a peer', () => {
  const peers = [
    { peer: '192.0.2.7', key: 'ffff0001c0000207' },
    { peer: '0.0.0.0', key: 'ffff000100000000' },
    { peer: '255.255.255.255', key: 'ffff0001ffffffff' },
    { peer: '127.0.0.1', key: 'ffff00017f000001' },
    { peer: '::ffff:192.0.2.7', key: 'ffff0001c0000207' },
    { peer: '::FFFF:192.0.2.7', key: 'ffff0001c0000207' },
    { peer: '::ffff:c000:207', key: 'ffff0001c0000207' },
    { peer: '0:0:0:0:0:ffff:192.0.2.7', key: 'ffff0001c0000207' },
    { peer: '0000:0000:0000:0000:0000:ffff:c000:0207', key: 'ffff0001c0000207' },
    { peer: '::ffff:192.0.2.7%eth0', key: 'ffff0001c0000207' },
    { peer: '::192.0.2.7', key: '0000000000000000' },
    { peer: '::fffe:192.0.2.7', key: '0000000000000000' },
    { peer: '2001:db8::ffff:192.0.2.7', key: '20010db800000000' },
    { peer: '0:0:0:1:0:ffff:192.0.2.7', key: '0000000000000001' },
    { peer: '64:ff9b::192.0.2.7', key: '0064ff9b00000000' },
    { peer: '::1', key: '0000000000000000' },
    { peer: '::', key: '0000000000000000' },
    { peer: '2001:db8::7', key: '20010db800000000' },
    { peer: '2001:db8:1:2::7', key: '20010db800010002' },
    { peer: '2001:DB8:1:2:3:4:5:6', key: '20010db800010002' },
    { peer: '2001:0db8:0001:0002:ffff:ffff:ffff:ffff', key: '20010db800010002' },
    { peer: '1:2:3:4:5:6:7::', key: '0001000200030004' },
    { peer: '::2:3:4:5:6:7:8', key: '0000000200030004' },
    { peer: '1::8', key: '0001000000000000' },
    { peer: '1:2:3:4:5:6:192.0.2.7', key: '0001000200030004' },
    { peer: 'fe80::1%eth0', key: 'fe80000000000000' },
    { peer: 'fe80::1:2:3:4%25', key: 'fe80000000000000' },
    { peer: 'feff:ffff:ffff:ffff::', key: 'feffffffffffffff' },
  ]
  // design: 4.5 an address is an IPv4 or the /64 of an IPv6
  test.each(peers)('$peer has the key $key, and its header is not read', ({ peer, key }) => {
    expect(keyOf(NONE, peer, null)).toBe(key)
    expect(keyOf(NONE, peer, '198.51.100.1')).toBe(key)
    expect(keyOf(['203.0.113.0/24', '2001:db8:f::/48'], peer, '198.51.100.1')).toBe(key)
  })

  const nobody = [
    '',
    ' ',
    'unknown',
    'localhost',
    '/run/hopcode.sock',
    '192.0.2',
    '192.0.2.',
    '.192.0.2',
    '192.0.2.256',
    '192.0.2.1000',
    '192.0.2.7.1',
    '192.0..7',
    '192.0.2.-7',
    '192.0.2.0x7',
    '192.0.2.07',
    '00.0.2.7',
    '192.0.2.7a',
    '3221225991',
    '192.0.2.7/32',
    '192.0.2.7:',
    ':',
    ':::',
    '1:::2',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '1::2:3:4:5:6:7:8',
    ':1::2',
    '1::2:',
    '12345::',
    'g::',
    '::192.0.2',
    '::192.0.2.7.1',
    '::192.0.2.256',
    '::192.0.2.7:1',
    '1:2:3:4:5:6:7:192.0.2.7',
    '192.0.2.7::',
    '[::1',
    '::1]',
    '[192.0.2.7]',
    '[]',
    '[::1]x',
    '[::1]:',
    '[::1]:x',
    '[::1]:123456',
    '%eth0',
    '192.0.2.7%eth0',
    'ff02::1',
    'ffff:1:c000:207::',
    'ffff:2::',
    '１９２.0.2.7',
  ]
  test.each(nobody)('that is no address shares the key of all such: %j', (peer) => {
    expect(keyOf(NONE, peer, null)).toBe(UNKNOWN)
    expect(keyOf(['0.0.0.0/0', '::/0'], peer, '198.51.100.1')).toBe(UNKNOWN)
  })
})

describe('behind proxies', () => {
  const PROXIES = ['10.0.0.0/8', '192.0.2.7', '2001:db8:f::/48', 'fd00::1']
  const CLIENT = '198.51.100.1'
  const cases: { why: string; peer?: string; header: string | null; client: string }[] = [
    { why: 'no header', header: null, client: '10.0.0.1' },
    { why: 'one address', header: CLIENT, client: CLIENT },
    { why: 'the peer is IPv4-mapped', peer: '::ffff:10.0.0.1', header: CLIENT, client: CLIENT },
    {
      why: 'the peer is one address of the list',
      peer: '192.0.2.7',
      header: CLIENT,
      client: CLIENT,
    },
    { why: 'its neighbour is not', peer: '192.0.2.8', header: CLIENT, client: '192.0.2.8' },
    {
      why: 'the peer is in an IPv6 range',
      peer: '2001:db8:f:1::2',
      header: CLIENT,
      client: CLIENT,
    },
    { why: 'past the range', peer: '2001:db8:10::2', header: CLIENT, client: '2001:db8:10::2' },
    { why: 'the peer is one IPv6 address', peer: 'fd00::1', header: CLIENT, client: CLIENT },
    { why: 'its IPv6 neighbour is not', peer: 'fd00::2', header: CLIENT, client: 'fd00::2' },
    { why: 'past the IPv4 range', peer: '11.0.0.1', header: CLIENT, client: '11.0.0.1' },
    { why: 'below the IPv4 range', peer: '9.255.255.255', header: CLIENT, client: '9.255.255.255' },
    {
      why: 'a forged address is left of the real one',
      header: `6.6.6.6, ${CLIENT}`,
      client: CLIENT,
    },
    { why: 'a forged proxy is left of it', header: `10.9.9.9, ${CLIENT}`, client: CLIENT },
    { why: 'proxies follow', header: `6.6.6.6, ${CLIENT}, 10.1.1.1, 192.0.2.7`, client: CLIENT },
    { why: 'proxies of both kinds follow', header: `${CLIENT}, fd00::1, 10.1.1.1`, client: CLIENT },
    { why: 'a mapped proxy follows', header: `${CLIENT},::ffff:10.2.3.4`, client: CLIENT },
    { why: 'all are trusted', header: '10.3.3.3, 10.2.2.2, 192.0.2.7', client: '10.3.3.3' },
    { why: 'a single trusted one', header: '10.3.3.3', client: '10.3.3.3' },
    { why: 'an IPv6 client', header: '2001:db8:a:b:c::1', client: '2001:db8:a:b::' },
    { why: 'a mapped client', header: `::ffff:${CLIENT}`, client: CLIENT },
    { why: 'without spaces', header: `6.6.6.6,${CLIENT},10.1.1.1`, client: CLIENT },
    { why: 'with many spaces', header: `6.6.6.6 ,\t ${CLIENT} \t,  10.1.1.1  `, client: CLIENT },
    { why: 'a port', header: `${CLIENT}:567`, client: CLIENT },
    { why: 'a port of a proxy', header: `${CLIENT}, 10.1.1.1:65535`, client: CLIENT },
    { why: 'brackets', header: '[2001:db8:a:b::1]', client: '2001:db8:a:b::1' },
    { why: 'brackets and a port', header: '[2001:db8:a:b::1]:80', client: '2001:db8:a:b::1' },
    { why: 'a mapped address in brackets', header: `[::ffff:${CLIENT}]:80`, client: CLIENT },
    { why: 'a zone', header: 'fe80::1%eth0', client: 'fe80::1' },
    { why: 'a zone in brackets', header: '[fe80::1%eth0]:80', client: 'fe80::1' },
    { why: 'an empty header', header: '', client: '10.0.0.1' },
    { why: 'spaces alone', header: '  ', client: '10.0.0.1' },
    { why: 'a comma alone', header: ',', client: '10.0.0.1' },
    { why: 'commas alone', header: ',,,,', client: '10.0.0.1' },
    { why: 'a comma at the end', header: `${CLIENT},`, client: '10.0.0.1' },
    { why: 'a comma at the start', header: `,${CLIENT}`, client: CLIENT },
    { why: 'a comma before a proxy', header: ',10.1.1.1', client: '10.1.1.1' },
    { why: 'a gap', header: `${CLIENT},,10.1.1.1`, client: '10.1.1.1' },
    { why: 'garbage', header: 'unknown', client: '10.0.0.1' },
    { why: 'garbage left of a proxy', header: `${CLIENT}, _hidden, 10.1.1.1`, client: '10.1.1.1' },
    { why: 'garbage right of all', header: `${CLIENT}, 10.1.1.1, -`, client: '10.0.0.1' },
    { why: 'garbage left of the client', header: `<script>, ${CLIENT}`, client: CLIENT },
    { why: 'two addresses without a comma', header: `6.6.6.6 ${CLIENT}`, client: '10.0.0.1' },
    { why: 'an octal spelling', header: '0306.0.2.7', client: '10.0.0.1' },
    { why: 'a name', header: 'client.example', client: '10.0.0.1' },
    { why: 'a range', header: '198.51.100.0/24', client: '10.0.0.1' },
    { why: 'quotes', header: `"${CLIENT}"`, client: '10.0.0.1' },
    { why: 'a port of six digits', header: `${CLIENT}:123456`, client: '10.0.0.1' },
    { why: 'an open bracket', header: '[2001:db8::1', client: '10.0.0.1' },
    { why: 'a bracket in the next entry', header: '[2001:db8::1, 10.1.1.1]', client: '10.0.0.1' },
    { why: 'a group address', header: 'ffff:1:c633:6401::', client: '10.0.0.1' },
    {
      why: '63 proxies behind the client',
      header: `${CLIENT}${', 10.1.1.1'.repeat(63)}`,
      client: CLIENT,
    },
    {
      why: '64 proxies: further left is not read',
      header: `${CLIENT}, 10.2.2.2${', 10.1.1.1'.repeat(63)}`,
      client: '10.2.2.2',
    },
    { why: 'a header of 100,000 commas', header: ','.repeat(100_000), client: '10.0.0.1' },
    { why: 'a header of spaces', header: ' '.repeat(100_000), client: '10.0.0.1' },
    { why: 'a header of digits', header: '1'.repeat(100_000), client: '10.0.0.1' },
    { why: 'a header of colons', header: ':'.repeat(100_000), client: '10.0.0.1' },
  ]
  test.each(cases)('$why: the client is $client', ({ peer = '10.0.0.1', header, client }) => {
    expect(keyOf(PROXIES, peer, header)).toBe(expectedKey(client))
  })
})

describe('trusted ranges', () => {
  const CLIENT = '198.51.100.1'
  const ranges: { range: string; inside?: string[]; outside?: string[] }[] = [
    {
      range: '0.0.0.0/0',
      inside: ['0.0.0.0', '9.9.9.9', '::ffff:9.9.9.9'],
      outside: ['::1', '::'],
    },
    { range: '::/0', inside: ['::1', '2001:db8::1'], outside: ['9.9.9.9', '::ffff:9.9.9.9'] },
    { range: '::ffff:0:0/96', inside: ['9.9.9.9', '::ffff:9.9.9.9'], outside: ['::9.9.9.9'] },
    { range: '::ffff:9.0.0.0/64', inside: ['::9.9.9.9', '::1'], outside: ['9.0.0.0', '1::'] },
    { range: '::ffff:10.0.0.0/104', inside: ['10.255.0.1'], outside: ['11.0.0.0', '9.0.0.0'] },
    { range: '::ffff:10.0.0.9', inside: ['10.0.0.9'], outside: ['10.0.0.8'] },
    { range: '10.1.2.3/8', inside: ['10.255.255.255', '10.0.0.0'], outside: ['11.0.0.0'] },
    {
      range: '128.0.0.0/1',
      inside: ['128.0.0.0', '255.255.255.255'],
      outside: ['127.255.255.255'],
    },
    { range: '172.16.0.0/12', inside: ['172.16.0.0', '172.31.255.255'], outside: ['172.32.0.0'] },
    {
      range: '192.0.2.6/31',
      inside: ['192.0.2.6', '192.0.2.7'],
      outside: ['192.0.2.8', '192.0.2.5'],
    },
    { range: '192.0.2.7/32', inside: ['192.0.2.7'], outside: ['192.0.2.6'] },
    { range: '2001:db8::/32', inside: ['2001:db8:ffff::1'], outside: ['2001:db9::', '2001:db7::'] },
    { range: '2001:db8::/33', inside: ['2001:db8:7fff::'], outside: ['2001:db8:8000::'] },
    { range: '2001:db8:0:8::/61', inside: ['2001:db8:0:f::'], outside: ['2001:db8:0:10::'] },
    {
      range: '2001:db8::8:0:0:0/77',
      inside: ['2001:db8::f:0:0:1'],
      outside: ['2001:db8::10:0:0:0'],
    },
    {
      range: '2001:db8::1/128',
      inside: ['2001:db8::1'],
      outside: ['2001:db8::2', '2001:db8:1::1'],
    },
    { range: 'fe80::1%eth0', inside: ['fe80::1', 'fe80::1%eth1'], outside: ['fe80::2'] },
    { range: '::1', inside: ['::1', '0:0:0:0:0:0:0:1'], outside: ['127.0.0.1', '::'] },
  ]
  test.each(ranges)(
    '$range holds $inside and not $outside',
    ({ range, inside = [], outside = [] }) => {
      for (const peer of inside) expect(keyOf([range], peer, CLIENT)).toBe(expectedKey(CLIENT))
      for (const peer of outside) expect(keyOf([range], peer, CLIENT)).toBe(expectedKey(peer))
    },
  )

  test('what is neither an address nor a range is an error', () => {
    for (const text of ['', 'proxy.example', '10.0.0.0/33', '::/129', '10.0.0.0/']) {
      expect(() => new ClientAddress([text])).toThrow()
    }
  })
})

describe('any text', () => {
  const looksLikeAddress = fc.stringMatching(/^[0-9a-f:.]{0,24}$/)
  const pieces = fc.array(
    fc.constantFrom('0', '1', 'ffff', '12', '255', ':', '::', '.', '.0.2.7'),
    {
      maxLength: 14,
    },
  )

  test('is an address exactly if Node says so', () => {
    const text = fc.oneof(
      looksLikeAddress,
      pieces.map((list) => list.join('')),
      fc.ipV4(),
      fc.ipV6(),
    )
    fc.assert(
      fc.property(text, (peer) => {
        fc.pre(!/^\d+(\.\d+){3}:\d{1,5}$/.test(peer) && !GROUP_ADDRESS.test(peer))
        expect(keyOf(NONE, peer, null)).toBe(isIP(peer) ? expectedKey(peer) : UNKNOWN)
      }),
      { numRuns: 5000 },
    )
  })

  test('as a header gives the peer, or an address that stands in it behind trusted ones only', () => {
    const entry = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.constantFrom('10.0.0.1', '10.0.0.2', 'x', '', ' '),
    )
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 6 }), (entries) => {
        let client = '10.0.0.9'
        for (const text of entries.toReversed()) {
          if (!isIP(text) || GROUP_ADDRESS.test(text)) break
          client = text
          if (!text.startsWith('10.0.0.')) break
        }
        expect(keyOf(['10.0.0.0/24'], '10.0.0.9', entries.join(','))).toBe(expectedKey(client))
      }),
      { numRuns: 2000 },
    )
  })

  test('never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (peer, header) => {
        keyOf(['0.0.0.0/0', '::/0'], peer, header)
        keyOf(['0.0.0.0/0', '::/0'], '10.0.0.1', header)
      }),
    )
  })
})
