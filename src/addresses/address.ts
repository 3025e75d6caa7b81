import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { decodePercent } from '../lib/percent.ts'

/** Addresses of short links, as they are stored and compared: a domain, and a path on it. */

export interface Address {
  /** `PRIMARY_ID`, or the id of a row of `domains`. */
  domainId: number
  /** In the form of `canonicalPath`, decoded and without its first slash. */
  path: string
}

/** The id of no domain: of a host that a request names and the service does not have. */
export const NO_DOMAIN = -1

export const isOnPrimary = ({ domainId }: Pick<Address, 'domainId'>): boolean =>
  domainId === PRIMARY_ID

export const isSameAddress = (one: Address, other: Address): boolean =>
  one.path === other.path && one.domainId === other.domainId

/** Whether the list has the address. */
export const hasAddress = (list: readonly Address[], address: Address): boolean =>
  list.some((one) => isSameAddress(one, address))

/** Equal for equal addresses. */
export const addressKey = ({ domainId, path }: Address): string => `${domainId}/${path}`

/** Reads a text of `addressKey`. */
export function addressOfKey(key: string): Address {
  const slash = key.indexOf('/')
  return { domainId: Number(key.slice(0, slash)), path: key.slice(slash + 1) }
}

/** Tables have null for the primary domain: an index has the links of all others. */
export const readDomainId = (cell: number | null): number => cell ?? PRIMARY_ID
export const domainCell = (domainId: number): number | null =>
  domainId === PRIMARY_ID ? null : domainId

/** SQL: the domain of a row, where the column has null for the primary one. */
export const domainIdOf = (column: string): string => `coalesce(${column}, ${PRIMARY_ID})`

/** An address as a request or a file names it. */
export interface NamedAddress {
  /** Null for the primary domain. */
  host: string | null
  path: string
}

/** The path, or `//go.example/menu` for a domain that is not the primary one. */
export const addressText = ({ host, path }: NamedAddress): string =>
  host === null ? path : `//${host}/${path}`

/** Reads a text of `addressText`. No path begins with a slash. */
export function parseAddress(text: string): NamedAddress {
  const [, host = null, path = text] = /^\/\/([^/]+)\/(.*)$/s.exec(text) ?? []
  return { host, path }
}

export const PATH_BYTES_MAX = 255
/** Composition makes one character of at most four units. The time of `normalize` is quadratic. */
const DECOMPOSED_MAX = 4 * PATH_BYTES_MAX

/**
 * A path as aliases are stored and found: in Unicode's form NFC. Keyboards and file systems write
 * `ü` as one character or as two, which look alike. A text too long for an alias stays as it is.
 */
export const canonicalPath = (path: string): string =>
  path.length > DECOMPOSED_MAX ? path : path.normalize('NFC')

/** The path by which an alias in any case is found. */
export const smallPath = (path: string): string => path.toLowerCase()

/** Why a canonical path, without its first slash, cannot be an alias; undefined if it can. */
export function findPathProblem(path: string): string | undefined {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `must have at most ${PATH_BYTES_MAX} bytes`
  if (!path.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}\\?#]/u.test(path)) {
    return 'must not contain control characters, \\, ? or #'
  }
  if (path.split('/').some((segment) => /^\.{0,2}$/.test(segment))) {
    return 'must not be empty, or have a segment that is empty, . or ..'
  }
  return undefined
}

/** One slash at the end of a path counts for nothing: programs add it, and no alias ends so. */
export const withoutLastSlash = (path: string): string =>
  path.endsWith('/') ? path.slice(0, -1) : path

/** The code or alias that is looked up for the path of a URL. */
export const lookedUp = (path: string): string =>
  withoutLastSlash((decodePercent(path) ?? path).slice(1))

/** One text for an unknown domain and for one that the account may not use. */
export const BAD_DOMAIN = 'Invalid domain: must be one of GET /api/domains'

/** The longest name that DNS can carry. */
export const DNS_NAME_MAX = 253

/** The longest host whose short URLs fit a QR code of 64 pixels at one pixel per module. */
export const HOST_LENGTH_MAX = 92

const PLAIN = /^[a-z0-9.-]+$/
/** What ends a host in a URL, or does not belong to one. */
const NO_HOST = /[\s/?#@\\,[\]]/

/**
 * The host of a `Host` line or an address without scheme: in small letters and punycode, without a
 * port and a dot at its end. Undefined for a text that names none, and for an IPv6 address. Two
 * spellings of one host have the same result.
 */
export function canonicalHost(text: string): string | undefined {
  const host = text.toLowerCase().replace(/:.*$/s, '').replace(/\.$/, '')
  if (PLAIN.test(host)) return host
  if (host === '' || host.length > 4 * HOST_LENGTH_MAX || NO_HOST.test(host)) return undefined
  return URL.parse(`http://${host}`)?.hostname.replace(/\.$/, '')
}

const IP_ADDRESS = /\.\d+$/

/**
 * Whether a `Host` line with this `canonicalHost` is an address, a name without a dot or empty:
 * that of a health check or in the same network, not a name that anybody can register.
 */
export const isLocalHost = (line: string, host: string | undefined): boolean =>
  host === undefined
    ? /^(\[[\da-f:.]+\])?(:\d*)?$/i.test(line)
    : !host.includes('.') || IP_ADDRESS.test(host)

/** The value of a `Host` line, whose bytes were read as latin-1. */
export const fromLatin1 = (text: string): string =>
  /[^\0-\x7f]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text

const LABEL = '(?!-)[a-z0-9-]{1,63}(?<!-)'
const HOST_NAME = new RegExp(`^${LABEL}(\\.${LABEL})+$`)

/** Why a host in the form of `canonicalHost` cannot be a domain; undefined if it can. */
export function findHostProblem(host: string | undefined): string | undefined {
  if (host === undefined || !HOST_NAME.test(host)) {
    return 'must be a host name such as go.example, without scheme and port'
  }
  if (IP_ADDRESS.test(host)) return 'must be a name, not an IP address'
  if (host.length > HOST_LENGTH_MAX) return `must have at most ${HOST_LENGTH_MAX} characters`
  // The parser refuses labels that are no valid punycode.
  return URL.parse(`http://${host}`)?.hostname === host ? undefined : 'must be a valid host name'
}
