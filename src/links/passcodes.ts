import { type RandomBytes, randomString } from '../lib/random.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
export const PASSCODE_LENGTH = 24

/** 24 of A–Z and 0–9: 124 random bits, so a fast hash is enough to store it. */
export const newPasscode = (random: RandomBytes): string =>
  randomString(random, ALPHABET, PASSCODE_LENGTH)
