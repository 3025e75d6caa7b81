import { assert } from './assert.ts'

/** Returns `length` random bytes. Tests pass a seeded one. */
export type RandomBytes = (length: number) => Uint8Array

export const secureRandom: RandomBytes = (length) => crypto.getRandomValues(new Uint8Array(length))

/**
 * A string of `length` characters, each drawn evenly from `alphabet` (2 to 256 characters).
 * Bytes past the last whole multiple of the alphabet are drawn again, so no character is favoured.
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
