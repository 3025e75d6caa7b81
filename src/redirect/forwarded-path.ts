import { PATH_BYTES_MAX } from '../addresses/address.ts'
import { decodePercent } from '../lib/percent.ts'
import { encodeExcluded } from '../links/link.ts'

/** Segments that are cut from the end of a path, at most. */
const SEGMENTS_MAX = 8
/** An address takes at most three characters for each of its bytes. */
const ADDRESS_LENGTH_MAX = 3 * PATH_BYTES_MAX

/** A path in two parts, both as they were sent. */
export interface CutPath {
  /** What may be the address of a link. */
  address: string
  /** What follows it, without the slash between them. */
  rest: string
}

/**
 * The ways to cut a path that names no link, without its first slash: the longest address first.
 * None behind a rest that no destination can get. Takes a bounded time.
 */
export function* cutsOf(path: string): Generator<CutPath> {
  let end = path.length
  // A slash at the end belongs to the last segment.
  let at = path.lastIndexOf('/', end - 2)
  for (let cut = 0; cut < SEGMENTS_MAX && at > 0; cut++) {
    if (!isForwardable(path.slice(at + 1, end))) return
    if (at <= ADDRESS_LENGTH_MAX) yield { address: path.slice(0, at), rest: path.slice(at + 1) }
    end = at
    at = path.lastIndexOf('/', end - 1)
  }
}

/** Decodings after which a text is refused that still changes. */
const DECODINGS_MAX = 3

/**
 * Whether a segment, however often a server decodes it, stays a part of the path below the
 * destination: it is not empty, and has no dot segment and no backslash.
 */
function isForwardable(segment: string): boolean {
  let text = segment.endsWith('/') ? segment.slice(0, -1) : segment
  for (let n = 0; n < DECODINGS_MAX; n++) {
    if (text.includes('\\') || text.split('/').some((part) => /^\.{0,2}$/.test(part))) return false
    const decoded = decodePercent(text)
    if (decoded === undefined) return n > 0
    if (decoded === text) return true
    text = decoded
  }
  return false
}

/** HOT PATH. The destination with `rest` at the end of its path. It has no fragment. */
export function withPath(location: string, rest: string): string {
  const query = location.indexOf('?')
  const address = query < 0 ? location : location.slice(0, query)
  const slash = address.endsWith('/') ? '' : '/'
  return `${address}${slash}${encodeExcluded(rest)}${query < 0 ? '' : location.slice(query)}`
}
