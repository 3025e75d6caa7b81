import { visitsCsv } from '../../analytics/read.ts'
import type { DayRange } from '../../analytics/visits.ts'
import { type BarUnit, type HitRange, hitRange, type RangeChoice } from '../../hits/range.ts'
import { DAYS_KEPT, type HitOwner, HOURS_OF_DAY } from '../../hits/series.ts'
import { CSV_TYPE } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { VISIT_KINDS, type VisitKind } from '../../visits/values.ts'
import { ownLink, type PageContext, requireAccount } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages } from '../page-routes.ts'
import { fileResponse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type HitChart, parseRange } from '../ui/hit-chart.ts'
import { page } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'
import { knownPart, PANEL_TITLES, totalOf, valueTable, visitSection } from '../ui/visit-panels.ts'
import { zoneOf } from '../ui/zone-form.ts'

/** Values on a page of all values, and in a file. */
const VALUES_MAX = 1000

/** All values of a panel, as a page and as a file. */
export const visitPages = signedInPages({
  'GET /app/analytics/visits': (context) => valuesPage(context, accountHits(context)),
  'GET /app/analytics/visits.csv': (context) => valuesFile(context, accountHits(context)),
  'GET /app/links/:code/visits': (context) => valuesPage(context, linkHits(context)),
  'GET /app/links/:code/visits.csv': (context) => valuesFile(context, linkHits(context)),
})

/** Whose hits, and the page that shows them. */
export interface HitsPage {
  owner: HitOwner
  path: string
  label: string
}

export const accountHits = ({ user }: PageContext): HitsPage => ({
  owner: { accountId: user.account.id },
  path: '/app/analytics',
  label: 'Analytics',
})

export function linkHits(context: PageContext): HitsPage {
  const { id, code } = ownLink(context)
  return { owner: { linkId: id }, path: linkPath(code), label: code }
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
export function daysOf({ bounds }: HitRange): DayRange {
  const to = Math.ceil((bounds.at(-1) ?? 0) / HOURS_OF_DAY)
  const from = Math.max(to - DAYS_KEPT.day, Math.floor((bounds[0] ?? 0) / HOURS_OF_DAY))
  return { from, to }
}

async function read(context: PageContext, { owner }: HitsPage) {
  const { deps, query } = context
  const kind = VISIT_KINDS.find((one) => one === query.by) ?? 'referrer'
  const chosen = parseRange(query)
  const zone = zoneOf(requireAccount(context))
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
