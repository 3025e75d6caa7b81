import { z } from 'zod'
import { REFUSALS } from '../errors.ts'
import { URL_PATTERN } from './url-pattern.ts'

export const URL_MAX_LENGTH = 8192

const BAD_START = REFUSALS.invalid_url.message()
const because = (reason: string) => `Invalid URL: ${reason}`

/**
 * A destination, kept as it was sent. Refused with the message that the API answers: `absent` where
 * it is no string, the spec's own where it starts otherwise, the first reason that holds where it
 * is bad later on.
 */
export const urlModel = (absent: string) =>
  z
    .string(absent)
    .regex(/^https?:\/\//i, BAD_START)
    // The checks that follow take a millisecond for each 30 KB, and a batch may hold megabytes.
    .max(URL_MAX_LENGTH, {
      error: because(`must be at most ${URL_MAX_LENGTH} characters`),
      abort: true,
    })
    .refine(isPlain, because('must not contain spaces, control characters or lone surrogates'))
    .refine(hasHost, because('must be a well-formed address with a host'))
    .refine(fitsHeader, because(`must be at most ${URL_MAX_LENGTH} characters, also when encoded`))
    .meta({
      description:
        'An http or https address of at most 8,192 characters, also when it is percent-encoded.',
      example: 'https://example.com/spring?from=poster',
      pattern: URL_PATTERN,
    })

export const Url = urlModel(BAD_START)

/**
 * The form in which two URLs are the same URL (WHATWG serialisation). `url` must have passed `Url`.
 */
export const normalUrl = (url: string): string => new URL(url).href

/**
 * What `Location` says: the URL as it was sent if a header can carry it, else its normal form,
 * which is ASCII.
 */
export const locationOf = (url: string): string =>
  /^[\x21-\x7e]+$/.test(url) ? url : normalUrl(url)

export const URL_KEY_BYTES = 16

/**
 * URL_KEY_BYTES bytes that are equal for one URL and differ for two: the start of SHA-256 over the
 * normal form.
 */
export function urlKey(url: string): Uint8Array {
  Bun.SHA256.hash(normalUrl(url), digest)
  return digest.slice(0, URL_KEY_BYTES)
}

/** Used again by every call: a hash into memory of its own takes three times as long. */
const digest = new Uint8Array(32)

function isPlain(url: string): boolean {
  return url.isWellFormed() && !/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(url)
}

/** No text as short as this is too long once it is encoded: a character takes 20 bytes at most. */
const SURELY_FITS = 256

/** What `Location` carries is bounded, because proxies and clients refuse long headers. */
function fitsHeader(url: string): boolean {
  if (url.length <= SURELY_FITS) return true
  return (URL.parse(url)?.href.length ?? 0) <= URL_MAX_LENGTH
}

/**
 * A `\` or a missing host parses in surprising ways: the address must name a host right after its
 * `//`.
 */
function hasHost(url: string): boolean {
  const parsed = URL.parse(url)
  return parsed !== null && parsed.host !== '' && /^https?:\/\/[^/\\?#]/i.test(url)
}
