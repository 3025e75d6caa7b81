import { z } from 'zod'
import { findTimeZone } from '../hits/range.ts'
import { isoTime, parseIsoTime } from '../lib/clock.ts'
import {
  type Conditions,
  DAYS,
  DESTINATIONS_BYTES_MAX,
  DESTINATIONS_MAX,
  DEVICES,
  type RuledDestination,
  SYSTEMS,
} from './destination-rules.ts'
import { Url } from './url.ts'

const TIME_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

/** A time in a request, as epoch milliseconds. */
export function timeBody(name: string) {
  const message = `Invalid ${name}: must be a time such as 2026-03-01T12:00:00.000Z`
  return z
    .string(message)
    .regex(TIME_PATTERN, message)
    .meta({ format: 'date-time', example: '2026-03-01T12:00:00.000Z' })
    .transform((text, context): number => {
      const time = parseIsoTime(text)
      if (time !== undefined) return time
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    })
}

/** The property `destinations` in a request. `located` adds the position to each message. */

const LANGUAGES_MAX = 10
const COUNTRIES_MAX = 50
const PARAMETERS_MAX = 5
const PARAMETER_MAX = 200

/** Some values of a list, in its order. */
const someOf = <Value extends string>(values: readonly Value[]) => {
  const message = `must be some of ${values.join(', ')}`
  return z
    .array(z.enum(values, message), message)
    .min(1, message)
    .overwrite((chosen) => values.filter((value) => chosen.includes(value)))
}

const BAD_LANGUAGES = `must be 1 to ${LANGUAGES_MAX} languages such as de or pt-BR`
const Language = z
  .string(BAD_LANGUAGES)
  .regex(/^[A-Za-z]{2,3}(-[A-Za-z\d]{2,8}){0,3}$/, BAD_LANGUAGES)
  .overwrite((tag) => {
    const [language = '', ...rest] = tag.toLowerCase().split('-')
    const parts = rest.map((part) => {
      if (part.length === 2) return part.toUpperCase()
      return part.length === 4 ? part.charAt(0).toUpperCase() + part.slice(1) : part
    })
    return [language, ...parts].join('-')
  })

const BAD_COUNTRIES = `must be 1 to ${COUNTRIES_MAX} codes of countries such as DE or GB`
const REGIONS = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })
/** Names that are no countries: regions of other kinds, codes for tests, and UK, which is GB. */
const NO_COUNTRY = /^(EU|EZ|QO|UK|UN|X[A-JL-Z]|ZZ)$/
const Country = z
  .string(BAD_COUNTRIES)
  .regex(/^[A-Za-z]{2}$/, { error: BAD_COUNTRIES, abort: true })
  .overwrite((code) => code.toUpperCase())
  .refine((code) => !NO_COUNTRY.test(code) && REGIONS.of(code) !== undefined, BAD_COUNTRIES)

const BAD_QUERY = `must have 1 to ${PARAMETERS_MAX} parameters, each with a text or true`
const ParameterText = z.string(BAD_QUERY).max(PARAMETER_MAX, BAD_QUERY)
/** Any value in the API description: clients of some languages have no type for two types. */
const ParameterValue = z
  .unknown()
  .refine((value) => value === true || ParameterText.safeParse(value).success, BAD_QUERY)
  .transform((value) => value as string | true)
const hasParameters = (query: object) => {
  const { length } = Object.keys(query)
  return length > 0 && length <= PARAMETERS_MAX
}

const HOURS = /^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$/
const BAD_HOURS = 'must be like 08:00-17:30'
const BAD_ZONE = 'must be a time zone such as Europe/Berlin'

const NO_CONDITION = 'must have a condition'

const shape = {
  os: someOf(SYSTEMS).optional(),
  device: someOf(DEVICES).optional(),
  language: listOf(Language, LANGUAGES_MAX, BAD_LANGUAGES).meta({
    description: 'Preferred languages of the visitor. `de` includes `de-CH`.',
    example: ['de', 'pt-BR'],
  }),
  country: listOf(Country, COUNTRIES_MAX, BAD_COUNTRIES).meta({
    description: 'Codes of ISO 3166-1. Needs COUNTRY_FILE or COUNTRY_HEADER.',
    example: ['DE'],
  }),
  query: z
    .record(ParameterText.min(1, BAD_QUERY), ParameterValue, BAD_QUERY)
    .refine(hasParameters, BAD_QUERY)
    .meta({ description: 'The value of each parameter; true: it is present.' })
    .optional(),
  from: timeBody('from').transform(isoTime).optional(),
  until: timeBody('until').transform(isoTime).optional(),
  days: someOf(DAYS).optional(),
  hours: z
    .string(BAD_HOURS)
    .regex(HOURS, BAD_HOURS)
    .refine((text) => text.slice(0, 5) !== text.slice(6), BAD_HOURS)
    .meta({
      description: 'The end is exclusive. Hours after midnight belong to the day before.',
      example: '18:00-02:00',
    })
    .optional(),
  zone: z
    .string(BAD_ZONE)
    .overwrite((name) => findTimeZone(name) ?? '')
    .refine((name) => name !== '', BAD_ZONE)
    .meta({ description: 'IANA name. With `days` or `hours` only.', example: 'Europe/Berlin' })
    .optional(),
}

function listOf(element: z.ZodType<string>, most: number, message: string) {
  return z
    .array(element, message)
    .min(1, message)
    .max(most, message)
    .overwrite((list) => [...new Set(list)])
    .optional()
}

/** The message for an unknown key; undefined for another problem. */
function unknownKey({ code, keys }: z.core.$ZodRawIssue, what: string, known: string[]) {
  if (code !== 'unrecognized_keys') return undefined
  const name = String((keys as string[])[0]).slice(0, 100)
  return `${name} is no ${what}. The ${what}s are ${known.join(', ')}`
}

const When = z
  .strictObject(shape, {
    error: (issue) => unknownKey(issue, 'condition', Object.keys(shape)) ?? NO_CONDITION,
  })
  .superRefine((when, context) => {
    const refuse = (name: keyof Conditions, message: string) =>
      context.addIssue({ code: 'custom', path: [name], message })
    const { from, until, days, hours, zone } = when
    if (from !== undefined && until !== undefined && from >= until) {
      refuse('until', 'must be after from')
    }
    const needsZone = days !== undefined || hours !== undefined
    if (needsZone && zone === undefined) refuse('zone', BAD_ZONE)
    const others = Object.entries(when).filter(([name, value]) => name !== 'zone' && value)
    if (others.length === 0) context.addIssue({ code: 'custom', message: NO_CONDITION })
    else if (!needsZone && zone !== undefined) refuse('zone', 'needs days or hours')
  })

const Destination = z.strictObject(
  { when: When, url: Url },
  {
    error: (issue) => unknownKey(issue, 'field', ['when', 'url']) ?? 'must have when and url',
  },
)

const JSON_SCHEMA = z.toJSONSchema(Destination, { target: 'openapi-3.0', io: 'input' })

/** An element in requests and responses of the API description. */
export const DestinationModel = z
  .unknown()
  .meta({ id: 'RuledDestination', ...JSON_SCHEMA }) as z.ZodType<RuledDestination>

const BAD_LIST = `Invalid destinations: must be a list of at most ${DESTINATIONS_MAX}`
const MOST_BYTES = DESTINATIONS_BYTES_MAX.toLocaleString('en')
const TOO_LARGE = `Invalid destinations: must have at most ${MOST_BYTES} bytes as JSON`

/** The property in a request: its URLs are well-formed, but may be blocked. */
export const destinationsBody = (description: string) =>
  z
    .array(DestinationModel, BAD_LIST)
    .max(DESTINATIONS_MAX, { error: BAD_LIST, abort: true })
    .meta({ description })
    .transform((items, context): RuledDestination[] => {
      const list: RuledDestination[] = []
      for (const [i, item] of items.entries()) {
        const { data, error } = Destination.safeParse(item)
        if (data) list.push({ when: data.when, url: data.url.text })
        else context.addIssue({ code: 'custom', ...located(i, error.issues[0]) })
      }
      if (Buffer.byteLength(JSON.stringify(list)) > DESTINATIONS_BYTES_MAX) {
        context.addIssue({ code: 'custom', message: TOO_LARGE })
      }
      return list
    })
    .nullish()
    .transform((list) => (list === null ? [] : list))

/** The issue of element `i`, at its condition or field. */
function located(i: number, issue: z.core.$ZodIssue | undefined) {
  const [field, condition] = issue?.path ?? []
  const path = [i, field, condition].filter((part) => part !== undefined)
  const names = path.slice(1).map((part) => `.${String(part)}`)
  // Models of other fields name them.
  const reason = issue?.message.replace(/^Invalid [^:]+: /, '') ?? ''
  return { path, message: `Invalid destinations[${i}]${names.join('')}: ${reason}` }
}
