import { planName } from '../../accounts/plans.ts'
import type { AccountRow } from '../../accounts/store.ts'
import type { RangeTopLink } from '../../analytics/top.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Usage } from '../../limits/budgets.ts'
import { ownLink, type PageContext, requireAccount } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { signedInPages } from '../page-routes.ts'
import { htmlResponse, movedTo, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import {
  type HitChart,
  hitSection,
  outOfBand,
  parseRange,
  periodOf,
  refreshedHits,
} from '../ui/hit-chart.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import { linkPath, shownUrl } from '../ui/link-parts.ts'
import { zoneSuggestion } from '../ui/local-time.ts'
import {
  ANALYTICS_PATH,
  accountHits,
  type HitsPage,
  linkHits,
  readRange,
  visitPanels,
} from './visits.ts'

const TOP_ROWS = 10

/** Hits of all links of the account, its links with the most hits, and its remaining budgets. */
export const analyticsPages = signedInPages({
  'GET /app/analytics': async (context) => {
    const chart = await readChart(context, accountHits(context))
    if (!wantsFragment(context.request)) return analyticsPage(context, chart)
    const limits = budgets(context)
    return htmlResponse(html`${refreshedHits(chart)}${outOfBand('budgets', limits)}`)
  },
  'GET /app/analytics/:code': (context) => {
    if (wantsFragment(context.request)) return refreshedLink(context)
    return seeOther(`${linkHits(context).path}?${parseRange(context.query).query}`)
  },
  // The paths of earlier versions.
  'GET /app/numbers': ({ query }) => movedTo(`${ANALYTICS_PATH}?${parseRange(query).query}`),
  'GET /app/numbers/:code': (context) =>
    movedTo(`${ANALYTICS_PATH}/${ownLink(context).code}?${parseRange(context.query).query}`),
})

/** The hits of a link over time, for the link's page, which accepts the range in its query. */
export async function linkHitsSection(context: PageContext): Promise<Html> {
  const hits = linkHits(context)
  const chart = await readChart(context, hits)
  return html`${hitSection(hits, chart)}
    ${await visitPanels(context.deps, hits, chart)}`
}

/** The element of a link's page whose number is refreshed with its chart. */
export const HIT_COUNT_ID = 'hit-count'

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

/** The chart of the range in the query. */
export async function readChart(
  { deps, query }: Pick<PageContext, 'deps' | 'query'>,
  { owner, zone, empty }: Pick<HitsPage, 'owner' | 'zone' | 'empty'>,
): Promise<HitChart> {
  const { series, clock, writer } = deps
  const chosen = parseRange(query)
  const now = clock()
  const range = await readRange(deps, { owner, zone, choice: chosen.choice })
  const previous = range.previous && (await series.bars(owner, range.previous)).counts
  const { counts, total, imported } = await series.bars(owner, range.bounds)
  // Refused while the disk is: the page does without them.
  const recent = await writer.call('recentHits', { owner, now }).catch(() => undefined)
  return { chosen, range, counts, previous, total, imported, now, recent, empty }
}

/** The limits of the plan, and their usage in the last minute. */
function budgets({ deps, user: { account } }: PageContext): Html {
  const { read, write } = deps.limiter.usage(account)
  const { bulkMax } = deps.plans[account.plan]
  return html`
    ${meter('Changes', 'write', write)}
    ${meter('Reads', 'read', read)}
    <p><strong>URLs in one bulk</strong><br>${parts.count(bulkMax)} at most</p>`
}

function meter(label: string, name: string, { limit, used }: Usage): Html {
  const id = `meter-${name}`
  if (limit === 0) return html`<p><strong>${label}</strong><br>no limit</p>`
  const all = { id, min: 0, max: limit, value: used, high: Math.ceil(limit * 0.9) }
  const text = `${parts.count(used)} of ${parts.count(limit)} used`
  return html`
    <div class="field">
      <label for="${id}">${label}</label>
      <meter ${attributes(all)}>${text}</meter>
      <p class="hint">${text}${
        used >= limit && html`. <strong>The next request is refused</strong>`
      }</p>
    </div>`
}

async function analyticsPage(context: PageContext, chart: HitChart): Promise<Response> {
  const { deps, user } = context
  const account = requireAccount(context)
  const hits = accountHits(context)
  return page(context, {
    title: 'Analytics',
    main: html`
      ${account.timeZone === null && zoneSuggestion(user)}
      ${hitSection(hits, chart)}
      ${await visitPanels(deps, hits, chart)}
      ${chart.total > 0 && (await topCard(deps, account, chart))}
      ${parts.card('API limits', [
        html`<p>Requests of your API keys and this dashboard in the last 60 seconds, and what the
          ${planName(account.plan)} plan allows. Redirects of your links do not count.</p>`,
        html`<div id="budgets" class="columns small">${budgets(context)}</div>`,
      ])}`,
  })
}

async function topCard({ top }: DashboardDeps, { id }: AccountRow, chart: HitChart): Promise<Html> {
  const { bounds } = chart.range
  const { links, isExact } = await top.find({
    accountId: id,
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
    topTable(links, period),
  ])
}

/** A bar behind each row shows its share of the first row. */
function topTable(links: readonly RangeTopLink[], period: string): Html {
  const most = Math.max(...links.map(({ hits }) => hits))
  const linkCell = ({ code, url, title, hits }: RangeTopLink) => {
    const { start, host, rest } = shownUrl(url ?? '')
    return html`${parts.shareBar(hits / most)}
      <a class="code" href="${linkPath(code)}">${code}</a>${title && html` ${title}`}
      <div class="hint cut">${url === null ? 'reserved' : start + host + rest}</div>`
  }
  const columns = {
    Link: linkCell,
    Hits: { cell: ({ hits }: RangeTopLink) => parts.count(hits), isNumber: true },
  }
  const caption = `The links with the most hits ${period}`
  const table = parts.table(caption, links, columns, { isNarrow: true })
  return html`<div class="shares">${table}</div>`
}
