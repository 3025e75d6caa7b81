import type { FollowRequest } from './follow.ts'

/** The longest head that is read here, and the longest that Bun's server reads. */
const HEAD_MAX = 8 * 1024
const FORWARDED_HEAD_MAX = 16 * 1024

/**
 * The headers of a request in the grammar of RFC 9112, without its leniencies: at most 64, one line
 * each, without control characters.
 */
const HEADERS = String.raw`(?:[\w!#$%&'*+.^\x60|~-]{1,64}:[\t -~\x80-\xff]*\r\n){1,64}\r\n$`
/** At most `SEGMENTS_MAX` segments, of which none is a dot segment, empty or encoded. */
const BEHIND = String.raw`(?:/[\w~-][\w.~-]*){1,8}`
const PLAIN = new RegExp(
  String.raw`^GET /([A-Za-z0-9_-]+)(${BEHIND})?(?:\?([!-~]*))? HTTP/1\.([01])\r\n${HEADERS}`,
)
/** With one of these, the request has a body, belongs to an account or is no simple one. */
const UNUSUAL = unusual(
  'x-api-key:|authorization:[ \\t]*bearer|content-length:|transfer-encoding:|expect:|upgrade:',
  'keep-alive|close',
)
const HOST = /\nhost:/i
const CLOSE = /\nconnection:\s*close\s*\r/i

const START = /^[A-Z-]{1,24}(?:$| (?:$|[/*hH]))/
const BROKEN_LINE = /[^\r]\n|\r[^\n]/

/** Whether `text` may be the beginning of a head: nothing is done with it until it is complete. */
export const isHeadStart = (text: string): boolean =>
  text.length <= FORWARDED_HEAD_MAX && START.test(text) && !BROKEN_LINE.test(text)

/** A request for a short link that a redirect thread can answer. */
export class PlainRequest implements FollowRequest {
  /** The first segment of the path. */
  readonly text: string
  readonly rest: string | undefined
  /** Query without its question mark. */
  readonly query: string
  readonly isHit = true
  /** The connection ends after the response. */
  readonly isLast: boolean
  readonly head: string

  private constructor(head: string, match: RegExpExecArray) {
    this.head = head
    this.text = match[1] as string
    this.rest = match[2]?.slice(1)
    this.query = match[3] ?? ''
    this.isLast = match[4] === '0' || CLOSE.test(head)
  }

  /** HOT PATH. `head`: with its empty line. Undefined: another parser must read it. */
  static read(head: string): PlainRequest | undefined {
    const match = head.length <= HEAD_MAX ? PLAIN.exec(head) : null
    if (match === null || UNUSUAL.test(head) || !HOST.test(head)) return undefined
    return new PlainRequest(head, match)
  }

  get(name: string): string | null {
    return headerOf(this.head, name)
  }
}

/** Value as `Headers.get` gives it: lines of one name are joined. `name`: in lower case. */
export function headerOf(head: string, name: string): string | null {
  const line = lineOf(name)
  line.lastIndex = 0
  const first = line.exec(head)
  if (first === null) return null
  let value = first[1] as string
  for (let next = line.exec(head); next; next = line.exec(head)) value += `, ${next[1]}`
  return value
}

const patterns = new Map<string, RegExp>()

/** `name`: of the program, never of a client. */
function lineOf(name: string): RegExp {
  let pattern = patterns.get(name)
  if (!pattern) {
    // Nothing follows the value: with a pattern for the blanks behind it, the search is quadratic.
    pattern = new RegExp(`\\n${name}:[ \\t]*((?:.*[^ \\t\\r])?)`, 'gi')
    patterns.set(name, pattern)
  }
  return pattern
}

/** The response to a request without such a target. */
export const BAD_TARGET =
  'HTTP/1.1 400 Bad Request\r\nCache-Control: no-store\r\nConnection: close\r\n' +
  'Content-Length: 0\r\n\r\n'

const ABSOLUTE = /^([A-Z]+) https?:\/\/([^/?#@\s]+)(\/[^\s?#]*)?(\?[^\s]*)? HTTP\/1\.([01])\r\n/i
/** A path, or `*` of OPTIONS, as the target; or no target yet. */
const PATH_TARGET = /^\S+ [/*]|^\S*$/
/** The longest method that Bun's server knows, and the first character of the target. */
const TARGET_START = 32

/**
 * Bytes with a path as the target of their first request. The host of an absolute target replaces
 * that of `Host`, as RFC 9112, section 3.2.2, demands; Bun's server would use `Host`. Undefined for
 * any other target, and for an absolute one in an incomplete head.
 */
export function withPathTarget(bytes: Buffer): Buffer | undefined {
  if (PATH_TARGET.test(bytes.toString('latin1', 0, TARGET_START))) return bytes
  const end = bytes.indexOf('\r\n\r\n') + 4
  const head = bytes.toString('latin1', 0, end)
  const match = end < 4 ? null : ABSOLUTE.exec(head)
  if (match === null) return undefined
  const [line, method, host, path = '/', query = '', version] = match
  const headers = head.slice(line.length).replace(/^host:[^\r\n]*\r\n/gim, '')
  const start = `${method} ${path}${query} HTTP/1.${version}\r\nHost: ${host}\r\n`
  return Buffer.concat([Buffer.from(start + headers, 'latin1'), bytes.subarray(end)])
}

const CLOSING = Buffer.from('Connection: close\r\n')

/** A request whose end is in doubt, as the last one that Bun's server reads of its connection. */
export function asLast(bytes: Buffer): Buffer {
  const line = bytes.indexOf('\r\n') + 2
  return line < 2 ? bytes : Buffer.concat([bytes.subarray(0, line), CLOSING, bytes.subarray(line)])
}

/** Any request that is as plain, apart from its method, path and headers. */
const FRAMED = new RegExp(String.raw`^([A-Z]+) /[!-~]* HTTP/1\.1\r\n${HEADERS}`)
const UNFRAMED = unusual('transfer-encoding:|expect:|upgrade:', 'keep-alive')
const LENGTH = /\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r/i
const LENGTHS = /\ncontent-length/gi

/** The bytes of body behind the head of a request; undefined if the head leaves any doubt. */
export function bodyLengthOf(head: string): { method: string; bodyLength: number } | undefined {
  const method = FRAMED.exec(head)?.[1]
  if (method === undefined || method === 'CONNECT' || UNFRAMED.test(head)) return undefined
  const lengths = head.match(LENGTHS)?.length ?? 0
  if (lengths === 0) return { method, bodyLength: 0 }
  const length = LENGTH.exec(head)?.[1]
  const isClear = lengths === 1 && length !== undefined && method !== 'GET' && method !== 'HEAD'
  return isClear ? { method, bodyLength: Number(length) } : undefined
}

/** A pattern of headers with these beginnings, and of `Connection` with other options. */
function unusual(beginnings: string, options: string): RegExp {
  return new RegExp(String.raw`\n(?:${beginnings}|connection:(?!\s*(?:${options})\s*\r))`, 'i')
}
