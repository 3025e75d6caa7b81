/** The contract's rules about single values, written down once more. Each fault is a message. */

const BAD_START = 'Invalid URL: must start with http:// or https://'
const URL_MAX_LENGTH = 8192

/** Undefined when the service must take it. */
export function urlFault(url: unknown): string | RegExp | undefined {
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return BAD_START
  const isBad =
    url.length > URL_MAX_LENGTH ||
    [...url].some(isForbidden) ||
    !URL.canParse(url) ||
    hostOf(url) === '' ||
    new URL(url).href.length > URL_MAX_LENGTH ||
    /^[^/]*\/\/([/\\?#]|$)/.test(url)
  return isBad ? /^Invalid URL: / : undefined
}

/** A control character, a space of any kind, or half of a surrogate pair. */
function isForbidden(character: string): boolean {
  return /[\p{Cc}\p{Z}]/u.test(character) || /^[\ud800-\udfff]$/.test(character)
}

const hostOf = (url: string) => new URL(url).hostname

/** In WHATWG's serialisation. */
export const sameUrl = (one: string, other: string): boolean =>
  new URL(one).href === new URL(other).href

/** The host is on the list, or below one that is. */
export function isBlocked(url: string, hosts: readonly string[]): boolean {
  const host = hostOf(url).replace(/\.$/, '')
  return hosts.some((blocked) => host === blocked || host.endsWith(`.${blocked}`))
}

const isWhole = (text: string, least: number, most: number) =>
  /^\d+$/.test(text) && Number(text) >= least && Number(text) <= most

/** The message of the first fault, or of any where there are several. */
function oneOf(messages: readonly string[]): RegExp | undefined {
  return messages.length > 0 ? new RegExp(`^(${messages.join('|')})$`) : undefined
}

export function listFault(query: URLSearchParams): RegExp | undefined {
  const messages: string[] = []
  if (!isWhole(query.get('limit') ?? '50', 1, 200)) {
    messages.push('Invalid limit: must be an integer between 1 and 200')
  }
  if (!isWhole(query.get('offset') ?? '0', 0, Number.MAX_SAFE_INTEGER)) {
    messages.push('Invalid offset: .+')
  }
  return oneOf(messages)
}

export function qrFault(query: URLSearchParams): RegExp | undefined {
  const messages: string[] = []
  const format = query.get('format') ?? 'png'
  if (format !== 'png' && format !== 'svg') messages.push('Invalid format: must be png or svg')
  if (format !== 'svg' && !isWhole(query.get('size') ?? '512', 64, 2048)) {
    messages.push('Invalid size: must be an integer between 64 and 2048')
  }
  for (const name of ['dark', 'light']) {
    if (!/^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(query.get(name) ?? '#000000')) {
      messages.push(`Invalid ${name}: must be a hex color like #1a2e4f`)
    }
  }
  return oneOf(messages)
}
