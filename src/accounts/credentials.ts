/** Rules for the e-mail address and the password of an account. */

import { z } from 'zod'
import list from './common-passwords.txt' with { type: 'text' }
import { PASSWORD_MAX_LENGTH } from './passwords.ts'

const Email = z.email().max(254)

/** An e-mail address without spaces around it; undefined for a text that is not one. */
export const parseEmail = (text: string): string | undefined => Email.safeParse(text.trim()).data

export const PASSWORD_MIN_LENGTH = 8

const COMMON: ReadonlySet<string> = new Set(
  list.split('\n').filter((line) => line !== '' && !line.startsWith('# ')),
)

/**
 * What is wrong with a new password, as a sentence for its form; undefined if nothing is. `email`
 * is the account's; empty where it is not known.
 */
export function findPasswordProblem(password: string, email = ''): string | undefined {
  const length = [...password].length
  if (length < PASSWORD_MIN_LENGTH) return `Use at least ${PASSWORD_MIN_LENGTH} characters.`
  if (length > PASSWORD_MAX_LENGTH) return `Use at most ${PASSWORD_MAX_LENGTH} characters.`
  if (COMMON.has(password.toLowerCase())) {
    return 'This is one of the most common passwords. Choose another one.'
  }
  return findWeakness(password, email)
}

const SERVICE_NAME = 'hopcode'
/** Shorter words appear in too many good passwords. */
const WORD_MIN_LENGTH = 3
/** Digits and signs around a word. More of them make the password hard to guess. */
const AROUND_MAX_LENGTH = 8

/** U+2800 is a symbol that looks blank. */
const INVISIBLE = /^[\p{Z}\p{C}\p{Default_Ignorable_Code_Point}\u2800]*$/u

const SEASON_OR_MONTH =
  '(?:spring|summer|autumn|fall|winter|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?' +
  '|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const YEAR = '(?:19|20)?\\d\\d'
const SIGNS = '[^\\p{L}\\d]{0,3}'
const DATE = new RegExp(
  `^${SIGNS}(?:${SEASON_OR_MONTH}${SIGNS}${YEAR}|${YEAR}${SIGNS}${SEASON_OR_MONTH})${SIGNS}$`,
  'u',
)

/**
 * Finds passwords that are long enough, in no list, and still among the first that an attacker
 * tries. The caller bounds the password's length.
 */
function findWeakness(password: string, email: string): string | undefined {
  if (INVISIBLE.test(password)) {
    return 'This has only spaces and characters that cannot be seen. Use letters too.'
  }
  const text = password.normalize('NFKC').toLowerCase()
  if (new Set(text).size === 1) return 'This repeats one character. Use several words.'
  if (DATE.test(text)) {
    return 'This is a season or a month with a year, and among the first that others would try.'
  }
  const address = email.toLowerCase()
  const words = address.split(/[^\p{L}\p{M}]+/u)
  if (
    [[address], ...address.split('@').map((part) => [part]), words].some((some) =>
      consistsOf(text, some),
    )
  ) {
    return 'This is your e-mail address or a part of it. Use something that others cannot guess.'
  }
  if (consistsOf(text, [SERVICE_NAME])) {
    return 'This is the name of the service, Hopcode. Use something that others would not try here.'
  }
  return undefined
}

/** Whether the text is one or more of the words, with at most some digits and signs around. */
function consistsOf(text: string, words: readonly string[]): boolean {
  if (words.includes(text)) return true
  const bareText = trimToLetters(text)
  if (bareText === '' || text.length - bareText.length > AROUND_MAX_LENGTH) return false
  // The longest first: a word may contain another one.
  const bareWords = words.map(trimToLetters).sort((a, b) => b.length - a.length)
  const used = bareWords.filter(({ length }) => length >= WORD_MIN_LENGTH)
  return used.reduce((rest, word) => rest.replaceAll(word, ''), bareText) === ''
}

const trimToLetters = (text: string): string => text.replace(/^\P{L}+|\P{L}+$/gu, '')
