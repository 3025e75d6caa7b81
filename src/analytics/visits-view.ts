import { DAY, isoTime } from '../lib/clock.ts'
import { csvLine } from '../lib/csv.ts'
import type { VisitKind } from '../visits/values.ts'
import type { VisitsView } from './schema.ts'
import type { DayRange, Visits, VisitValue } from './visits.ts'

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
