/** Hosts of short links, as they are stored and compared. */

/** One text for an unknown domain and for one that the account may not use. */
export const BAD_DOMAIN = 'Invalid domain: must be one of GET /api/domains'

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

const ADDRESS = /\.\d+$/

/**
 * Whether a `Host` line with this `canonicalHost` is an address, a name without a dot or empty:
 * that of a health check or in the same network, not a name that anybody can register.
 */
export const isLocalHost = (line: string, host: string | undefined): boolean =>
  host === undefined
    ? /^(\[[\da-f:.]+\])?(:\d*)?$/i.test(line)
    : !host.includes('.') || ADDRESS.test(host)

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
  if (ADDRESS.test(host)) return 'must be a name, not an IP address'
  if (host.length > HOST_LENGTH_MAX) return `must have at most ${HOST_LENGTH_MAX} characters`
  // The parser refuses labels that are no valid punycode.
  return URL.parse(`http://${host}`)?.hostname === host ? undefined : 'must be a valid host name'
}
