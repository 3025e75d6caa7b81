/** Worst cases for searches and for the search index. */

const URL_START = 'https://x.example/'
const LONGEST = 8150
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
