import { assert } from './assert.ts'

/** Returns `length` random bytes. Tests pass a seeded function. */
export type RandomBytes = (length: number) => Uint8Array

export const secureRandom: RandomBytes = (length) => crypto.getRandomValues(new Uint8Array(length))

/**
 * A string of `length` characters, drawn uniformly from `alphabet` (2 to 256 characters). Bytes at
 * or above the last multiple of the alphabet's length are rejected: otherwise some characters would
 * be more likely.
 */
export function randomString(random: RandomBytes, alphabet: string, length: number): string {
  assert(alphabet.length >= 2 && alphabet.length <= 256, 'an alphabet has 2 to 256 characters')
  const limit = 256 - (256 % alphabet.length)
  let text = ''
  while (text.length < length) {
    for (const byte of random(length - text.length)) {
      if (byte < limit) text += alphabet[byte % alphabet.length]
    }
  }
  return text
}
