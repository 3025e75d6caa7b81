/** Passwords that are long enough, in no list, and still among the first that others would try. */

const SERVICE_NAME = 'hopcode'
/** Shorter words stand in too many good passwords. */
const WORD_MIN_LENGTH = 3
/** Digits and signs around a word: more of them are a secret of their own. */
const AROUND_MAX_LENGTH = 8

/** U+2800 is a symbol, and blank. */
const UNSEEN = /^[\p{Z}\p{C}\p{Default_Ignorable_Code_Point}\u2800]*$/u

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
 * Why a password of an account is easy to guess; undefined if it is not. `email` may be empty. The
 * password must be bounded in length.
 */
export function findWeakness(password: string, email: string): string | undefined {
  if (UNSEEN.test(password)) {
    return 'This has only spaces and characters that cannot be seen. Use letters too.'
  }
  const text = password.normalize('NFKC').toLowerCase()
  if (new Set(text).size === 1) return 'This repeats one character. Use several words.'
  if (DATE.test(text)) {
    return 'This is a season or a month with a year, and among the first that others would try.'
  }
  const address = email.toLowerCase()
  if ([address, ...address.split('@')].some((word) => isMadeOf(text, word))) {
    return 'This is your e-mail address or a part of it. Use something that nobody knows of you.'
  }
  if (isMadeOf(text, SERVICE_NAME)) {
    return 'This is the name of the service, Hopcode. Use something that nobody would try here.'
  }
  return undefined
}

/** Whether the text is a word, or one repeated, with no more than some digits and signs around. */
function isMadeOf(text: string, word: string): boolean {
  if (text === word) return true
  const bareWord = bare(word)
  const bareText = bare(text)
  if (bareWord.length < WORD_MIN_LENGTH || bareText === '') return false
  if (text.length - bareText.length > AROUND_MAX_LENGTH) return false
  return bareText.replaceAll(bareWord, '') === ''
}

/** Without what is no letter at both ends. */
const bare = (text: string): string => text.replace(/^\P{L}+|\P{L}+$/gu, '')
