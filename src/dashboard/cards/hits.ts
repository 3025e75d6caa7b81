import type { DayRange } from '../../analytics/visits.ts'
import { DASHBOARD_REF } from '../../draw/options.ts'
import { type BarUnit, type HitRange, hitRange, type RangeChoice } from '../../hits/range.ts'
import { type CountedLinks, DAYS_KEPT, HOURS_OF_DAY } from '../../hits/series.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { StoredKind } from '../../visits/values.ts'
import { ownLink, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { type HitChart, hitSection, parseRange } from '../ui/hit-chart.ts'
import { linkPath } from '../ui/link-parts.ts'
import { visitSection } from '../ui/visit-panels.ts'

/**
 * Hits and visitors of an account, of some links or of one link: their chart and the panels below
 * it, which several pages have.
 */

export const ANALYTICS_PATH = '/app/analytics'
export const CAMPAIGNS_PATH = `${ANALYTICS_PATH}/campaigns`
/** Links of a report on a selection: their codes are in its address. */
export const REPORT_MAX = 200

/** The pages of Analytics, each for the same range. */
export function analyticsTabs(current: 'hits' | 'campaigns', query: string): Html {
  const tab = (name: typeof current, label: string, path: string) => {
    const isCurrent = name === current
    const all = { href: `${path}?${query}`, 'aria-current': isCurrent ? 'page' : undefined }
    return html`<li><a ${attributes(all)}>${label}</a></li>`
  }
  return html`<nav class="tabs" aria-label="Pages of Analytics"><ul>
    ${tab('hits', 'Hits', ANALYTICS_PATH)}
    ${tab('campaigns', 'Campaigns', CAMPAIGNS_PATH)}</ul></nav>`
}

/** Words in the address whose visits are scans of the account's codes. */
export const refsOf = ({ deps, user }: Pick<PageContext, 'deps' | 'user'>): string[] => [
  ...new Set([DASHBOARD_REF, ...deps.data.qrSettings.listRefs(user.account.id)]),
]

/** Whose hits, and where they are shown. */
export interface HitsPage {
  counted: CountedLinks
  zone: string
  path: string
  /** The query that limits a report to some links, with `&` at its end. */
  scope?: string
  label: string
  /** Which links a report is about. */
  note?: string
  /** The source of refreshes, and the series as a file. */
  live: string
  csv: string
  /** Advice while there are no hits. */
  empty: Html
}

/** Hits and visitors of a link, for its page, which accepts the range in its query. */
export async function linkSections(context: PageContext): Promise<{ hits: Html; visitors: Html }> {
  const hits = linkHits(context)
  const chart = await readChart(context, hits)
  return { hits: hitSection(hits, chart), visitors: visitPanels(context, hits, chart) }
}

/** The element of a link's page whose number is refreshed with its chart. */
export const HIT_COUNT_ID = 'hit-count'

/** The chart of the range in the query, with details of visitors. */
export async function readChart(context: PageContext, hits: HitsPage): Promise<HitChart> {
  const { deps, query, user } = context
  const { counted, zone, empty } = hits
  const { series, clock, data, visitDetails } = deps
  const chosen = parseRange(query)
  const now = clock()
  const range = await readRange(deps, { counted, zone, choice: chosen.choice })
  const previous = range.previous && (await series.bars(counted, range.previous)).counts
  const { counts, total, imported } = await series.bars(counted, range.bounds)
  // Refused while the disk is: the page does without them.
  const recent = await data.hits.recent({ counted, now }).catch(() => undefined)
  const refs = refsOf(context)
  const visitsIn = (bounds: readonly number[]) =>
    visitDetails.of(counted, daysOf(bounds), user.account.id, refs)
  const visits = await visitsIn(range.bounds)
  const chart = { chosen, range, counts, previous, total, imported, now, recent, empty, visits }
  if (!range.previous || visits.known === 0) return chart
  const before = await visitsIn(range.previous)
  // A comparison with details of few redirects would compare the gaps.
  return { ...chart, ...(before.known > before.hits / 2 && { visitsBefore: before }) }
}

export function linkHits(context: PageContext): HitsPage {
  const { id, code, url } = ownLink(context)
  const path = linkPath(code)
  return {
    counted: { linkId: id },
    zone: context.user.zone,
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
  counted: CountedLinks
  choice: RangeChoice
  zone: string
  unit?: BarUnit
}

/** The range that a page or a file shows. */
export async function readRange(
  { series, clock }: DashboardDeps,
  { counted, choice, ...options }: RangeOptions,
): Promise<HitRange> {
  const firstHit = 'preset' in choice ? await series.firstHit(counted) : undefined
  return hitRange(choice, { ...options, now: clock(), firstHit })
}

/** The panels below a chart. */
export function visitPanels(
  context: PageContext,
  { path, scope = '' }: HitsPage,
  { chosen, range, visits, visitsBefore: before }: HitChart,
): Html {
  const { isOn, hasCountries } = context.deps.visitDetails
  const refs = refsOf(context)
  const paths = (kind: StoredKind) => {
    const query = `${scope}by=${kind}&${chosen.query}`
    return { all: `${path}/visits?${query}`, csv: `${path}/visits.csv?${query}` }
  }
  const days = daysOf(range.bounds)
  return visitSection({ visits, before, days, isOn, hasCountries, paths, refs })
}

/** The UTC days that lie for the most part between the first and the last bound. */
export function daysOf(bounds: readonly number[]): DayRange {
  const dayAt = (hour = 0) => Math.round(hour / HOURS_OF_DAY)
  const to = Math.max(1, Math.ceil((bounds.at(-1) ?? 0) / HOURS_OF_DAY))
  return { from: Math.max(to - DAYS_KEPT.day, Math.min(to - 1, dayAt(bounds[0]))), to }
}
