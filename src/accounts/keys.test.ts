import { expect, test } from 'bun:test'
import { MINUTE } from '../lib/clock.ts'
import { secureRandom } from '../lib/random.ts'
import { KeyUses } from './key-uses.ts'
import { isApiKey, newApiKey, parseKeyRequests, parseOrigins } from './keys.ts'
import { parseKeyName } from './names.ts'

// design: 4.15 API key format
test('a new key is hop_, 30 random characters and 6 of their checksum', () => {
  const key = newApiKey(secureRandom)
  expect(key).toMatch(/^hop_[0-9A-Za-z]{36}$/)
  expect(isApiKey(key)).toBe(true)
})

test('the checksum is CRC-32 in base62', () => {
  // Checksum of "hop_" and 30 zeros; the figure is from Python's zlib.crc32.
  expect(newApiKey((length) => new Uint8Array(length))).toBe(`hop_${'0'.repeat(30)}3AfL5v`)
})

test('any one wrong character makes it no key', () => {
  const key = newApiKey(secureRandom)
  for (let i = 0; i < key.length; i++) {
    const other = key[i] === 'x' ? 'y' : 'x'
    expect(isApiKey(key.slice(0, i) + other + key.slice(i + 1))).toBe(false)
  }
  for (const text of ['', key.slice(1), `${key} `, `${key}0`, key.toUpperCase()]) {
    expect(isApiKey(text)).toBe(false)
  }
})

test.each([
  [' Build   server ', 'Build server'],
  ['e\u0301'.repeat(60), 'é'.repeat(60)],
  ['\u03b1\u0313\u0300\u0345'.repeat(60), '\u1f82'.repeat(60)],
  ['  ', undefined],
  ['a'.repeat(61), undefined],
  // Composing these takes minutes.
  [`${'\u0301'.repeat(100_000)}${'\u0323'.repeat(100_000)}`, undefined],
])('a name of a key has 1 to 60 characters once it is composed (%#)', (sent, name) => {
  expect(parseKeyName(sent)).toBe(name)
})

function recorder() {
  const written: unknown[] = []
  const keys = { noteUses: async (uses: unknown) => void written.push(uses) }
  return { uses: new KeyUses({ keys }), written }
}

test('a key is written at most once a minute, and several keys together', async () => {
  const { uses, written } = recorder()
  uses.note(1, 1000)
  uses.note(1, 2000)
  uses.note(2, 3000)
  uses.note(1, 1000 + MINUTE - 1)
  uses.note(1, 1000 + MINUTE)
  await uses.close()
  expect(written).toEqual([
    [
      { keyId: 1, at: 1000 },
      { keyId: 2, at: 3000 },
      { keyId: 1, at: 1000 + MINUTE },
    ],
  ])
})

test('a flood of keys is held in bounded memory', async () => {
  const { uses, written } = recorder()
  for (let id = 0; id < 50_000; id++) uses.note(id, 1000)
  await uses.close()
  expect((written[0] as unknown[]).length).toBe(10_000)
})

test.each<[string, string[] | undefined]>([
  ['https://shop.example', ['https://shop.example']],
  [
    ' HTTPS://Shop.Example:443/ ,http://localhost:8080',
    ['https://shop.example', 'http://localhost:8080'],
  ],
  ['https://a.example https://a.example/', ['https://a.example']],
  ['https://bücher.example', ['https://xn--bcher-kva.example']],
  ['', []],
  ['*', undefined],
  ['null', undefined],
  ['shop.example', undefined],
  ['https://*.example', undefined],
  ['https://shop.example/path', undefined],
  ['https://shop.example?', undefined],
  ['https://user@shop.example', undefined],
  ['ftp://shop.example', undefined],
  ['file:///', undefined],
  [Array.from({ length: 11 }, (_, n) => `https://${n}.example`).join(), undefined],
])('origins are listed as browsers send them: %s', (text, origins) => {
  expect(parseOrigins(text)).toEqual(origins as string[])
})

test('the limit of a key is a number from 1 to 6000', () => {
  const limits = ['1', '6000', '0', '6001', '-1', '1.5', '', '1e3', '99999'].map(parseKeyRequests)
  expect(limits).toEqual([1, 6000, ...Array(7).fill(undefined)])
})
