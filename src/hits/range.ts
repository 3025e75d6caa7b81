import { HOUR, zonedTime } from '../lib/clock.ts'
import { DAYS_KEPT, HOURS_OF_DAY, hourOf, oldestDay } from './series.ts'

/**
 * Ranges of time in a time zone, as bars. A day begins at the zone's midnight, or at the next whole
 * UTC hour where the offset has minutes. It has 23 or 25 hours when the clocks change.
 */

export type BarUnit = 'hour' | 'day' | 'week'

/** Ranges that end now. */
export const ROLLING = ['24h', '7d', '30d', '90d', '12m', 'all'] as const
/** Weeks from Monday and months; the current one ends now. */
export const CALENDAR = ['week', 'last-week', 'month', 'last-month'] as const
export const PRESETS = [...ROLLING, ...CALENDAR] as const
export type Preset = (typeof PRESETS)[number]
const DAYS: Partial<Record<Preset, number>> = { '7d': 7, '30d': 30, '90d': 90 }

/** The choice of the user: a preset, or two dates of the account's time zone, both included. */
export type RangeChoice = { preset: Preset } | { from: Temporal.PlainDate; to: Temporal.PlainDate }

export interface HitRange {
  unit: BarUnit
  /** UTC hours at which the bars begin, and the end of the last one. */
  bounds: number[]
  /**
   * Bars of the same length before the range, up to the same time of day as now. Undefined if they
   * are not kept, or if there is nothing before the range.
   */
  previous: number[] | undefined
  /** The first and the last day, in the zone. */
  first: Temporal.PlainDate
  last: Temporal.PlainDate
  zone: string
}

interface RangeOptions {
  /** IANA name. */
  zone: string
  now: number
  /** The UTC hour of the first hit. Presets over more than 90 days begin there. */
  firstHit?: number | undefined
  /** Default: hours for up to 2 days, days for up to 92, else weeks. */
  unit?: BarUnit
}

/** Bars of a chart: at most 49 hours, 92 days or 59 weeks. */
const HOURS_CHART_DAYS = 2
const DAYS_CHART_DAYS = 92

/** The time in the zone at which a UTC hour begins. */
export const zonedHour = (hour: number, zone: string): Temporal.ZonedDateTime =>
  zonedTime(hour * HOUR, zone)

/** The date of a UTC hour in the zone. */
export const dateOf = (hour: number, zone: string): Temporal.PlainDate =>
  zonedHour(hour, zone).toPlainDate()

/** The hour of the day at which a UTC hour begins in the zone. */
export const hourOfDay = (hour: number, zone: string): number => zonedHour(hour, zone).hour

/** The UTC hour at which a date begins in the zone. */
const startOf = (date: Temporal.PlainDate, zone: string): number =>
  Math.ceil(date.toZonedDateTime(zone).epochMilliseconds / HOUR)

/** The days of a choice, limited to days that are stored and not in the future. */
export function hitRange(choice: RangeChoice, options: RangeOptions): HitRange {
  const { zone, now, firstHit } = options
  const current = hourOf(now)
  if ('preset' in choice && choice.preset === '24h') return lastDay(zone, current)
  const today = dateOf(current, zone)
  const oldest = dateOf(oldestDay('day', now) * HOURS_OF_DAY, zone).add({ days: 1 })
  const { from: wanted, to, back, isLong = false } = spanOf(choice, today)
  const last = earliest(to, today)
  const start = isLong ? dateOf(firstHit ?? current, zone) : oldest
  const first = earliest(latest(wanted, start, oldest), last)
  const days = first.until(last).days + 1
  const unit = options.unit ?? usualUnit(days)
  const bounds = boundsOf({ first, last, unit, zone })
  if (unit === 'hour') {
    // No bars for the hours of today that are still to come.
    const rest = bounds.findIndex((hour) => hour > current + 1)
    if (rest > 0) bounds.length = rest
  }
  const isClipped = isLong && Temporal.PlainDate.compare(wanted, first) < 0
  const range = { unit, bounds, first, last, zone }
  return { ...range, previous: isClipped ? undefined : previousOf(range, back ?? { days }, now) }
}

function lastDay(zone: string, current: number): HitRange {
  const bounds = Array.from({ length: HOURS_OF_DAY + 1 }, (_, i) => current - 23 + i)
  return {
    unit: 'hour',
    bounds,
    previous: bounds.map((hour) => hour - HOURS_OF_DAY),
    first: dateOf(current - 23, zone),
    last: dateOf(current, zone),
    zone,
  }
}

interface Span {
  from: Temporal.PlainDate
  /** Included. */
  to: Temporal.PlainDate
  /** How long before it the period before begins. Default: its own length. */
  back?: Temporal.DurationLike
  /** It begins with the first hit, if that is later. */
  isLong?: boolean
}

function spanOf(choice: RangeChoice, today: Temporal.PlainDate): Span {
  if (!('preset' in choice)) return choice
  const monday = today.subtract({ days: today.dayOfWeek - 1 })
  const first = today.with({ day: 1 })
  switch (choice.preset) {
    case 'week':
      return { from: monday, to: today, back: { days: 7 } }
    case 'last-week':
      return { from: monday.subtract({ days: 7 }), to: monday.subtract({ days: 1 }) }
    case 'month':
      return { from: first, to: today, back: { months: 1 } }
    case 'last-month':
      return {
        from: first.subtract({ months: 1 }),
        to: first.subtract({ days: 1 }),
        back: { months: 1 },
      }
    case '12m':
      return { from: today.subtract({ months: 12 }).add({ days: 1 }), to: today, isLong: true }
    default: {
      const days = DAYS[choice.preset]
      const from = today.subtract({ days: (days ?? DAYS_KEPT.day) - 1 })
      return { from, to: today, isLong: days === undefined }
    }
  }
}

const usualUnit = (days: number): BarUnit => {
  if (days <= HOURS_CHART_DAYS) return 'hour'
  return days <= DAYS_CHART_DAYS ? 'day' : 'week'
}

const compare = Temporal.PlainDate.compare
const earliest = (a: Temporal.PlainDate, b: Temporal.PlainDate) => (compare(a, b) < 0 ? a : b)
const latest = (...dates: Temporal.PlainDate[]) =>
  dates.reduce((a, b) => (compare(a, b) > 0 ? a : b))

/** Weeks begin on Monday; the first and the last one may be shorter. */
function boundsOf({ first, last, unit, zone }: Omit<HitRange, 'bounds' | 'previous'>): number[] {
  const end = startOf(last.add({ days: 1 }), zone)
  const bounds = [startOf(first, zone)]
  if (unit === 'hour') {
    for (let hour = (bounds[0] ?? 0) + 1; hour < end; hour++) bounds.push(hour)
  } else {
    const step = unit === 'day' ? 1 : 7
    let date = first.add({ days: unit === 'day' ? 1 : 8 - first.dayOfWeek })
    for (; compare(date, last) <= 0; date = date.add({ days: step }))
      bounds.push(startOf(date, zone))
  }
  return [...bounds, end]
}

/** `back`: how long before the range the period before begins. It ends where the range begins. */
function previousOf(
  { bounds, zone, unit, first }: Omit<HitRange, 'previous'>,
  back: Temporal.DurationLike,
  now: number,
): number[] | undefined {
  const start = bounds[0] ?? 0
  const firstBefore = first.subtract(back)
  const startBefore = startOf(firstBefore, zone)
  if (startBefore < oldestDay('day', now) * HOURS_OF_DAY) return undefined
  const before = (hour: number) => {
    if (unit === 'hour') return startBefore + hour - start
    const days = first.until(dateOf(hour, zone)).days
    return startOf(firstBefore.add({ days }), zone)
  }
  // A month may have more days than the one before.
  const previous = bounds.map((hour) => Math.min(start, before(hour)))
  const elapsed = hourOf(now) + 1 - (bounds.at(-2) ?? 0)
  const isOver = hourOf(now) >= (bounds.at(-1) ?? 0)
  // The current bar is compared with the same part of the earlier one; a month that is over with
  // the whole month before.
  const partEnd = (previous.at(-2) ?? 0) + Math.max(1, elapsed)
  const end = isOver ? start : Math.min(previous.at(-1) ?? 0, partEnd)
  return [...previous.slice(0, -1), end]
}

/** Undefined for a text that is not a date like 2026-03-01. */
export function parseDate(text: string): Temporal.PlainDate | undefined {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return undefined
  try {
    return Temporal.PlainDate.from(text)
  } catch {
    return undefined
  }
}

/** IANA names of time zones, UTC first. */
export const TIME_ZONES: readonly string[] = [
  'UTC',
  ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC'),
]
const ZONES = new Set(TIME_ZONES)
export const isTimeZone = (zone: string): boolean => ZONES.has(zone)

/**
 * The name of a time zone in `TIME_ZONES`, also for an older one: browsers send `Asia/Calcutta`.
 * Undefined for a text that is not a name.
 */
export function findTimeZone(text: string): string | undefined {
  if (isTimeZone(text)) return text
  if (!/^[A-Za-z][\w+/-]{1,49}$/.test(text)) return undefined
  try {
    const wanted = zonedTime(0, text)
    return TIME_ZONES.find((zone) => zonedTime(0, zone).equals(wanted))
  } catch {
    return undefined
  }
}
