import type { AccountRow } from '../../accounts/store.ts'
import {
  CAMPAIGN_LINKS_MAX,
  type CampaignReport,
  type CampaignRow,
  campaignReport,
} from '../../analytics/campaigns.ts'
import { visitsCsv } from '../../analytics/read.ts'
import { SPAN_DAYS_MAX } from '../../analytics/schema.ts'
import type { RangeTopLink } from '../../analytics/top.ts'
import { AppError } from '../../errors.ts'
import { type BarUnit, dateOf, type HitRange, zonedHour } from '../../hits/range.ts'
import { REPORT_LINKS_MAX } from '../../hits/series.ts'
import { BYTE_ORDER_MARK, CSV_TYPE, csvLine } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { STORED_KINDS } from '../../visits/values.ts'
import { type PageContext, requireAccount } from '../auth/guard.ts'
import {
  ANALYTICS_PATH,
  analyticsTabs,
  CAMPAIGNS_PATH,
  daysOf,
  HIT_COUNT_ID,
  type HitsPage,
  linkHits,
  REPORT_MAX,
  readChart,
  readRange,
  refsOf,
  visitPanels,
} from '../cards/hits.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages, viewer } from '../page-routes.ts'
import { fileResponse, htmlResponse, refuse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import {
  type HitChart,
  hitSection,
  outOfBand,
  parseRange,
  periodOf,
  rangeBar,
  refreshedHits,
} from '../ui/hit-chart.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import { addressText, linkPath } from '../ui/link-parts.ts'
import { shownUrl } from '../ui/shown-url.ts'
import { changeText, knownPart, PANELS, scansOf, valueTable } from '../ui/visit-panels.ts'

const TOP_ROWS = 10

/**
 * Hits and visitors of the account and of its links, as pages, parts of pages and files. `?tag=`
 * and `?links=` with codes limit the account's to a report on some links.
 */
export const analyticsPages = signedInPages({
  'GET /app/analytics': {
    role: 'viewer',
    offers: [{ label: 'Analytics', place: 'navigation', words: 'hits visitors report' }],
    run: async (context) => {
      const report = await reportHits(context)
      const chart = await readChart(context, report)
      if (wantsFragment(context.request)) return htmlResponse(refreshedHits(chart))
      return analyticsPage(context, report, chart)
    },
  },
  'GET /app/analytics/campaigns': viewer(campaignsPage, {
    offers: [{ label: 'Campaigns', words: 'utm analytics report' }],
  }),
  'GET /app/analytics/campaigns.csv': viewer(campaignsFile),
  'GET /app/analytics/:code': viewer((context) =>
    wantsFragment(context.request)
      ? refreshedLink(context)
      : `${linkHits(context).path}?${parseRange(context.query).query}`,
  ),
  'GET /app/analytics/visits': viewer(async (context) =>
    valuesPage(context, await reportHits(context)),
  ),
  'GET /app/analytics/visits.csv': viewer(async (context) =>
    valuesFile(context, await reportHits(context)),
  ),
  'GET /app/links/:code/visits': viewer((context) => valuesPage(context, linkHits(context))),
  'GET /app/links/:code/visits.csv': viewer((context) => valuesFile(context, linkHits(context))),
  'GET /app/analytics.csv': viewer(async (context) =>
    hitFile(context, await reportHits(context), 'hits'),
  ),
  'GET /app/links/:code/hits.csv': viewer((context) => {
    const hits = linkHits(context)
    return hitFile(context, hits, `hits-${hits.label}`)
  }),
})

async function refreshedLink(context: PageContext): Promise<Response> {
  try {
    const chart = await readChart(context, linkHits(context))
    const count = html`${parts.count(chart.total)}`
    return htmlResponse(html`${refreshedHits(chart)}${outOfBand(HIT_COUNT_ID, count)}`)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    // The link was deleted while its page was open. Reload the page, which reports that.
    const path = linkPath(encodeURIComponent(context.params.code ?? ''))
    return htmlResponse(html``, { status: error.status, headers: { 'hx-redirect': path } })
  }
}

async function analyticsPage(
  context: PageContext,
  report: HitsPage,
  chart: HitChart,
): Promise<Response> {
  const { deps } = context
  const account = requireAccount(context)
  return page(context, {
    title: report.label,
    ...(report.scope
      ? { back: { href: ANALYTICS_PATH, label: 'Analytics of all links' } }
      : { tabs: analyticsTabs('hits', chart.chosen.query) }),
    main: html`
      ${report.note && html`<p class="hint">${report.note}</p>`}
      ${hitSection(report, chart)}
      ${visitPanels(context, report, chart)}
      ${chart.total > 0 && (await topCard(deps, { account, report, chart }))}`,
  })
}

interface TopCard {
  account: AccountRow
  report: HitsPage
  chart: HitChart
}

async function topCard(deps: DashboardDeps, { account, report, chart }: TopCard): Promise<Html> {
  const { bounds } = chart.range
  const { links, isExact } = await deps.top.findInRange({
    accountId: account.id,
    linkIds: 'linkIds' in report.counted ? report.counted.linkIds : undefined,
    from: bounds[0] ?? 0,
    to: bounds.at(-1) ?? 0,
    limit: TOP_ROWS,
  })
  const period = periodOf(chart)
  if (links.length === 0) return parts.card('Top links', html`<p>No hits ${period}.</p>`)
  return parts.card('Top links', [
    html`<p class="hint">Hits ${period}.${
      !isExact && ' Among the links with the most hits of all time and the newest ones.'
    }</p>`,
    topTable(deps, links, period),
  ])
}

/** A bar behind each row shows its share of the first row. */
function topTable(deps: DashboardDeps, links: readonly RangeTopLink[], period: string): Html {
  const most = Math.max(...links.map(({ hits }) => hits))
  const linkCell = ({ code, url, title, hits }: RangeTopLink) => {
    const { start, host, rest } = shownUrl(url ?? '')
    const link = deps.data.links.findByCode(code)
    const address = link ? addressText(deps.addresses.display(link)) : code
    const to = url === null ? 'reserved' : start + host + rest
    return html`${parts.shareBar(hits / most)}
      <a href="${linkPath(code)}"><strong>${title ?? address}</strong></a>
      <div class="hint cut">${title !== null && html`${address} → `}${to}</div>`
  }
  const columns = {
    Link: linkCell,
    Hits: { cell: ({ hits }: RangeTopLink) => parts.count(hits), isNumber: true },
  }
  const caption = `The links with the most hits ${period}`
  const table = parts.table(caption, links, columns, { isNarrow: true })
  return html`<div class="shares">${table}</div>`
}

/** Values on a page of all values, and in a file. */
const VALUES_MAX = 1000

/** All links of the account, or those with the tag or the codes in the query. */
async function reportHits(context: PageContext): Promise<HitsPage> {
  const { deps, user, query } = context
  const accountId = user.account.id
  const shared = { zone: user.zone, path: ANALYTICS_PATH, live: ANALYTICS_PATH }
  const csv = `${ANALYTICS_PATH}.csv`
  const empty = html`<p>None of these links has been followed yet. Their hits appear here within
    seconds.</p>`
  if (query.tag !== undefined) {
    const { tag } = query
    const limit = REPORT_LINKS_MAX + 1
    const found = await deps.data.lists.withTag({ accountId, tag, limit })
    const linkIds = found.slice(0, REPORT_LINKS_MAX)
    const note =
      found.length > linkIds.length
        ? `The newest ${linkIds.length} links with this tag.`
        : `${parts.plural(linkIds.length, 'link')} with this tag.`
    const scope = `${new URLSearchParams({ tag })}&`
    return { ...shared, csv, empty, counted: { linkIds }, scope, label: `Analytics: ${tag}`, note }
  }
  if (query.links !== undefined) {
    const codes = query.links.split(',').slice(0, REPORT_LINKS_MAX)
    const links = codes.map((code) => requireOwnedLink(deps, user.account, code))
    const note = `${parts.plural(links.length, 'selected link')}.`
    const scope = `${new URLSearchParams({ links: codes.join(',') })}&`
    const counted = { linkIds: links.map(({ id }) => id) }
    return { ...shared, csv, empty, counted, scope, label: 'Analytics: selection', note }
  }
  return {
    ...shared,
    csv,
    counted: { accountId },
    label: 'Analytics',
    empty: html`<p>None of your links has been followed yet. Create one and share it: its hits
      appear here within seconds.</p>
      ${parts.linkButton('Go to the links', '/app/links', 'primary')}`,
  }
}

async function read(context: PageContext, { counted, zone }: HitsPage) {
  const { deps, query } = context
  const kind = STORED_KINDS.find((one) => one === query.by) ?? 'referrer'
  const chosen = parseRange(query)
  const range = await readRange(deps, { counted, zone, choice: chosen.choice })
  const [days, refs] = [daysOf(range.bounds), refsOf(context)]
  const visits = await deps.visitDetails.of(counted, days, context.user.account.id, refs)
  const values = kind === 'scan' ? scansOf(visits, refs) : visits.values[kind]
  return { kind, chosen, range, visits, values: values.slice(0, VALUES_MAX) }
}

async function valuesPage(context: PageContext, shown: HitsPage): Promise<Response> {
  const { kind, chosen, visits, values } = await read(context, shown)
  const { title } = PANELS[kind]
  const { path, scope = '', label } = shown
  const csv = `${path}/visits.csv?${scope}by=${kind}&${chosen.query}`
  return page(context, {
    title,
    back: { href: `${path}?${scope}${chosen.query}#visits`, label },
    main: parts.card('All values', [
      html`<p class="hint">${knownPart(visits)}</p>`,
      values.length === 0
        ? html`<p>None yet.</p>`
        : valueTable(kind, values, { visits, before: undefined }),
      html`<p><a href="${csv}" download>Download as CSV</a></p>`,
    ]),
  })
}

async function valuesFile(context: PageContext, shown: HitsPage): Promise<Response> {
  const { kind, range, values } = await read(context, shown)
  const name = `${PANELS[kind].title.toLowerCase()}-${range.first}-to-${range.last}.csv`
  return fileResponse(BYTE_ORDER_MARK + visitsCsv(values), { name, type: CSV_TYPE })
}

/** By hour or day of the account's time zone. The query is that of the chart, and `by`. */
async function hitFile(
  { deps, query }: PageContext,
  { counted, zone }: HitsPage,
  name: string,
): Promise<Response> {
  const { choice, typed } = parseRange(query)
  if (typed) throw refuse(typed.problem)
  const chart = await readRange(deps, { counted, zone, choice })
  const unit = unitOf(query.by, chart)
  const days = chart.first.until(chart.last).days + 1
  if (unit === 'hour' && days > SPAN_DAYS_MAX.hour) {
    throw refuse(`At most ${SPAN_DAYS_MAX.hour} days by hour.`)
  }
  const range = unit === chart.unit ? chart : await readRange(deps, { counted, zone, choice, unit })
  const { counts } = await deps.series.bars(counted, range.bounds)
  const lines = counts.map((count, i) => csvLine([startText(range, i), count]))
  const head = BYTE_ORDER_MARK + csvLine([`${unit} (${zone})`, 'hits'])
  const file = `${name}-${range.first}-to-${range.last}.csv`
  return fileResponse(head + lines.join(''), { name: file, type: CSV_TYPE })
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

/** Hits and scans by the campaign parameters of destinations. */

type Campaigns = CampaignReport & Pick<HitChart, 'chosen' | 'range' | 'now'>

async function readCampaigns({ deps, user, query }: PageContext): Promise<Campaigns> {
  const accountId = user.account.id
  const chosen = parseRange(query)
  const { choice } = chosen
  const range = await readRange(deps, { counted: { accountId }, zone: user.zone, choice })
  const [days, refs] = [daysOf(range.bounds), refsOf({ deps, user })]
  const report = await campaignReport(deps, { accountId, range, days, refs })
  return { ...report, chosen, range, now: deps.clock() }
}

async function campaignsPage(context: PageContext): Promise<Response> {
  const report = await readCampaigns(context)
  const { chosen, campaigns, total } = report
  const none =
    total > 0 ? html`<div class="empty">No hits ${periodOf(report)}.</div>` : NO_CAMPAIGNS
  return page(context, {
    title: 'Analytics',
    tabs: analyticsTabs('campaigns', chosen.query),
    main: html`<section class="card" id="hits-section">
      <h2 class="visually-hidden">Campaigns</h2>
      ${rangeBar({ path: CAMPAIGNS_PATH }, report)}
      ${campaigns.length > 0 ? campaignTable(report) : none}
    </section>`,
  })
}

const NO_CAMPAIGNS = parts.emptyState(
  'No campaigns yet',
  html`<p>Links whose URL has <strong>utm_campaign</strong>, <strong>utm_source</strong> or
      <strong>utm_medium</strong> are added up here. Fill in <strong>Campaign</strong> when you
      create one.</p>
    ${parts.linkButton('Create a link', '/app/links?url=', 'primary')}`,
)

/** Characters of a name: a page of 500 campaigns has less than 1 MB. */
const NAME_MAX = 40
const beginning = (name: string): string => {
  const characters = [...name]
  return characters.length > NAME_MAX ? `${characters.slice(0, NAME_MAX).join('')}…` : name
}

interface CampaignLine extends CampaignRow {
  name: Html
}

/** A row for each campaign, and below it those of its sources. */
const rowsOf = ({ campaigns, chosen }: Campaigns): CampaignLine[] =>
  campaigns.flatMap(({ all, sources }) => {
    const { codes, campaign } = all
    const title = html`<strong>${beginning(campaign) || 'No campaign name'}</strong>`
    const href = `${ANALYTICS_PATH}?links=${codes.join(',')}&${chosen.query}`
    const link = codes.length <= REPORT_MAX ? html`<a href="${href}">${title}</a>` : title
    const name = html`${link} <span class="hint">${parts.plural(codes.length, 'link')}</span>`
    const sourceLine = (row: CampaignRow) => {
      const named = [row.source, row.medium].filter(Boolean).map(beginning)
      const text = named.join(' / ') || 'No source'
      return { ...row, name: html`<span class="source">${text}</span>` }
    }
    return [{ ...all, name }, ...sources.map(sourceLine)]
  })

function campaignTable(report: Campaigns): Html {
  const { chosen, range, total } = report
  const rows = rowsOf(report)
  const most = Math.max(...rows.map(({ hits }) => hits), 1)
  const columns = {
    'Campaign, source and medium': ({ name, hits }: CampaignLine) =>
      html`${parts.shareBar(hits / most)}${name}`,
    Hits: { cell: ({ hits }: CampaignLine) => parts.count(hits), isNumber: true },
    Scans: { cell: ({ scans }: CampaignLine) => parts.count(scans), isNumber: true },
    ...(range.previous && {
      Change: {
        cell: ({ hits, before }: CampaignLine) => changeText(hits, before),
        isNumber: true,
      },
    }),
  }
  const period = periodOf(report)
  const table = parts.table(`Campaigns ${period}`, rows, columns, { isNarrow: true })
  const half = CAMPAIGN_LINKS_MAX / 2
  return html`
    <p class="hint">Hits ${period} of links with campaign parameters in their URL.${
      total > CAMPAIGN_LINKS_MAX &&
      ` Of ${parts.count(total)} links, these are the newest ${half} and the ${half} with the most
        hits of all time.`
    }</p>
    <div class="shares">${table}</div>
    <div class="row apart">
      <p class="hint">Scans are visits with the word of a code in the address, by UTC day.</p>
      <p><a href="${`${CAMPAIGNS_PATH}.csv?${chosen.query}`}" download>Download as CSV</a></p>
    </div>`
}

async function campaignsFile(context: PageContext): Promise<Response> {
  const { campaigns, chosen, range } = await readCampaigns(context)
  if (chosen.typed) throw refuse(chosen.typed.problem)
  const head = ['campaign', 'source', 'medium', 'links', 'hits', 'scans', 'hits_before']
  const lines = campaigns
    .flatMap(({ sources }) => sources)
    .map(({ campaign, source, medium, codes, hits, scans, before }) =>
      csvLine([campaign, source, medium, codes.length, hits, scans, range.previous ? before : '']),
    )
  const name = `campaigns-${range.first}-to-${range.last}.csv`
  return fileResponse(BYTE_ORDER_MARK + csvLine(head) + lines.join(''), { name, type: CSV_TYPE })
}
