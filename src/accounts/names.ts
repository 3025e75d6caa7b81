const NAME_LENGTH_MAX = 60

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
 * A name for an account. Undefined for any other text, also for a number or an address: with one,
 * an account could pass for another one, which has that number or address.
 */
export function parseAccountName(text: string): string | undefined {
  const name = parseKeyName(text)
  return name === undefined || name.includes('@') || /^\d+$/.test(name) ? undefined : name
}
