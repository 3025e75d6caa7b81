import { isObject } from './source.ts'

/** Redirect rules of Shlink, as its API has them (Shlink 4 and 5). */

/** What Shlink means by each device. */
const SYSTEMS_OF: Readonly<Record<string, readonly string[]>> = {
  android: ['android'],
  ios: ['ios'],
  mobile: ['android', 'ios'],
  windows: ['windows'],
  linux: ['linux'],
  macos: ['macos'],
  chromeos: ['chromeos'],
  desktop: ['windows', 'macos', 'linux', 'chromeos'],
}

/** By the type of a condition: its part of `when`. */
const PART_OF: Readonly<Record<string, (key: string, value: string) => object>> = {
  device: (_, value) => ({ os: Object.hasOwn(SYSTEMS_OF, value) ? SYSTEMS_OF[value] : [] }),
  language: (_, value) => ({ language: [value] }),
  'query-param': (key, value) => ({ query: { [key]: value } }),
  'any-value-query-param': (key) => ({ query: { [key]: true } }),
  'valueless-query-param': (key) => ({ query: { [key]: '' } }),
  'geolocation-country-code': (_, value) => ({ country: [value] }),
  'after-date': (_, value) => ({ from: value }),
  'before-date': (_, value) => ({ until: value }),
}

/** Conditions that Hopcode does not have. */
const LOST_TYPES = ['ip-address', 'geolocation-city-name', 'browser']

interface Rules {
  /** As the API has them, not validated. */
  destinations: object[]
  /** What each rule that is left out needs. */
  lost: string[]
}

/** The rules in the order in which Shlink tries them. `value`: their list. */
export function shlinkRules(value: unknown): Rules {
  const rules: Rules = { destinations: [], lost: [] }
  const list = (Array.isArray(value) ? value : []).filter(isObject)
  for (const rule of list.toSorted((a, b) => Number(a.priority) - Number(b.priority))) {
    const when = conditionsOf(rule.conditions)
    if (typeof when === 'string') rules.lost.push(`redirect rule (${when})`)
    else rules.destinations.push({ when, url: rule.longUrl })
  }
  return rules
}

/** The conditions as `when`, or the type of one that cannot be kept. All of a rule must hold. */
function conditionsOf(value: unknown): object | string {
  const when: Record<string, unknown> = {}
  for (const one of Array.isArray(value) ? value : []) {
    const { type, matchKey, matchValue } = isObject(one) ? one : {}
    const name = String(type)
    if (!Object.hasOwn(PART_OF, name)) return LOST_TYPES.includes(name) ? name : 'unknown'
    const part = PART_OF[name]?.(String(matchKey ?? ''), String(matchValue ?? '')) ?? {}
    for (const [key, added] of Object.entries(part)) {
      const known = when[key]
      if (known === undefined) when[key] = added
      else if (key === 'query') when[key] = { ...(known as object), ...(added as object) }
      // Of a list, one value is enough here; a rule of Shlink needs both.
      else return `two of ${name}`
    }
  }
  return when
}
