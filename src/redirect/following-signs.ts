/**
 * Signs that apps take for a part of a URL that stands in a text: punctuation of any script except
 * that of URLs, brackets, quotes, blanks and characters without a width.
 */
const SIGN = /^(?![#%&/@\\_-])[\p{P}\p{Z}\p{Cf}<>|~`´]$/u

/** A decoded path without such signs at its end. Takes linear time. */
export function withoutSigns(path: string): string {
  let end = path.length
  while (end > 0 && SIGN.test(path.charAt(end - 1))) end--
  return path.slice(0, end)
}
