import { decodePercent } from '../lib/percent.ts'

/** Campaign parameters of a URL (`utm_source` and others). They are kept in the URL itself. */

export const CAMPAIGN_FIELDS = [
  { param: 'utm_source', label: 'Source', example: 'newsletter' },
  { param: 'utm_medium', label: 'Medium', example: 'email' },
  { param: 'utm_campaign', label: 'Campaign', example: 'spring-sale' },
  { param: 'utm_term', label: 'Term', example: 'running shoes' },
  { param: 'utm_content', label: 'Content', example: 'blue button' },
] as const

export type CampaignParam = (typeof CAMPAIGN_FIELDS)[number]['param']

/** Values by parameter. An empty value is that of a parameter that the URL does not have. */
export type Campaign = Readonly<Record<CampaignParam, string>>

/** Characters of a value. */
export const CAMPAIGN_LENGTH_MAX = 200

export const campaignOf = (value: (param: CampaignParam) => string): Campaign =>
  Object.fromEntries(CAMPAIGN_FIELDS.map(({ param }) => [param, value(param)])) as Campaign

/** Of a parameter that occurs several times, the first value. */
export function readCampaign(url: string): Campaign {
  const { pairs } = split(url)
  return campaignOf((param) => {
    const pair = pairs.find((one) => nameOf(one) === param)
    return pair === undefined ? '' : decode(pair.slice(pair.indexOf('=') + 1 || pair.length))
  })
}

/**
 * Sets the parameters in `change`; an empty value removes one. The other parameters, their order
 * and spelling and the fragment stay as they are. A text that needs no change is returned as it is.
 * `url` may lack its scheme.
 */
export function withCampaign(url: string, change: Partial<Campaign>): string {
  const { start, pairs, fragment } = split(url)
  const waiting = new Map(Object.entries(change))
  const kept = pairs.flatMap((pair) => {
    const name = nameOf(pair)
    if (!Object.hasOwn(change, name)) return [pair]
    const value = waiting.get(name)
    waiting.delete(name)
    return value ? [write(name, value)] : []
  })
  const added = [...waiting].flatMap(([name, value]) => (value ? [write(name, value)] : []))
  const query = [...kept, ...added].join('&')
  if (query === pairs.join('&')) return url
  return start + (query === '' ? '' : `?${query}`) + fragment
}

const write = (name: string, value: string): string => `${name}=${encodeURIComponent(value)}`

const nameOf = (pair: string): string => decode(pair.split('=', 1)[0] ?? '')

function split(url: string): { start: string; pairs: string[]; fragment: string } {
  const hash = url.indexOf('#')
  const rest = hash < 0 ? url : url.slice(0, hash)
  const mark = rest.indexOf('?')
  const query = mark < 0 ? '' : rest.slice(mark + 1)
  return {
    start: mark < 0 ? rest : rest.slice(0, mark),
    pairs: query === '' ? [] : query.split('&'),
    fragment: hash < 0 ? '' : url.slice(hash),
  }
}

/** As forms encode it. A text that is no valid encoding stays as it is. */
const decode = (text: string): string => decodePercent(text.replaceAll('+', ' ')) ?? text
