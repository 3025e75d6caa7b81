import { expect, test } from 'bun:test'
import { secureRandom } from '../lib/random.ts'
import { isApiKey, newApiKey } from './api-keys.ts'

// design: 4.15 API key format
test('a new key is hop_, 30 random characters and 6 of their checksum', () => {
  const key = newApiKey(secureRandom)
  expect(key).toMatch(/^hop_[0-9A-Za-z]{36}$/)
  expect(isApiKey(key)).toBe(true)
})

test('the checksum is CRC-32 in base62', () => {
  // Of "hop_" and 30 zeros; the figure is from Python's zlib.crc32.
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
