import { AppError } from '../errors.ts'
import { type CountedLinks, type HitSeries, type SeriesQuery, STEP_MS } from '../hits/series.ts'
import { type Clock, DAY, isoTime, parseIsoTime } from '../lib/clock.ts'
import { csvLine } from '../lib/csv.ts'
import type { VisitKind } from '../visits/values.ts'
import {
  type HitsQuery,
  type HitsView,
  INVALID_WHEN,
  SPAN_DAYS_MAX,
  type VisitsView,
} from './schema.ts'
import type { DayRange, Visits, VisitValue } from './visits.ts'

interface Deps {
  series: Pick<HitSeries, 'buckets'>
  clock: Clock
}

/** Throws `invalid_value` for a bad or too long range. */
export async function hitsOverTime(
  { series, clock }: Deps,
  counted: CountedLinks,
  query: HitsQuery,
): Promise<HitsView> {
  const span = parseSpan(query, clock())
  const buckets = await series.buckets(counted, span)
  const first = buckets[0]?.start ?? span.from
  return {
    from: isoTime(first),
    to: isoTime(first + buckets.length * STEP_MS[query.by]),
    by: query.by,
    time_zone: 'UTC',
    total: buckets.reduce((sum, { count }) => sum + count, 0),
    buckets: buckets.map(({ start, count }) => ({ start: isoTime(start), hits: count })),
  }
}

/** Days of the range if the request has no `from`. */
const USUAL_DAYS = { hour: 1, day: 30 } as const

/** The range of a query, widened to whole hours or UTC days. */
export function parseSpan({ from, to, by }: HitsQuery, now: number): SeriesQuery {
  const length = STEP_MS[by]
  const day = STEP_MS.day
  const refusal = (message: string) => new AppError('invalid_value', `Invalid range: ${message}`)
  const end = to === undefined ? now + 1 : parseWhen('to', to) + (isDate(to) ? day : 0)
  const wholeEnd = Math.ceil(end / length) * length
  const start = from === undefined ? wholeEnd - USUAL_DAYS[by] * day : parseWhen('from', from)
  if (start >= end) throw refusal('from must be before to')
  const wholeStart = Math.floor(start / length) * length
  if (wholeEnd - wholeStart > SPAN_DAYS_MAX[by] * day) {
    throw refusal(`at most ${SPAN_DAYS_MAX[by]} days by ${by}`)
  }
  return { from: wholeStart, to: wholeEnd, step: by }
}

const isDate = (text: string): boolean => text.length === 10

function parseWhen(name: string, text: string): number {
  const time = parseIsoTime(text)
  if (time === undefined) throw new AppError('invalid_value', INVALID_WHEN(name))
  return time
}

interface ViewOptions {
  by: VisitKind
  limit: number
  days: DayRange
}

export function visitsView(visits: Visits, { by, limit, days }: ViewOptions): VisitsView {
  const { hits, known, isEstimated, people, bots } = visits
  const all = visits.values[by]
  return {
    by,
    from: isoTime(days.from * DAY),
    to: isoTime(days.to * DAY),
    hits,
    known,
    estimated: isEstimated,
    people,
    bots,
    values: all.slice(0, limit),
    other: all.slice(limit).reduce((sum, { hits }) => sum + hits, 0),
  }
}

export const visitsCsv = (values: readonly VisitValue[]): string =>
  csvLine(['value', 'name', 'hits']) +
  values.map(({ value, name, hits }) => csvLine([value, name, hits])).join('')
