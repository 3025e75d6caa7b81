const NAME_LENGTH_MAX = 60

export const BAD_KEY_NAME = `must have 1 to ${NAME_LENGTH_MAX} characters`

/** A name for a key: 1 to 60 characters. Undefined for any other text. */
export function parseKeyName(text: string): string | undefined {
  const spaced = text.trim().replace(/\s+/g, ' ')
  // The time of `normalize` is quadratic. It makes one character of at most four units.
  if (spaced.length > 4 * NAME_LENGTH_MAX) return undefined
  const name = spaced.normalize('NFC')
  const isName = name !== '' && [...name].length <= NAME_LENGTH_MAX && !/\p{C}/u.test(name)
  return isName ? name : undefined
}

export const BAD_NAME = `must have 1 to ${NAME_LENGTH_MAX} characters, no @ and not only digits`

/**
 * A name for an account. Undefined for any other text, also for one that looks like a number or an
 * address: with one, an account could pass for another one, which has that number or address.
 * `before`: the name that it has, which is always accepted.
 */
export function parseAccountName(text: string, before: string): string | undefined {
  if (text.trim() === before) return before
  const name = parseKeyName(text)
  // Wide and circled forms become plain ones; marks and signs without width go.
  const seen = name?.normalize('NFKC').replace(/[\p{M}\p{DI}\s]/gu, '') ?? ''
  return /@|^\p{Nd}*$/u.test(seen) ? undefined : name
}

/** Second labels of countries, as in `acme.co.uk`. */
const SECOND_LABEL = /^(ac|co|com|edu|gov|net|or|org)$/

/**
 * A name for an account from a host: “Acme” for `go.acme.example`. Undefined for an address, and
 * for a name without a dot.
 */
export function nameOfHost(host: string): string | undefined {
  const labels = host.split('.')
  const [third, second, last] = labels.slice(-3).length < 3 ? ['', ...labels] : labels.slice(-3)
  if (!second || !last || /^\d/.test(last)) return undefined
  const [first = '', ...rest] = third && SECOND_LABEL.test(second) ? third : second
  return parseAccountName(first.toUpperCase() + rest.join(''), '')
}
