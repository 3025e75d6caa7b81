/**
 * A URL as pages show it: in ASCII, so that no letter passes for another, and of about 200
 * characters at most. Its host is always there, so that neither a name before an @ nor a long
 * beginning of the host passes for it. The work does not grow with the length of the URL.
 */

/** In bytes of markup: URLs with many ampersands are cut earlier. */
const SHOWN_MAX = 200
const USER_MAX = 30
const HOST_MAX = 80
/** Longer hosts are not converted to ASCII as a whole: no DNS name has more characters. */
const HOST_PARSED_MAX = 253

export interface ShownUrl {
  /** The scheme, and what stands before an @. */
  start: string
  host: string
  /** Path, query and fragment. */
  rest: string
  /** Nothing was left out: the parts together are the URL. */
  isWhole: boolean
}

/** WHATWG URLs skip any number of slashes before the host. */
const PARTS = /^(https?:[/\\]+)(?:([^/?#\\]*)@)?([^/?#\\]*)/i

export function shownUrl(url: string): ShownUrl {
  const [before = '', scheme = '', user, sentHost = ''] = PARTS.exec(url) ?? []
  const start = scheme.slice(0, USER_MAX) + (user === undefined ? '' : `${cut(user, USER_MAX)}@`)
  const host = shownHost(sentHost)
  const room = SHOWN_MAX - markupLength(start + host)
  const rest = cut(url.slice(before.length), Math.max(0, room))
  const isCut = scheme.length > USER_MAX || `${start}${host}${rest}`.includes('…')
  return { start, host, rest, isWhole: !isCut && room >= 0 }
}

function shownHost(host: string): string {
  const isAscii = /^[\x21-\x7e]*$/.test(host)
  const parsed =
    isAscii || host.length > HOST_PARSED_MAX ? undefined : URL.parse(`http://${host}`)?.host
  const shown = isAscii ? host : (parsed ?? inAscii(host.slice(-HOST_MAX)))
  return shown.length > HOST_MAX ? `…${shown.slice(-HOST_MAX)}` : shown
}

/** The beginning of a text in ASCII, with an ellipsis where more of it follows. */
function cut(text: string, bytesMax: number): string {
  const encoded = inAscii(text.slice(0, bytesMax + 1))
  if (text.length <= bytesMax && markupLength(encoded) <= bytesMax) return encoded
  let bytes = 0
  let end = 0
  while (end < encoded.length && bytes < bytesMax) {
    bytes += SPECIAL.includes(encoded.charAt(end++)) ? SPECIAL_LENGTH : 1
  }
  return `${encoded.slice(0, end).replace(/%[\da-f]?$/i, '')}…`
}

const inAscii = (text: string): string =>
  text.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent)

const SPECIAL = '&<>"\''
/** Of `&quot;`, the longest. */
const SPECIAL_LENGTH = 6

/** Of ASCII, at most. */
function markupLength(text: string): number {
  const special = text.length - text.replace(/[&<>"']/g, '').length
  return text.length + special * (SPECIAL_LENGTH - 1)
}
