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
  const replaced = new Set(namesOf(added))
  const present = query.join('?')
  const names = namesOf(present)
  const parts = present.split('&').filter((part) => part !== '')
  const kept = parts.filter((_, n) => !replaced.has(names[n] as string))
  const hash = fragment.length > 0 ? `#${fragment.join('#')}` : ''
  return `${path}?${[...kept, added].join('&')}${hash}`
}

/**
 * The decoded names of a query, one for each part that is not empty. Parsed at once, which takes
 * half the time of one parser per part. With `&` in front, a `?` at the start is part of a name.
 */
const namesOf = (query: string): string[] => [...new URLSearchParams(`&${query}`).keys()]
