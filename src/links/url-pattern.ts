/**
 * What the API description says of a URL, as a pattern. Whatever matches is accepted, unless it is
 * too long once it is percent-encoded. What does not match is refused, but for hosts that no
 * pattern can tell: those of other scripts, those in percent-encoding, and rare spellings of an IP
 * address. Written so that ECMAScript, Python and Rust read it alike.
 */

/** Latin, Cyrillic, Kana, Han and Hangul: no letter that the parser refuses or drops. */
const BEYOND_ASCII =
  '\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u024f\\u0400-\\u0481' +
  '\\u3041-\\u3096\\u30a1-\\u30fa\\u4e00-\\u9fff\\uac00-\\ud7a3'
/** WHATWG's URL standard lets a host hold many signs. */
const NO_DIGIT = `A-Za-z!"$&'()*+,;=_\`{}~${BEYOND_ASCII}-`
/** The last label is no number, or the parser reads an IPv4 address. */
const NAME = `[0-9.${NO_DIGIT}]{0,500}?(?:[1-9][0-9]{0,9})?[${NO_DIGIT}][0-9${NO_DIGIT}]{0,500}\\.?`

const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const IPV4 = `(?:(?:${BYTE}\\.){3}${BYTE}|[1-9][0-9]{0,8}|0[0-7]{0,9})\\.?`
const HEX = '[0-9A-Fa-f]{1,4}'
const SOME_HEX = `(?:${HEX}(?::${HEX}){0,2})?`
const IPV6 = `\\[(?:(?:${HEX}:){7}${HEX}|${SOME_HEX}::${SOME_HEX})\\]`

const NOT_PLAIN =
  '\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
const USER = `(?:[^/?#\\\\${NOT_PLAIN}]*@)?`
const PORT =
  '(?::0*(?:[0-9]{0,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?'
const PATH = `(?:[/?#\\\\][^${NOT_PLAIN}]*)?`

const HOST = `(?:${NAME}|${IPV4}|${IPV6})`

export const URL_PATTERN = `^[hH][tT][tT][pP][sS]?://${USER}${HOST}${PORT}${PATH}$`
