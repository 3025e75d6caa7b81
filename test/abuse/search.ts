/** Worst cases for searches and for the search index: URLs to store, and texts to search for. */

export const URL_START = 'https://x.example/'
const LONGEST = 8150
/** A character of three bytes is nine when it is encoded. */
const LONGEST_WIDE = 900
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

/** A linear congruential generator with the constants of Numerical Recipes: the same for a seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** URLs of one repeated letter, whose every part matches: each ends in a number of its own. */
export function repeatedUrls(count: number, letter = 'a'): string[] {
  return Array.from({ length: count }, (_, n) => `${URL_START}${letter.repeat(LONGEST)}${n}`)
}

/** Longest URLs of random letters: each has as many trigrams as a URL can have. */
export function randomUrls(count: number, seed = 1): string[] {
  const below = numbers(seed)
  const letters = (length: number) =>
    Array.from({ length }, () => LETTERS[below(LETTERS.length)]).join('')
  return Array.from({ length: count }, () => URL_START + letters(LONGEST))
}

/** The same with characters of three bytes, whose trigrams no two URLs share. */
export function randomWideUrls(count: number, seed = 1): string[] {
  const below = numbers(seed)
  const letters = (length: number) =>
    Array.from({ length }, () => String.fromCharCode(0x4e00 + below(20_000))).join('')
  return Array.from({ length: count }, () => URL_START + letters(LONGEST_WIDE))
}

/** URLs of about 100 characters. Every third has `summer`; every one has the parts of `TRAPS`. */
export function shortUrls(count: number, seed = 1): string[] {
  const below = numbers(seed)
  return Array.from({ length: count }, (_, n) => {
    const season = n % 3 === 0 ? 'summer' : 'winter'
    const tag = below(2 ** 32).toString(36)
    return `https://shop.example/${season}/abcx-bcdx-cdex-defx?utm_source=mail&item=${n}&tag=${tag}`
  })
}

/** Texts all of whose trigrams are in every URL of `shortUrls`, though no URL has the text. */
export const TRAPS = ['abcdef', 'ttps://shop.example/utm_source', 'mail&item=utm_source']

/** Texts of every length that is allowed, which match all, some or none of the URLs above. */
export const SEARCH_TEXTS: readonly string[] = [
  'h',
  'tt',
  'htt',
  'https',
  'a',
  'zz',
  'summer',
  'qqqxyzzyqqq',
  'a'.repeat(200),
  `${'a'.repeat(199)}b`,
  `b${'a'.repeat(199)}`,
  `${'a'.repeat(100)}b${'a'.repeat(99)}`,
  'ab'.repeat(100),
  `${'https://shop.example/summer/abcx-bcdx-cdex-defx?utm_source=mail&item='.padEnd(199, 'q')}x`,
  '一',
  'É'.repeat(200),
  ...TRAPS,
]
