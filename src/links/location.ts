/** A URL that was parsed once. A `URL` has `href` and `host` too. */
export interface ParsedUrl {
  /** As it was sent: what is stored and shown. */
  text: string
  /** WHATWG's serialisation, in ASCII. Two URLs with one `href` are the same URL. */
  href: string
  /** As in `href`: with the port, unless it is the scheme's own. */
  host: string
}

/** Decides whether a URL is refused as a destination. */
export interface UrlFilter {
  isBlocked(url: Pick<ParsedUrl, 'href' | 'host'>): boolean
}

/** A URL that has passed `Url`, for example a stored one. Throws TypeError for any other text. */
export function parseKnownUrl(text: string): ParsedUrl {
  const { href, host } = new URL(text)
  return { text, href, host }
}

/** `Location` of a redirect: the URL as it was sent if a header can carry it, else its `href`. */
export const locationOf = ({ text, href }: Pick<ParsedUrl, 'text' | 'href'>): string =>
  /^[\x21-\x7e]+$/.test(text) ? text : href
