import type { LinkRules } from '../links/rules.ts'

export type LinkState = 'active' | 'off' | 'expired'

/** A link that was paused or has not started is unknown to visitors, even if it has expired. */
export function stateOf(rules: LinkRules, now: number): LinkState {
  const { isOff, startsAt, expiresAt, maxHits, hits } = rules
  if (isOff || (startsAt !== null && now < startsAt)) return 'off'
  if (expiresAt !== null && now >= expiresAt) return 'expired'
  return maxHits !== null && hits >= maxHits ? 'expired' : 'active'
}

/**
 * The destination with the query string of a request. The parameters of the request come last, and
 * replace those of the same name in the destination, as Shlink does. Nothing is encoded again.
 */
export function withQuery(location: string, requestUrl: string): string {
  const { search } = new URL(requestUrl)
  if (search.length <= 1) return location
  const added = search.slice(1)
  const [address = '', ...fragment] = location.split('#')
  const [path = '', ...query] = address.split('?')
  const replaced = new Set(added.split('&').map(nameOf))
  const kept = query
    .join('?')
    .split('&')
    .filter((part) => part !== '' && !replaced.has(nameOf(part)))
  const hash = fragment.length > 0 ? `#${fragment.join('#')}` : ''
  return `${path}?${[...kept, added].join('&')}${hash}`
}

/** The decoded name of one `name=value`. */
const nameOf = (part: string): string => new URLSearchParams(part).keys().next().value ?? ''
