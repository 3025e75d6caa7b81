import { type RandomBytes, randomString } from './random.ts'

declare const brand: unique symbol

/** 6 to 20 of A–Z and 0–9: what a code looks like once it is uppercased. */
export type Code = string & { readonly [brand]: 'Code' }

/** Without I, O, 0 and 1, which people mistake for one another on paper. */
const GENERATED_ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const GENERATED_LENGTH = 8

/** ASCII only, judged before uppercasing: `ß`.toUpperCase() is two letters. */
export const CODE_PATTERN = /^[A-Za-z0-9]{6,20}$/

/** The code that a caller means, in any letter case; undefined when the text cannot be one. */
export function toCode(text: string): Code | undefined {
  return CODE_PATTERN.test(text) ? (text.toUpperCase() as Code) : undefined
}

/** 8 characters, 40 random bits. */
export const newCode = (random: RandomBytes): Code =>
  randomString(random, GENERATED_ALPHABET, GENERATED_LENGTH) as Code
