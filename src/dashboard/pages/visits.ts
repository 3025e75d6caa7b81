import { visitsCsv } from '../../analytics/read.ts'
import { SPAN_DAYS_MAX } from '../../analytics/schema.ts'
import type { DayRange } from '../../analytics/visits.ts'
import {
  type BarUnit,
  dateOf,
  type HitRange,
  hitRange,
  type RangeChoice,
  zonedHour,
} from '../../hits/range.ts'
import { DAYS_KEPT, type HitOwner, HOURS_OF_DAY } from '../../hits/series.ts'
import { CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { VISIT_KINDS, type VisitKind } from '../../visits/values.ts'
import { ownLink, type PageContext, requireAccount } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse, refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type HitChart, parseRange } from '../ui/hit-chart.ts'
import { page } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'
import { zoneOf } from '../ui/local-time.ts'
import { knownPart, PANEL_TITLES, totalOf, valueTable, visitSection } from '../ui/visit-panels.ts'

/** Values on a page of all values, and in a file. */
const VALUES_MAX = 1000

/** All values of a panel, as a page and as a file. */
export const visitPages = signedInPages({
  'GET /app/analytics/visits': (context) => valuesPage(context, accountHits(context)),
  'GET /app/analytics/visits.csv': (context) => valuesFile(context, accountHits(context)),
  'GET /app/links/:code/visits': (context) => valuesPage(context, linkHits(context)),
  'GET /app/links/:code/visits.csv': (context) => valuesFile(context, linkHits(context)),
})

/** Whose hits, and where they are shown. */
export interface HitsPage {
  owner: HitOwner
  zone: string
  path: string
  label: string
  /** The source of refreshes, and the series as a file. */
  live: string
  csv: string
  /** Advice while there are no hits. */
  empty: Html
}

export const ANALYTICS_PATH = '/app/analytics'

export const accountHits = (context: PageContext): HitsPage => ({
  owner: { accountId: context.user.account.id },
  zone: zoneOf(requireAccount(context)),
  path: ANALYTICS_PATH,
  label: 'Analytics',
  live: ANALYTICS_PATH,
  csv: `${ANALYTICS_PATH}.csv`,
  empty: html`<p>None of your links has been followed yet. Create one and share it: its hits
    appear here within seconds.</p>${parts.linkButton('Go to the links', '/app/links', 'primary')}`,
})

export function linkHits(context: PageContext): HitsPage {
  const { id, code, url } = ownLink(context)
  const path = linkPath(code)
  return {
    owner: { linkId: id },
    zone: zoneOf(requireAccount(context)),
    path,
    label: code,
    live: `${ANALYTICS_PATH}/${code}`,
    csv: `${path}/hits.csv`,
    empty:
      url === null
        ? html`<p>This code is reserved. Set a destination to use it.</p>`
        : html`<p>This link has not been followed yet. Its hits appear here within seconds.</p>`,
  }
}

interface RangeOptions {
  owner: HitOwner
  choice: RangeChoice
  zone: string
  unit?: BarUnit
}

/** The range that a page or a file shows. */
export async function readRange(
  { series, clock }: DashboardDeps,
  { owner, choice, ...options }: RangeOptions,
): Promise<HitRange> {
  const firstHit = 'preset' in choice ? await series.firstHit(owner) : undefined
  return hitRange(choice, { ...options, now: clock(), firstHit })
}

/** The panels below a chart, for the UTC days of its range. */
export async function visitPanels(
  { visitDetails, clock }: DashboardDeps,
  { owner, path }: HitsPage,
  { chosen, range }: Pick<HitChart, 'chosen' | 'range'>,
): Promise<Html> {
  const days = daysOf(range)
  const { isOn, hasCountries } = visitDetails
  const paths = (kind: VisitKind) => {
    const query = `by=${kind}&${chosen.query}`
    return { all: `${path}/visits?${query}`, csv: `${path}/visits.csv?${query}` }
  }
  const visits = await visitDetails.of(owner, days)
  // Else the period before is not kept, or not shown for the hits either.
  const isCompared = range.previous !== undefined && visits.known > 0
  const change = isCompared ? await visitDetails.change(owner, days, clock()) : undefined
  return visitSection({ visits, change, days, isOn, hasCountries, paths })
}

/** The UTC days that a range of another time zone touches, at most as many as are kept. */
function daysOf({ bounds }: HitRange): DayRange {
  const to = Math.ceil((bounds.at(-1) ?? 0) / HOURS_OF_DAY)
  const from = Math.max(to - DAYS_KEPT.day, Math.floor((bounds[0] ?? 0) / HOURS_OF_DAY))
  return { from, to }
}

async function read(context: PageContext, { owner, zone }: HitsPage) {
  const { deps, query } = context
  const kind = VISIT_KINDS.find((one) => one === query.by) ?? 'referrer'
  const chosen = parseRange(query)
  const range = await readRange(deps, { owner, zone, choice: chosen.choice })
  const visits = await deps.visitDetails.of(owner, daysOf(range))
  return { kind, chosen, range, visits, values: visits.values[kind].slice(0, VALUES_MAX) }
}

async function valuesPage(context: PageContext, shown: HitsPage): Promise<Response> {
  const { kind, chosen, visits, values } = await read(context, shown)
  const title = PANEL_TITLES[kind]
  const { path, label } = shown
  const csv = `${path}/visits.csv?by=${kind}&${chosen.query}`
  return page(context, {
    title,
    back: { href: `${path}?${chosen.query}#visits`, label },
    main: parts.card('All values', [
      html`<p class="hint">${knownPart(visits)}</p>`,
      values.length === 0
        ? html`<p>None yet.</p>`
        : valueTable(title, values, totalOf(visits, kind)),
      html`<p><a href="${csv}" download>Download as CSV</a></p>`,
    ]),
  })
}

async function valuesFile(context: PageContext, shown: HitsPage): Promise<Response> {
  const { kind, range, values } = await read(context, shown)
  const name = `${PANEL_TITLES[kind].toLowerCase()}-${range.first}-to-${range.last}.csv`
  return fileResponse(visitsCsv(values), { name, type: CSV_TYPE })
}

/** The series of a chart as a file: hours or days of the account's time zone. */
export const hitFiles = signedInPages({
  'GET /app/analytics.csv': (context) => hitFile(context, accountHits(context), 'hits'),
  'GET /app/links/:code/hits.csv': (context) => {
    const hits = linkHits(context)
    return hitFile(context, hits, `hits-${hits.label}`)
  },
})

/** The query is that of the chart, and `by`: `hour` or `day`. */
async function hitFile(
  { deps, query }: PageContext,
  { owner, zone }: HitsPage,
  name: string,
): Promise<Response> {
  const { choice, typed } = parseRange(query)
  if (typed) throw refuse(typed.problem)
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
