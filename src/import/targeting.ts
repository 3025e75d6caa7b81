import { parseJson } from '../lib/json.ts'
import { destinationsBody } from '../links/destination-schema.ts'
import { shlinkRules } from './shlink-rules.ts'
import { isObject } from './source.ts'

/** Destinations of other services for some systems and countries, by the plain names of fields. */

const SYSTEM_OF: Readonly<Record<string, string>> = {
  ios: 'ios',
  apple: 'ios',
  iphoneurl: 'ios',
  android: 'android',
  google: 'android',
  androidurl: 'android',
}
const COUNTRIES = 'geo'
const RULES = 'redirectrules'

export const isTargeting = (name: string): boolean =>
  Object.hasOwn(SYSTEM_OF, name) || name === COUNTRIES || name === RULES

const Destinations = destinationsBody('')

/** As an import line has them. `lost`: fields with a value that is no destination here. */
export function destinationsIn(values: Readonly<Record<string, unknown>>): {
  destinations: object[]
  lost: string[]
} {
  const destinations: object[] = []
  const lost: string[] = []
  const add = (name: string, found: object[] | undefined) => {
    const isValid = found && Destinations.safeParse([...destinations, ...found]).success
    if (isValid) destinations.push(...found)
    else lost.push(name)
  }
  const names = Object.keys(values)
  // These services ask for the system first.
  for (const name of names.filter((one) => Object.hasOwn(SYSTEM_OF, one))) {
    add(name, [{ when: { os: [SYSTEM_OF[name]] }, url: values[name] }])
  }
  if (values[COUNTRIES] !== undefined) add(COUNTRIES, byCountry(values[COUNTRIES]))
  const rules = shlinkRules(values[RULES])
  for (const rule of rules.destinations) add('redirect rule', [rule])
  return { destinations, lost: [...lost, ...new Set(rules.lost)] }
}

/** Countries with one URL are one destination. `value`: URLs by country, perhaps as JSON. */
function byCountry(value: unknown): object[] | undefined {
  const urls = typeof value === 'string' ? parseJson(value) : value
  if (!isObject(urls)) return undefined
  const countries = new Map<unknown, string[]>()
  for (const [country, url] of Object.entries(urls)) {
    countries.set(url, [...(countries.get(url) ?? []), country])
  }
  return [...countries].map(([url, country]) => ({ when: { country }, url }))
}
