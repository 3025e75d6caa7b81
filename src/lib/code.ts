import { type RandomBytes, randomString } from './random.ts'

declare const brand: unique symbol

/** 6 to 20 of A–Z and 0–9, always in upper case. */
export type Code = string & { readonly [brand]: 'Code' }

/** Letters and digits except I, O, 0 and 1, which are easily confused on paper. */
const GENERATED_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const GENERATED_LENGTH = 8

/** ASCII only, checked before upper-casing: `ß`.toUpperCase() is two letters. */
export const CODE_PATTERN = /^[A-Za-z0-9]{6,20}$/

/** Accepts any letter case. Undefined: the text cannot be a code. */
export function toCode(text: string): Code | undefined {
  return CODE_PATTERN.test(text) ? (text.toUpperCase() as Code) : undefined
}

/** 8 characters, 40 random bits. */
export const newCode = (random: RandomBytes): Code =>
  randomString(random, GENERATED_ALPHABET, GENERATED_LENGTH) as Code
