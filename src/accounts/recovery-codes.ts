import { type RandomBytes, randomString } from '../lib/random.ts'

/** Codes that replace the second factor once each, when its device is lost. */

export const RECOVERY_CODES = 10
/** Without look-alikes. Ten characters of it are 50 bits. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const LENGTH = 10
const SHAPE = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)

/** As they are stored, hashed; `showRecoveryCode` makes them readable. */
export const newRecoveryCodes = (random: RandomBytes): string[] =>
  Array.from({ length: RECOVERY_CODES }, () => randomString(random, ALPHABET, LENGTH))

export const showRecoveryCode = (code: string): string => `${code.slice(0, 5)}-${code.slice(5)}`

/** A code as it was typed, in any letter case, with or without the dash; undefined for no code. */
export function parseRecoveryCode(text: string): string | undefined {
  const code = text.replace(/[\s-]/g, '').toUpperCase()
  return SHAPE.test(code) ? code : undefined
}
