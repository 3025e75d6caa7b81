import { encodeExcluded } from '../links/link.ts'

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
 * Nothing that was sent is encoded again, but signs that no URL may contain are encoded.
 */
export function withQuery(location: string, query: string): string {
  if (query === '' || query.length > FORWARDED_QUERY_MAX) return location
  const isOne = ONE_PARAMETER.test(query)
  const isClean = isOne || CLEAN_QUERY.test(query)
  const parsed = isClean ? query : new URL(`http://host/?${query}`).search.slice(1)
  const added = isOne ? query : encodeExcluded(parsed)
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
  let others = ''
  for (const [n, part] of partsOf(present).entries()) {
    if (!replaced.has(names[n] as string)) others += `${part}&`
  }
  return `${address.slice(0, start)}?${others}${added}${fragment}`
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
