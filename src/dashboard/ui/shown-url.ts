import { DNS_NAME_MAX } from '../../addresses/address.ts'
import { readableHost } from '../../addresses/shown-host.ts'
import { type Html, html } from '../../lib/html.ts'
import { decodePercent } from '../../lib/percent.ts'

/**
 * Shortens a destination for a page, to about 200 characters, and decodes what people read. The
 * host is always shown, so that neither a user name before an @ nor a long prefix of the host can
 * be mistaken for it; it is in Unicode only where no character imitates another. The cost does not
 * grow with the length of the URL.
 */

/** Characters. */
const SHOWN_MAX = 200
const USER_MAX = 30
const HOST_MAX = 80
/** One character takes at most twelve when it is encoded. */
const ENCODED_MAX = 12

interface ShownUrl {
  /** The scheme, and the user before an @. */
  start: string
  host: string
  /** Path, query and fragment. */
  rest: string
  /** The parts together name the complete URL. */
  isWhole: boolean
}

/** WHATWG URLs skip any number of slashes before the host. */
const PARTS = /^(https?:[/\\]+)(?:([^/?#\\]*)@)?([^/?#\\]*)/i

/**
 * `search`: the URL is cut in front of a match, if it has one that would otherwise be far behind
 * the host.
 */
export function shownUrl(url: string, search = ''): ShownUrl {
  const [before = '', scheme = '', user, sentHost = ''] = PARTS.exec(url) ?? []
  const start =
    scheme.slice(0, USER_MAX) + (user === undefined ? '' : `${cut(inAscii, user, USER_MAX)}@`)
  const host = shownHost(sentHost)
  const room = SHOWN_MAX - (start + host).length
  const path = url.slice(before.length)
  const skipped = skippedBefore(path, search)
  const lead = skipped > 0 ? `${path.slice(0, 1)}…` : ''
  const rest = lead + cut(readable, path.slice(skipped), Math.max(0, room - lead.length))
  const isCut = scheme.length > USER_MAX || `${start}${host}${rest}`.includes('…')
  return { start, host, rest, isWhole: !isCut && room >= 0 }
}

/** A match this far behind the host is visible without a cut. */
const NEAR_MAX = 16
/** Characters that are shown in front of a match. */
const CONTEXT = 8

function skippedBefore(path: string, search: string): number {
  const at = search === '' ? -1 : path.toLowerCase().indexOf(search.toLowerCase())
  return at > NEAR_MAX ? at - CONTEXT : 0
}

/** Parts of one text; the first match of a search in the whole text is marked. */
export function markMatch(parts: readonly string[], search: string): Html[] {
  const at = search === '' ? -1 : parts.join('').toLowerCase().indexOf(search.toLowerCase())
  let offset = 0
  return parts.map((part) => {
    const from = Math.max(0, at - offset)
    const to = Math.min(part.length, at + search.length - offset)
    offset += part.length
    if (at < 0 || from >= to) return html`${part}`
    return html`${part.slice(0, from)}<mark>${part.slice(from, to)}</mark>${part.slice(to)}`
  })
}

function shownHost(host: string): string {
  const isAscii = /^[\x21-\x7e]*$/.test(host)
  const parsed =
    isAscii || host.length > DNS_NAME_MAX ? undefined : URL.parse(`http://${host}`)?.host
  const shown = isAscii ? host : (parsed ?? inAscii(host.slice(-HOST_MAX)))
  return shown.length > HOST_MAX ? `…${shown.slice(-HOST_MAX)}` : readableHost(shown)
}

/** The start of a text as `show` returns it, with an ellipsis if it was cut. */
function cut(show: (text: string) => string, text: string, lengthMax: number): string {
  const beginning = text.slice(0, ENCODED_MAX * (lengthMax + 1))
  const shown = show(beginning)
  if (text.length === beginning.length && shown.length <= lengthMax) return shown
  const start = shown.slice(0, lengthMax).replace(/[\ud800-\udbff]$|%[\da-f]?$/i, '')
  return `${start}…`
}

const inAscii = (text: string): string =>
  text.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent)

/** Letters, digits and emoji of any script; all other characters stay encoded. */
const READABLE = /^[\p{L}\p{M}\p{N}\p{Emoji_Presentation}]$/u

/** Path, query and fragment as people read them. What is encoded in ASCII stays encoded. */
export const readable = (text: string): string =>
  inAscii(text).replace(/(?:%[89a-f][\da-f])+/gi, (encoded) => {
    const decoded = decodePercent(encoded)
    if (decoded === undefined) return encoded
    return [...decoded]
      .map((character) => (READABLE.test(character) ? character : encodeURIComponent(character)))
      .join('')
  })
