import { SPAN_DAYS_MAX } from '../../analytics/schema.ts'
import { type BarUnit, dateOf, type HitRange, zonedHour } from '../../hits/range.ts'
import { CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { type PageContext, requireAccount } from '../auth/guard.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse, refuse } from '../responses.ts'
import { parseRange } from '../ui/hit-chart.ts'
import { zoneOf } from '../ui/zone-form.ts'
import { accountHits, type HitsPage, linkHits, readRange } from './visits.ts'

/** The series of a chart as a file: hours or days of the account's time zone. */
export const hitFiles = signedInPages({
  'GET /app/analytics.csv': (context) => hitFile(context, accountHits(context), 'hits'),
  'GET /app/links/:code/hits.csv': (context) => {
    const hits = linkHits(context)
    return hitFile(context, hits, `hits-${hits.label}`)
  },
})

/** The query is that of the chart, and `by`: `hour` or `day`. */
async function hitFile(context: PageContext, { owner }: HitsPage, name: string): Promise<Response> {
  const { deps, query } = context
  const { choice, typed } = parseRange(query)
  if (typed) throw refuse(typed.problem)
  const zone = zoneOf(requireAccount(context))
  const chart = await readRange(deps, { owner, zone, choice })
  const unit = unitOf(query.by, chart)
  const days = chart.first.until(chart.last).days + 1
  if (unit === 'hour' && days > SPAN_DAYS_MAX.hour) {
    throw refuse(`At most ${SPAN_DAYS_MAX.hour} days by hour.`)
  }
  const range = unit === chart.unit ? chart : await readRange(deps, { owner, zone, choice, unit })
  const { counts } = await deps.series.bars(owner, range.bounds)
  const lines = counts.map((count, i) => csvLine([startText(range, i), count]))
  const text = csvLine([`${unit} (${zone})`, 'hits']) + lines.join('')
  return fileResponse(text, { name: `${name}-${range.first}-to-${range.last}.csv`, type: CSV_TYPE })
}

function unitOf(by: string | undefined, chart: HitRange): BarUnit {
  if (by === 'hour' || by === 'day') return by
  return chart.unit === 'hour' ? 'hour' : 'day'
}

/** A date, or a time with its offset: an hour occurs twice when clocks go back. */
function startText({ unit, bounds, zone }: HitRange, i: number): string {
  const hour = bounds[i] ?? 0
  if (unit !== 'hour') return String(dateOf(hour, zone))
  const time = zonedHour(hour, zone)
  return time.toString({ timeZoneName: 'never', smallestUnit: 'minute' })
}
