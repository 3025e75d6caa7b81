import { expect, test } from 'bun:test'
import { randomString, secureRandom } from './random.ts'

test('a random string has the asked length and only characters of its alphabet', () => {
  for (const length of [0, 1, 8, 24, 1000]) {
    expect(randomString(secureRandom, 'ABC', length)).toMatch(new RegExp(`^[ABC]{${length}}$`))
  }
})

test('bytes that would favour a character are drawn again', () => {
  const bytes = [255, 255, 0, 254, 1]
  const random = (length: number) => Uint8Array.from(bytes.splice(0, length))
  expect(randomString(random, 'ABC', 2)).toBe('AC')
})

test('every character of the alphabet comes up evenly', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
  const counts = new Map<string, number>()
  for (const character of randomString(secureRandom, alphabet, 360_000)) {
    counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  expect(counts.size).toBe(36)
  // Twelve standard deviations around 10,000: a biased draw (byte % 36) puts four letters at +14 %.
  for (const count of counts.values()) expect(Math.abs(count - 10_000)).toBeLessThan(1200)
})
