import { Elysia } from 'elysia'
import { SPAN_DAYS_MAX } from '../../analytics/schema.ts'
import { AppError } from '../../errors.ts'
import { type BarUnit, dateOf, type HitRange, hitRange, zonedHour } from '../../hits/range.ts'
import type { HitOwner } from '../../hits/series.ts'
import { CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { type CurrentUser, type Query, requireAccount, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse } from '../responses.ts'
import { parseRange } from '../ui/hit-chart.ts'
import { zoneOf } from '../ui/zone-form.ts'

/** The series of a chart as a file: hours or days of the account's time zone. */
export const hitFiles = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.hitFiles', prefix: '/app' })
    .use(signedIn(deps))
    .get('/analytics.csv', ({ user, query }) =>
      hitFile(deps, user, { owner: { accountId: user.account.id }, query, name: 'hits' }),
    )
    .get('/links/:code/hits.csv', ({ user, params, query }) => {
      const { id, code } = requireOwnedLink(deps, user.account, params.code)
      return hitFile(deps, user, { owner: { linkId: id }, query, name: `hits-${code}` })
    })

interface FileOptions {
  owner: HitOwner
  /** The query of the chart, and `by`: `hour` or `day`. */
  query: Query
  name: string
}

async function hitFile(
  deps: DashboardDeps,
  user: CurrentUser,
  { owner, query, name }: FileOptions,
): Promise<Response> {
  const { series, clock } = deps
  const { choice, typed } = parseRange(query)
  if (typed) throw new AppError('invalid_value', typed.problem)
  const zone = zoneOf(requireAccount(deps, user))
  const options = { zone, now: clock(), firstHit: await series.firstHit(owner) }
  const chart = hitRange(choice, options)
  const unit = unitOf(query.by, chart)
  const days = chart.first.until(chart.last).days + 1
  if (unit === 'hour' && days > SPAN_DAYS_MAX.hour) {
    throw new AppError('invalid_value', `At most ${SPAN_DAYS_MAX.hour} days by hour.`)
  }
  const range = unit === chart.unit ? chart : hitRange(choice, { ...options, unit })
  const { counts } = await series.bars(owner, range.bounds)
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
