import type { RecordedVisit } from '../hot/visit-ring.ts'
import { isUntracked } from '../http/context.ts'
import { agentClassifier } from './agents.ts'
import { isPrefetch } from './bots.ts'
import { type CountrySettings, countryFinder } from './country-header.ts'
import { DIRECT, UNKNOWN_COUNTRY, type VisitKey, visitKey } from './values.ts'

/** The headers that are read, besides that of `COUNTRY_HEADER`. */
const HEADERS = ['user-agent', 'referer', 'purpose', 'sec-purpose', 'dnt', 'sec-gpc'] as const

/** All headers that the classifier reads, in lower case. */
export const visitHeaders = (countryHeader: string | undefined): string[] => [
  ...HEADERS,
  ...(countryHeader === undefined ? [] : [countryHeader.toLowerCase()]),
]

/** Parameters of a short link that name its source, the most specific first. */
const SOURCES = ['utm_source', 'source', 'ref']
const SOURCE_BYTES_MAX = 64
const HOST_MAX = 64

/**
 * Returns the values of a redirect: those of a person, or that of a bot. Undefined for a visitor
 * who asks not to be tracked (`DNT: 1`, `Sec-GPC: 1`).
 */
export function visitClassifier(settings: CountrySettings) {
  const agentKeys = agentClassifier()
  const { countries, countryHeader } = settings
  const hasCountries = countries !== undefined || countryHeader !== undefined
  const findCountry = countryFinder(settings)

  return ({ client, query, headers }: RecordedVisit): readonly VisitKey[] | undefined => {
    if (isUntracked(headers)) return undefined
    const agent = agentKeys(headers.get('user-agent') ?? '')
    if (agent.length === 1) return agent
    if (isPrefetch((name) => headers.get(name))) return [visitKey('bot', 'prefetch')]
    const named = new URLSearchParams(SOURCE.test(query) ? query : '')
    const referrer = sourceIn(named) ?? hostOf(headers.get('referer')) ?? DIRECT
    const keys = [visitKey('referrer', referrer), ...agent]
    // The word that a code has in its address: `utm_source` is that of a link.
    const word = named.get('ref') ?? ''
    if (/^[a-z0-9-]{1,20}$/.test(word)) keys.push(visitKey('scan', word))
    if (hasCountries) {
      keys.push(visitKey('country', findCountry(client, headers) ?? UNKNOWN_COUNTRY))
    }
    return keys
  }
}

const SOURCE = /(?:utm_source|source|ref)=/

/** The first source that is named; undefined without one. */
const sourceIn = (parameters: URLSearchParams): string | undefined =>
  SOURCES.map((name) => clean(parameters.get(name) ?? '')).find((text) => text !== '')

/** Small letters, at most 64 bytes, without control, formatting and unpaired characters. */
const clean = (text: string): string =>
  // The end of a character that was cut is U+FFFD, too.
  Buffer.from(text.toLowerCase())
    .subarray(0, SOURCE_BYTES_MAX)
    .toString()
    .replace(/[\p{C}\p{Z}\uFFFD]+/gu, ' ')
    .trim()

/** The host of a referrer without `www.`, or the name of an Android app; never its path. */
function hostOf(referrer = ''): string | undefined {
  const url = URL.parse(referrer)
  if (!url || !/^(?:https?|android-app|ios-app):$/.test(url.protocol)) return undefined
  const host = url.hostname
    .toLowerCase()
    .replace(/^www\./, '')
    .replace(/\.$/, '')
  return host !== '' && host.length <= HOST_MAX && !isAddress(host) ? host : undefined
}

/** Addresses are those of machines and perhaps of people: none is stored. */
const isAddress = (host: string): boolean => host.includes(':') || /^[\d.]+$/.test(host)
