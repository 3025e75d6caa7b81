import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolderInMemory } from '../../test/support/folder.ts'
import { Countries } from './country.ts'

/** Data fields of an .mmdb file with at most 28 bytes or entries each. */
const text = (value: string) => Buffer.concat([Buffer.of(0x40 + value.length), Buffer.from(value)])
const uint16 = (value: number) => Buffer.of(0xa2, value >> 8, value & 255)
const map = (entries: Record<string, Buffer>) =>
  Buffer.concat([
    Buffer.of(0xe0 + Object.keys(entries).length),
    ...Object.entries(entries).flatMap(([key, value]) => [text(key), value]),
  ])

/** An .mmdb file for IPv4 with two records: of the addresses below 128.0.0.0, and of the others. */
function mmdb(low: Buffer, high: Buffer): Buffer {
  const nodes = 1
  const separator = Buffer.alloc(16)
  const pointer = (offset: number) => Buffer.of(0, 0, nodes + separator.length + offset)
  const metadata = map({
    binary_format_major_version: uint16(2),
    ip_version: uint16(4),
    node_count: uint16(nodes),
    record_size: uint16(24),
  })
  const tree = [pointer(0), pointer(low.length)]
  const mark = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
  return Buffer.concat([...tree, separator, low, high, mark, metadata])
}

const ipv4 = (keyLow: number) => ({ keyHigh: 0xffff0001, keyLow })
const LOW = ipv4(0x01020304)
const HIGH = ipv4(0xc8020304)
const countryRecord = (code: string) => map({ country: map({ iso_code: text(code) }) })

function countriesIn(bytes: Buffer) {
  using folder = temporaryFolderInMemory()
  const file = join(folder.path, 'countries.mmdb')
  writeFileSync(file, bytes)
  return new Countries(file)
}

test('an .mmdb file has the country of GeoLite2 or the country code of other databases', () => {
  const countries = countriesIn(mmdb(countryRecord('DE'), map({ country_code: text('NO') })))
  expect(countries.problem).toBeUndefined()
  expect(countries.findByClient(LOW)).toBe('DE')
  expect(countries.findByClient(HIGH)).toBe('NO')
})

test('a damaged record of an .mmdb file is an unknown country', () => {
  const damaged = Buffer.of(0x00, 0x00)
  const countries = countriesIn(mmdb(countryRecord('DE'), damaged))
  expect(countries.findByClient(LOW)).toBe('DE')
  expect(countries.findByClient(HIGH)).toBeUndefined()
  expect(countries.problem).toContain('has a damaged record')
})

test.each([
  { name: 'an IPv6 address in a file for IPv4', client: { keyHigh: 0x20010db8, keyLow: 1 } },
  { name: 'a peer without an address', client: { keyHigh: 0xffff0002, keyLow: 0 } },
])('$name has an unknown country', ({ client }) => {
  expect(
    countriesIn(mmdb(countryRecord('DE'), countryRecord('NO'))).findByClient(client),
  ).toBeUndefined()
})
