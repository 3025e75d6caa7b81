import { MINUTE } from '../lib/clock.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './link.ts'

/**
 * The property `destinations`: further destinations of a link, each with conditions for the visitor
 * or the time. The first whose conditions all hold is the destination of a redirect; if none is,
 * the URL of the link.
 */

export const DESTINATIONS_MAX = 20
/** UTF-8 bytes of the list as it is stored. */
export const DESTINATIONS_BYTES_MAX = 16 * 1024

export const SYSTEMS = ['android', 'ios', 'windows', 'macos', 'linux', 'chromeos'] as const
export type System = (typeof SYSTEMS)[number]
export const DEVICES = ['phone', 'tablet', 'desktop'] as const
export type Device = (typeof DEVICES)[number]
/** Days of the week in the order of ISO 8601. */
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

/** All of them must hold. Of a list, one value must. */
export interface Conditions {
  os?: readonly System[] | undefined
  device?: readonly Device[] | undefined
  /** `de` or `pt-BR`. `de` holds for `de-CH` too. */
  language?: readonly string[] | undefined
  /** ISO 3166-1 alpha-2. */
  country?: readonly string[] | undefined
  /** Values of parameters; true: it is present. */
  query?: Readonly<Record<string, string | true>> | undefined
  /** ISO 8601. The first is inclusive, the second exclusive. */
  from?: string | undefined
  until?: string | undefined
  days?: readonly (typeof DAYS)[number][] | undefined
  /** `18:00-02:00`: the end is exclusive, and may be on the next day. */
  hours?: string | undefined
  /** IANA name of the zone of days and hours. */
  zone?: string | undefined
}

/** An element of the property, as it is stored and as the API has it. */
export interface RuledDestination {
  when: Conditions
  url: string
}

/** The subtags of its tag, in small letters: `zh`, `hans`, `cn`. */
export type Language = readonly string[]

export const languageOf = (tag: string): Language => tag.toLowerCase().split('-')

/** Conditions in the form in which redirects compare them. */
interface Compiled {
  os?: readonly System[] | undefined
  device?: readonly Device[] | undefined
  language?: readonly Language[] | undefined
  country?: readonly string[] | undefined
  query?: readonly (readonly [name: string, value: string | true])[] | undefined
  /** Epoch ms. */
  from?: number | undefined
  until?: number | undefined
  week?: Week | undefined
}

interface Week {
  zone: string
  /** Numbers of days; Monday is 0. */
  days: readonly number[]
  /** Minutes of the day. If the end is not after the start, it is on the next day. */
  start: number
  end: number
}

/** `location` has the form of the header. */
export interface CompiledDestination {
  when: Compiled
  location: string
}

const DAY_MINUTES = 24 * 60
const WEEK_MINUTES = 7 * DAY_MINUTES
const ALL_DAYS = DAYS.map((_, day) => day)

/** Without those of blocked hosts, which are skipped. Compiled once for the cache: decision 074. */
export const compileDestinations = (
  destinations: readonly RuledDestination[],
  blocklist: UrlFilter,
): CompiledDestination[] =>
  destinations.flatMap(({ when, url }) => {
    const parsed = parseKnownUrl(url)
    if (blocklist.isBlocked(parsed)) return []
    return { when: compileConditions(when), location: locationOf(parsed) }
  })

export function compileConditions(when: Conditions): Compiled {
  const { os, device, language, country, query, from, until } = when
  return {
    os,
    device,
    language: language?.map(languageOf),
    country,
    query: query && Object.entries(query),
    from: from === undefined ? undefined : Date.parse(from),
    until: until === undefined ? undefined : Date.parse(until),
    week: weekOf(when),
  }
}

function weekOf({ days, hours, zone }: Conditions): Week | undefined {
  if (zone === undefined) return undefined
  const [start = 0, end = DAY_MINUTES] = hours?.split('-').map(minuteOf) ?? []
  return { zone, days: days?.map((day) => DAYS.indexOf(day)) ?? ALL_DAYS, start, end }
}

/** Minute of the day of `08:30`. */
function minuteOf(time: string): number {
  const [hour, minute] = time.split(':')
  return 60 * Number(hour) + Number(minute)
}

/** What conditions compare. Read on demand, because most links have only some conditions. */
export interface Visitor {
  readonly os: System | undefined
  readonly device: Device | undefined
  /** The languages that the visitor prefers to all others. */
  readonly languages: readonly Language[]
  readonly country: string | undefined
  /** The first value of each parameter. */
  readonly query: ReadonlyMap<string, string>
  /** Epoch ms. */
  readonly now: number
  /** Minute of the week in the zone; undefined for an unknown zone. */
  minuteOfWeek(zone: string): number | undefined
}

/** HOT PATH. */
export function matches(when: Compiled, visitor: Visitor): boolean {
  const { os, device, language, country, query, from, until, week } = when
  if (from !== undefined && visitor.now < from) return false
  if (until !== undefined && visitor.now >= until) return false
  if (os && !hasValue(os, visitor.os)) return false
  if (device && !hasValue(device, visitor.device)) return false
  if (language && !hasLanguage(language, visitor.languages)) return false
  if (country && !hasValue(country, visitor.country)) return false
  if (query && !hasParameters(visitor.query, query)) return false
  return !week || isInWeek(week, visitor.minuteOfWeek(week.zone))
}

const hasValue = (list: readonly string[], value: string | undefined): boolean =>
  value !== undefined && list.includes(value)

const hasLanguage = (ranges: readonly Language[], tags: readonly Language[]): boolean =>
  tags.some((tag) => ranges.some((range) => includesLanguage(range, tag)))

/** Extended filtering of RFC 4647, section 3.3.2: `zh-CN` includes `zh-Hans-CN`. */
function includesLanguage(range: Language, tag: Language): boolean {
  if (range[0] !== tag[0]) return false
  let found = 1
  for (let at = 1; at < tag.length && found < range.length; at++) {
    if (tag[at] === range[found]) found++
    else if (tag[at]?.length === 1) return false
  }
  return found === range.length
}

const hasParameters = (sent: Visitor['query'], wanted: NonNullable<Compiled['query']>): boolean =>
  wanted.every(([name, value]) => (value === true ? sent.has(name) : sent.get(name) === value))

/** The part of a query that is read. A parameter that is not completely in it is left out. */
const QUERY_MAX = 2048
const QUERY_PARAMETERS_MAX = 32

/**
 * HOT PATH. The first value of each parameter of a query, as `URLSearchParams` reads it: that one
 * would parse all of a query of any length.
 */
export function readQuery(query: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  let at = query.startsWith('?') ? 1 : 0
  for (let count = 0; count < QUERY_PARAMETERS_MAX && at < query.length; ) {
    const next = query.indexOf('&', at)
    const end = next < 0 ? query.length : next
    if (end > QUERY_MAX) break
    if (end > at) {
      count++
      const part = query.slice(at, end)
      const equals = part.indexOf('=')
      const name = decode(equals < 0 ? part : part.slice(0, equals))
      if (!values.has(name)) values.set(name, equals < 0 ? '' : decode(part.slice(equals + 1)))
    }
    at = end + 1
  }
  return values
}

/** Text without signs that stand for others. */
const PLAIN = /^[^%+\x80-\uffff]*$/

const PERCENT = 0x25
/** The value of each hexadecimal digit; NaN for other bytes. */
const DIGITS = Float64Array.from({ length: 256 }, (_, byte) =>
  Number.parseInt(String.fromCharCode(byte), 16),
)

function decode(text: string): string {
  if (PLAIN.test(text)) return text
  const bytes = Buffer.from(text.replaceAll('+', ' '))
  const digitAt = (at: number) => DIGITS[bytes[at] ?? PERCENT] as number
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const escaped = byte === PERCENT ? 16 * digitAt(at + 1) + digitAt(at + 2) : Number.NaN
    if (escaped >= 0) at += 2
    bytes[length++] = escaped >= 0 ? escaped : byte
  }
  return bytes.toString('utf8', 0, length)
}

function isInWeek({ days, start, end }: Week, minute: number | undefined): boolean {
  if (minute === undefined) return false
  const day = Math.floor(minute / DAY_MINUTES)
  const ofDay = minute % DAY_MINUTES
  if (start < end) return ofDay >= start && ofDay < end && days.includes(day)
  // The hours after midnight belong to the day before.
  return ofDay >= start ? days.includes(day) : ofDay < end && days.includes((day + 6) % 7)
}

/** Minute of the week, from Monday 00:00. `time`: local. */
const minuteIn = ({ dayOfWeek, hour, minute }: Temporal.ZonedDateTime): number =>
  ((dayOfWeek - 1) * DAY_MINUTES + hour * 60 + minute) % WEEK_MINUTES

/** The minute of the week in each zone that is in use, computed once a minute. */
export class WeekClock {
  readonly #zones = new Map<string, { epochMinute: number; ofWeek: number | undefined }>()

  /** `zone`: one of `TIME_ZONES`, which bounds the memory. */
  minuteOfWeek(zone: string, now: number): number | undefined {
    const epochMinute = Math.floor(now / MINUTE)
    const known = this.#zones.get(zone)
    if (known?.epochMinute === epochMinute) return known.ofWeek
    const ofWeek = findMinute(zone, now)
    this.#zones.set(zone, { epochMinute, ofWeek })
    return ofWeek
  }
}

/** Undefined for a zone that this program does not know, and another version did. */
function findMinute(zone: string, now: number): number | undefined {
  try {
    return minuteIn(Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone))
  } catch {
    return undefined
  }
}
