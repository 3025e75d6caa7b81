import { expect, test } from 'bun:test'
import { AllowedHosts, isPublicAddress } from './addresses.ts'

test.each([
  '127.0.0.1',
  '127.8.9.10',
  '0.0.0.0',
  '10.0.0.5',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '192.0.2.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fd00::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  '::ffff:10.0.0.1',
  '::ffff:8.8.8.8',
  '::10.0.0.5',
  '64:ff9b::a00:5',
  '64:ff9b:1::a00:5',
  '2002:a00:5::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:db8::1',
  '4000::1',
  'example.com',
  '',
])('%p is no public address', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '2a00:1450:4001::5'])(
  '%s is a public address',
  (address) => {
    expect(isPublicAddress(address)).toBe(true)
  },
)

test('receivers are allowed by name, address and range, and nothing beside them', () => {
  const hosts = new AllowedHosts(['N8N.internal', '10.0.0.0/8', '192.168.7.7', 'fd00::/64'])
  expect(['n8n.internal', 'x.n8n.internal', 'internal'].map((name) => hosts.hasName(name))).toEqual(
    [true, false, false],
  )
  const addresses = ['10.9.8.7', '::ffff:10.0.0.1', '192.168.7.7', 'fd00::1']
  expect(addresses.filter((one) => !hosts.hasAddress(one))).toEqual([])
  const others = ['11.0.0.1', '192.168.7.8', 'fd00:0:0:1::1', '::1', '127.0.0.1']
  expect(others.filter((one) => hosts.hasAddress(one))).toEqual([])
})
