import { crc32 } from 'node:zlib'
import { type RandomBytes, randomString } from '../lib/random.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX = 'hop_'
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`)

/**
 * `hop_`, 30 random base62 characters (178 bits), and a checksum that tells a typing error without
 * a look-up.
 */
export function newApiKey(random: RandomBytes): string {
  const body = PREFIX + randomString(random, BASE62, RANDOM_LENGTH)
  return body + checksum(body)
}

export function isApiKey(text: string): boolean {
  if (!SHAPE.test(text)) return false
  const body = text.slice(0, -CHECKSUM_LENGTH)
  return checksum(body) === text.slice(-CHECKSUM_LENGTH)
}

/** CRC-32 (ISO 3309) in base62, most significant digit first. */
function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
