import { z } from 'zod'
import { DNS_NAME_MAX } from '../addresses/address.ts'
import { withoutInvisible } from '../addresses/pasted.ts'
import { REFUSALS } from '../errors.ts'
import { locationOf, type ParsedUrl, URL_KEY_BYTES } from './link.ts'

export const URL_MAX_LENGTH = 8192

/** The message for a URL in the field `name` that does not begin with http. */
export const badStart = (name: string): string =>
  REFUSALS.invalid_url.message().replace('URL', name)

/**
 * A destination in the field `name`; its output is a `ParsedUrl`. Refused with the message that the
 * API answers: `absent` if it is not a string, else the first reason that applies.
 */
export const urlModel = (absent: string, name = 'URL') => {
  const because = (reason: string) => `Invalid ${name}: ${reason}`
  const badHost = because('must be a well-formed address with a host')
  const longEncoded = because(`must be at most ${URL_MAX_LENGTH} characters, also when encoded`)
  return (
    z
      .string(absent)
      .regex(/^https?:\/\//i, badStart(name))
      // The checks that follow take a millisecond for each 30 KB, and a batch may hold megabytes.
      .max(URL_MAX_LENGTH, {
        error: because(`must be at most ${URL_MAX_LENGTH} characters`),
        abort: true,
      })
      .refine(isPlain, because('must not contain spaces, control characters or lone surrogates'))
      .meta({
        description:
          'An http or https address of at most 8,192 characters, also when it is percent-encoded.',
        example: 'https://example.com/spring?from=poster',
        // Necessary, not sufficient: no pattern describes the hosts that the URL parser accepts.
        // `format: uri` would mean RFC 3986, and URLs in other scripts are accepted too.
        pattern: '^[hH][tT][tT][pP][sS]?://',
      })
      .transform((text, { addIssue }): ParsedUrl => {
        const url = parseUrl(text)
        if (url && isShortEncoded(url)) return url
        addIssue({ code: 'custom', message: url ? longEncoded : badHost })
        return z.NEVER
      })
  )
}

/** Whether `Location` is short enough. One character of it or of `href` takes three at most. */
function isShortEncoded(url: ParsedUrl): boolean {
  const length = Math.max(url.text.length, url.href.length)
  if (3 * length <= URL_MAX_LENGTH) return true
  return url.href.length <= URL_MAX_LENGTH && locationOf(url).length <= URL_MAX_LENGTH
}

export const Url = urlModel(badStart('URL'))

/** A host with a dot, then the end, a port, a path, a query or a fragment. */
const BARE_HOST = /^[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)+\.?(:\d{1,5})?([/?#]|$)/u

/**
 * What a person typed as a URL, without invisible characters at its ends. `https://` is added to
 * `example.com/path`.
 */
export function withScheme(text: string): string {
  const shown = withoutInvisible(text)
  return BARE_HOST.test(shown) ? `https://${shown}` : shown
}

const AUTHORITY = /^https?:\/\/([^/\\?#]+)/i

/**
 * Undefined if the text is no URL or does not name a host right after its `//`: with a `\` or a
 * missing host, the parser finds one in surprising places.
 */
function parseUrl(text: string): ParsedUrl | undefined {
  const authority = AUTHORITY.exec(text)?.[1]
  if (authority === undefined || hasLongEncodedHost(authority)) return undefined
  const url = URL.parse(text)
  if (!url || url.host === '') return undefined
  return { text, href: url.href, host: url.host }
}

/**
 * Whether the host needs an encoding and is longer than any name. The parser's time for such a host
 * is quadratic: 150 ms for 8,192 characters.
 */
function hasLongEncodedHost(authority: string): boolean {
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  return host.length > DNS_NAME_MAX && /[^!-~]|%/.test(host)
}

/** What is unique for a URL within an account: the first 16 bytes of SHA-256 over `href`. */
export function urlKey({ href }: Pick<ParsedUrl, 'href'>): Uint8Array {
  Bun.SHA256.hash(href, digest)
  return digest.slice(0, URL_KEY_BYTES)
}

/** Reused by every call: hashing into a new array takes three times as long. */
const digest = new Uint8Array(32)

function isPlain(url: string): boolean {
  return url.isWellFormed() && !/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(url)
}
