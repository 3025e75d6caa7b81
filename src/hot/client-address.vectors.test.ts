import { expect, test } from 'bun:test'
import { ClientAddress, clientIp } from './client-address.ts'

/**
 * Whom a request is charged to, worked out by hand: an IPv4 address, the first four groups of an
 * IPv6 one, or nobody that is known. `trusted` are TRUSTED_PROXIES, `header` is X-Forwarded-For
 * with its lines joined by commas, as HTTP joins them.
 */
interface Vector {
  why: string
  trusted?: string
  peer: string
  header?: string
  caller: string
}

const PROXY = '10.0.0.1'
const behind = (why: string, header: string, caller: string): Vector => ({
  why,
  trusted: '10.0.0.0/8, fd00::/8',
  peer: PROXY,
  header,
  caller,
})
const direct = (why: string, peer: string, caller: string): Vector => ({ why, peer, caller })
const chain = (length: number, entry: string) => Array<string>(length).fill(entry).join(', ')

const VECTORS: Vector[] = [
  direct('an IPv4 peer', '203.0.113.5', '203.0.113.5'),
  direct('the lowest', '0.0.0.0', '0.0.0.0'),
  direct('the highest', '255.255.255.255', '255.255.255.255'),
  direct('a mapped peer, as Bun names it', '::ffff:203.0.113.5', '203.0.113.5'),
  direct('a mapped peer in hex', '::ffff:cb00:7105', '203.0.113.5'),
  direct('a mapped peer in capitals', '::FFFF:CB00:7105', '203.0.113.5'),
  direct('a mapped peer in full', '0:0:0:0:0:ffff:203.0.113.5', '203.0.113.5'),
  direct('a compatible one is IPv6', '::203.0.113.5', '0:0:0:0'),
  direct('one of NAT64 is IPv6', '64:ff9b::203.0.113.5', '64:ff9b:0:0'),
  direct('an IPv6 peer is its /64', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2'),
  direct('another host of that /64', '2001:db8:1:2:ffff::1', '2001:db8:1:2'),
  direct('the next /64', '2001:db8:1:3::1', '2001:db8:1:3'),
  direct('a gap at the end', '2001:db8::', '2001:db8:0:0'),
  direct('a gap in the middle', '2001:db8::1:0:0:1', '2001:db8:0:0'),
  direct('zeros in front', '2001:0db8:0001:0002::9', '2001:db8:1:2'),
  direct('a gap that is the third group', '2001:db8::2:3:4:5:6', '2001:db8:0:2'),
  direct('loopback', '::1', '0:0:0:0'),
  direct('a zone', 'fe80::1%eth0', 'fe80:0:0:0'),
  direct('a zone of digits', 'fe80:0:0:7::1%2', 'fe80:0:0:7'),
  direct('no peer, on a socket of the file system', '', 'unknown'),
  direct('a host name', 'localhost', 'unknown'),
  direct('octal', '0313.0.113.5', 'unknown'),
  direct('three numbers', '203.0.113', 'unknown'),
  direct('a number above 255', '203.0.113.256', 'unknown'),
  direct('two gaps', '2001::db8::1', 'unknown'),
  direct('a group of five digits', '20010:db8::1', 'unknown'),
  direct('a group address', 'ff02::1', 'unknown'),

  {
    ...direct('no trusted proxy: the header is a stranger’s word', '203.0.113.5', '203.0.113.5'),
    header: '198.51.100.7',
  },
  {
    ...direct('the peer is no trusted proxy', '203.0.113.5', '203.0.113.5'),
    trusted: '10.0.0.0/8',
    header: '198.51.100.7',
  },
  {
    ...direct('one past the range', '11.0.0.0', '11.0.0.0'),
    trusted: '10.0.0.0/8',
    header: '198.51.100.7',
  },
  {
    ...direct('an unknown peer is trusted by no range', '', 'unknown'),
    trusted: '0.0.0.0/0, ::/0',
    header: '198.51.100.7',
  },
  {
    ...direct('a mapped peer is trusted as IPv4', '::ffff:10.0.0.1', '198.51.100.7'),
    trusted: '10.0.0.1',
    header: '198.51.100.7',
  },
  {
    ...direct('an IPv6 proxy', 'fd00::1', '198.51.100.7'),
    trusted: 'fd00::/8',
    header: '198.51.100.7',
  },
  {
    ...direct('a proxy with a zone', 'fe80::1%eth0', '198.51.100.7'),
    trusted: 'fe80::/10',
    header: '198.51.100.7',
  },
  {
    ...direct('everybody is trusted: the leftmost', '203.0.113.5', '198.51.100.7'),
    trusted: '0.0.0.0/0',
    header: '198.51.100.7, 192.0.2.1',
  },
  {
    ...direct('a range given by an address within it', '10.9.9.9', '198.51.100.7'),
    trusted: '10.1.2.3/8',
    header: '198.51.100.7',
  },
  { ...behind('no header', '', PROXY) },
  behind('one client', '198.51.100.7', '198.51.100.7'),
  behind('spoofed from the left', '1.1.1.1, 198.51.100.7', '198.51.100.7'),
  behind('spoofed as a proxy', '10.9.9.9, 198.51.100.7', '198.51.100.7'),
  behind('spoofed as ourselves', '127.0.0.1, 198.51.100.7', '198.51.100.7'),
  behind('spoofed with garbage', '<script>, 198.51.100.7', '198.51.100.7'),
  behind('spoofed with an address of IPv6', '::1, 198.51.100.7', '198.51.100.7'),
  behind('two proxies', '198.51.100.7, 10.2.2.2', '198.51.100.7'),
  behind('two proxies, spoofed', '1.1.1.1, 198.51.100.7, 10.2.2.2', '198.51.100.7'),
  behind('a proxy that is not ours', '198.51.100.7, 203.0.113.5', '203.0.113.5'),
  behind('… before one that is', '198.51.100.7, 203.0.113.5, 10.2.2.2', '203.0.113.5'),
  behind('proxies of both kinds', '198.51.100.7, fd00::9, 10.2.2.2', '198.51.100.7'),
  behind('a mapped proxy', '198.51.100.7, ::ffff:10.2.2.2', '198.51.100.7'),
  behind('proxies alone', '10.3.3.3, 10.2.2.2', '10.3.3.3'),
  behind('two lines joined', '1.1.1.1,198.51.100.7', '198.51.100.7'),
  behind('three lines joined', '1.1.1.1, 2.2.2.2,198.51.100.7 , 10.2.2.2', '198.51.100.7'),
  behind('an empty line first', ', 198.51.100.7', '198.51.100.7'),
  behind('an empty line last', '198.51.100.7, ', PROXY),
  behind('an empty entry between', '198.51.100.7,,10.2.2.2', '10.2.2.2'),
  behind('commas alone', ',,,', PROXY),
  behind('tabs and spaces', '\t198.51.100.7\t ,\t 10.2.2.2 ', '198.51.100.7'),
  behind('another white space', '198.51.100.7\u00a0', PROXY),
  behind('an IPv6 client is its /64', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2'),
  behind('a mapped client', '::ffff:198.51.100.7', '198.51.100.7'),
  behind('a port', '198.51.100.7:5678', '198.51.100.7'),
  behind('a port of 0', '198.51.100.7:0', '198.51.100.7'),
  behind('a port of six digits', '198.51.100.7:567890', PROXY),
  behind('a colon without a port', '198.51.100.7:', PROXY),
  behind('a port of letters', '198.51.100.7:http', PROXY),
  behind('brackets', '[2001:db8:1:2::3]', '2001:db8:1:2'),
  behind('brackets and a port', '[2001:db8:1:2::3]:443', '2001:db8:1:2'),
  behind('brackets around IPv4', '[198.51.100.7]', PROXY),
  behind('brackets that do not close', '[2001:db8:1:2::3', PROXY),
  behind('something behind the brackets', '[2001:db8:1:2::3]x', PROXY),
  behind('quotes, as in Forwarded', '"198.51.100.7"', PROXY),
  behind('a name, as in Forwarded', 'for=198.51.100.7', PROXY),
  behind('a zone', 'fe80:0:0:5::1%eth0', 'fe80:0:0:5'),
  behind('a zone in brackets', '[fe80:0:0:5::1%25eth0]:80', 'fe80:0:0:5'),
  behind('a zone on IPv4', '198.51.100.7%eth0', PROXY),
  behind('the word unknown', 'unknown', PROXY),
  behind('the word unknown before a proxy', '198.51.100.7, unknown, 10.2.2.2', '10.2.2.2'),
  behind('a hidden name', '_hidden', PROXY),
  behind('a hidden name before the client', '_hidden, 198.51.100.7', '198.51.100.7'),
  behind('a hidden name behind the client', '198.51.100.7, _hidden', PROXY),
  behind('a host name', 'client.example', PROXY),
  behind('hexadecimal', '0xc6.0x33.0x64.0x07', PROXY),
  behind('octal', '0306.063.0144.07', PROXY),
  behind('one number', '3325256711', PROXY),
  behind('a sign', '-198.51.100.7', PROXY),
  behind('digits of another script', '１９８.51.100.7', PROXY),
  behind('a range', '198.51.100.7/32', PROXY),
  behind('a group address', 'ff02::1', PROXY),
  behind('a semicolon for a comma', '1.1.1.1; 198.51.100.7', PROXY),
  behind('a space for a comma', '1.1.1.1 198.51.100.7', PROXY),
  behind('NUL behind the address', '198.51.100.7\0', PROXY),
  behind('63 proxies', `198.51.100.7, ${chain(63, '10.2.2.2')}`, '198.51.100.7'),
  behind(
    '64 proxies: nothing left of them is read',
    `1.1.1.1, ${chain(64, '10.2.2.2')}`,
    '10.2.2.2',
  ),
  behind('a million spoofed entries', `${chain(1e6, '1.1.1.1')}, 198.51.100.7`, '198.51.100.7'),
  behind('a million commas', `198.51.100.7${','.repeat(1e6)}`, PROXY),
  behind('a million digits', '1'.repeat(1e6), PROXY),
  behind('a million colons', ':'.repeat(1e6), PROXY),
]

// design: 4.5 budgets
test.each(VECTORS)('$why: $caller', ({ trusted = '', peer, header, caller }) => {
  const proxies = trusted === '' ? [] : trusted.split(', ')
  const address = new ClientAddress(proxies)
  // The result must not depend on the client before.
  const headers = { get: () => header ?? null }
  const client = address.resolve(address.parsePeer(peer), headers)
  expect(clientIp(client).replace('::/64', '')).toBe(caller)
})
