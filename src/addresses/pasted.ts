/** What people paste or share: a URL or a short URL within other text. */

// Invisible characters that programs and keyboards add: soft hyphen, zero-width characters, word
// joiner, byte order mark, and the marks of the direction of writing.
const INVISIBLE = String.raw`\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff`
const INVISIBLE_START = new RegExp(`^[\\s${INVISIBLE}]+`, 'u')
const INVISIBLE_END_SIGN = new RegExp(`[\\s${INVISIBLE}]`, 'u')

/** The text without spaces and invisible characters at its ends. */
export function withoutInvisible(text: string): string {
  const start = text.replace(INVISIBLE_START, '')
  // A loop: the time of a pattern that ends with `$` is quadratic for many such characters within.
  let end = start.length
  while (end > 0 && INVISIBLE_END_SIGN.test(start[end - 1] as string)) end--
  return start.slice(0, end)
}

/** Signs that stand before a URL in a text, and behind it; `+` asks for a preview. */
const OPENING = /^[([{<"'«‹“”„‘‚「『（【《〈]+/u
const CLOSING = /[+)\]}>"'»›”“’‘」』）】》〉.,;:!?…。，、；：！？/]/u
/** Signs that are removed one by one. */
const SIGNS_MAX = 8

/** The text, and the same without signs around it: fewer and fewer, the whole one first. */
export function peelings(text: string): string[] {
  const found = [text]
  let rest = text.replace(OPENING, '')
  found.push(rest)
  for (let signs = 0; signs < SIGNS_MAX && CLOSING.test(rest.at(-1) ?? ''); signs++) {
    rest = rest.slice(0, -1)
    found.push(rest)
  }
  return [...new Set(found)].filter((one) => one !== '')
}

/** A URL within a text ends at a space, a quotation mark or a sign of East Asian punctuation. */
const URL_IN_TEXT = /https?:\/\/[^\s<>"«»“”„…，。、；：！？「」『』（）【】《》〈〉\u3000]+/iu
const BRACKETS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }

/** The first URL in a text that an app shares, without the punctuation of its sentence. */
export function findUrl(text: string): string | undefined {
  let url = withoutInvisible(URL_IN_TEXT.exec(text)?.[0] ?? '')
  while (endsWithPunctuation(url)) url = withoutInvisible(url.slice(0, -1))
  return /^https?:\/\/./i.test(url) ? url : undefined
}

/** A closing bracket belongs to the URL if it was opened there: `…/wiki/Foo_(bar)`. */
function endsWithPunctuation(url: string): boolean {
  const last = url.at(-1) ?? ''
  const opening = BRACKETS[last]
  if (opening === undefined) return /[.,;:!?'‘’‹›|*]/u.test(last)
  return url.split(last).length > url.split(opening).length
}
