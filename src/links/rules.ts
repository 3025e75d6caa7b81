import { LRUCache } from 'lru-cache'
import type { HitCounts } from '../hits/hits.ts'
import type { Code } from '../lib/code.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './link.ts'
import { type LinkProperties, PROPERTIES, type PropertyName } from './property-table.ts'

/**
 * The properties of a link on which its redirects depend; an absent one is not set. `expired_url`
 * has the form of `Location`, and is absent if its host is blocked.
 */
export type LinkRules = { readonly [Name in PropertyName]?: NonNullable<LinkProperties[Name]> }

export type LinkState = 'active' | 'off' | 'expired'

const RULES = PROPERTIES.filter(({ isRule }) => isRule)

const IS_SET = RULES.map(({ name }) => `nullif(${name}, 0)`).join(', ')
const PAIRS = RULES.map(({ name }) => `'${name}', ${name}`).join(', ')
/** SQL: the columns of rules as a JSON object; null if none is set. */
export const RULES_COLUMN = `CASE WHEN coalesce(${IS_SET}) IS NOT NULL
  THEN json_object(${PAIRS}) END`

/** The rules of `RULES_COLUMN` as the JSON of `LinkRules`. */
export function encodeRules(column: string, blocklist: UrlFilter): string {
  const row = JSON.parse(column) as Record<PropertyName, unknown>
  const set = RULES.filter(({ name }) => row[name]).map(({ name, kind }) => {
    if (kind === 'url') return [name, allowedLocation(row[name] as string, blocklist)]
    return [name, kind === 'flag' ? true : row[name]]
  })
  return JSON.stringify(Object.fromEntries(set))
}

function allowedLocation(url: string, blocklist: UrlFilter): string | undefined {
  const parsed = parseKnownUrl(url)
  return blocklist.isBlocked(parsed) ? undefined : locationOf(parsed)
}

/** HOT PATH. A link that was paused or has not started is unknown, even if it has expired. */
export function stateOf(rules: LinkRules, now: number, hits: number): LinkState {
  const { paused, delete_at, starts_at, expires_at, max_hits } = rules
  if (paused || delete_at !== undefined) return 'off'
  if (starts_at !== undefined && now < starts_at) return 'off'
  if (expires_at !== undefined && now >= expires_at) return 'expired'
  return max_hits !== undefined && hits >= max_hits ? 'expired' : 'active'
}

/** Characters of a query that is forwarded: this bounds the time that names take. */
const FORWARDED_QUERY_MAX = 4096
/** A name that must be decoded before it is compared: that takes most of the time. */
const ENCODED = /[%+]/
/** The most frequent query, such as `ref=poster`. */
const ONE_PARAMETER = /^[\w.~-]+=[\w.~-]*$/
/** Parameters that are not encoded, none of them empty. */
const PLAIN_PARAMETERS = /^[^&%+]+(?:&[^&%+]+)*$/
/** A query that a URL parser would return as it is. */
const CLEAN_QUERY = /^[\w!$%&()*+,./:;=?@[\\\]^`{|}~-]*$/

/**
 * HOT PATH. The destination with `query`, the query string of a request without its question mark.
 * Its parameters come last, and replace those of the same name in the destination, as Shlink does.
 * Nothing that was sent is encoded again.
 */
export function withQuery(location: string, query: string): string {
  if (query === '' || query.length > FORWARDED_QUERY_MAX) return location
  const isOne = ONE_PARAMETER.test(query)
  const isClean = isOne || CLEAN_QUERY.test(query)
  const added = isClean ? query : new URL(`http://host/?${query}`).search.slice(1)
  if (added === '') return location
  const hash = location.indexOf('#')
  const address = hash < 0 ? location : location.slice(0, hash)
  const fragment = hash < 0 ? '' : location.slice(hash)
  const start = address.indexOf('?')
  if (start < 0) return `${address}?${added}${fragment}`
  const present = address.slice(start + 1)
  if (isOne && isWithout(present, nameOf(query))) return `${address}&${query}${fragment}`
  const replaced = new Set(namesOf(added))
  const names = namesOf(present)
  let kept = ''
  for (const [n, part] of partsOf(present).entries()) {
    if (!replaced.has(names[n] as string)) kept += `${part}&`
  }
  return `${address.slice(0, start)}?${kept}${added}${fragment}`
}

/** Whether no parameter of a query has this name, or one that begins like it: quickly told. */
const isWithout = (query: string, name: string): boolean =>
  PLAIN_PARAMETERS.test(query) && !query.startsWith(name) && !query.includes(`&${name}`)

const partsOf = (query: string): string[] => query.match(/[^&]+/g) ?? []

function nameOf(part: string): string {
  const end = part.indexOf('=')
  return end < 0 ? part : part.slice(0, end)
}

/**
 * The decoded names of a query, one for each of its parts. Parsed at once, which takes half the
 * time of one parser per part. With `&` in front, a `?` at the start is part of a name.
 */
const namesOf = (query: string): string[] =>
  ENCODED.test(query) ? [...new URLSearchParams(`&${query}`).keys()] : partsOf(query).map(nameOf)

/** Few links have a limit of hits. An entry takes about 200 bytes. */
const LIMITED_MAX = 20_000

/**
 * The hits of links with `max_hits`. Only the control thread follows such links, so that the number
 * stays exact while each redirect adds to it. In a cluster it lacks what the other hosts have not
 * flushed.
 */
export class HitLimits {
  readonly #hits: Pick<HitCounts, 'ofLink'>
  readonly #counts = new LRUCache<Code, number>({ max: LIMITED_MAX })

  constructor(hits: Pick<HitCounts, 'ofLink'>) {
    this.#hits = hits
  }

  /** Reads the database if the number is not in memory. */
  hitsOf(code: Code, id: number): number {
    const known = this.#counts.get(code)
    if (known !== undefined) return known
    const hits = this.#hits.ofLink(id)
    this.#counts.set(code, hits)
    return hits
  }

  /** One more hit of a link whose number was just read. */
  add(code: Code): void {
    this.#counts.set(code, (this.#counts.peek(code) ?? 0) + 1)
  }

  /** The link has changed. */
  drop(code: Code): void {
    this.#counts.delete(code)
  }

  /** All links may have changed, or other hosts have counted hits. */
  clear(): void {
    this.#counts.clear()
  }
}
