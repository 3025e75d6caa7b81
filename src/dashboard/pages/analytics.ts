import { Elysia } from 'elysia'
import { planName } from '../../accounts/plans.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Usage } from '../../limits/budgets.ts'
import type { Link } from '../../links/link.ts'
import { topLinks } from '../../links/top.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { type CurrentUser, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { htmlResponse, movedTo, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import {
  type HitChart,
  hitChart,
  hitSection,
  outOfBand,
  parseRange,
  queryOf,
  type RangeName,
  refreshedHits,
} from '../ui/hit-chart.ts'
import { page, wantsFragment } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'
import { shownUrl } from '../ui/shown-url.ts'

const PATH = '/app/analytics'
const TOP_ROWS = 10

/** Hits of all links of the account, its most followed links, and what is left of its budgets. */
export const analyticsPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.analytics', prefix: '/app' })
    .use(signedIn(deps))
    .get('/analytics', async ({ request, user, query }) => {
      const range = parseRange(query.range)
      const chart = await accountChart(deps, user, range)
      if (!wantsFragment(request)) return analyticsPage(deps, user, range, chart)
      return htmlResponse(html`${refreshedHits(chart)}${outOfBand('budgets', budgets(deps, user))}`)
    })
    .get('/analytics/:code', async ({ request, user, params, query }) => {
      const link = requireOwnedLink(deps, user.account, params.code)
      const range = parseRange(query.range)
      if (!wantsFragment(request)) return seeOther(`${linkPath(link.code)}?range=${range}`)
      return htmlResponse(refreshedHits(await linkChart(deps, link, range)))
    })
    // The paths of earlier versions.
    .get('/numbers', ({ query }) => movedTo(`${PATH}?range=${parseRange(query.range)}`))
    .get('/numbers/:code', ({ user, params, query }) => {
      const { code } = requireOwnedLink(deps, user.account, params.code)
      return movedTo(`${PATH}/${code}?range=${parseRange(query.range)}`)
    })

/** The hits of a link over time, for the link's page, which accepts `?range=`. */
export async function linkHits(deps: DashboardDeps, link: Link, range: RangeName): Promise<Html> {
  const paths = { path: linkPath(link.code), live: `${PATH}/${link.code}` }
  return hitSection(paths, range, await linkChart(deps, link, range))
}

async function accountChart(
  { reader, clock }: DashboardDeps,
  { account }: CurrentUser,
  name: RangeName,
): Promise<HitChart> {
  const now = clock()
  const query = { ...queryOf(name, now), accountId: account.id, now }
  const { buckets, committed } = await reader.call('accountSeries', query)
  const empty = html`<p>None of your links has been followed yet. Create one and share it: its hits
    appear here within seconds.</p>${parts.linkButton('Go to the links', '/app/links', 'primary')}`
  return hitChart(name, { buckets, total: committed, empty })
}

async function linkChart(
  { series, hits, clock }: DashboardDeps,
  link: Link,
  name: RangeName,
): Promise<HitChart> {
  const now = clock()
  // Before the series: otherwise a hit in between would seem to be outside of the range.
  const total = hits.of([link.id]).get(link.id) ?? 0
  const buckets = await series.ofLink(link.id, queryOf(name, now))
  const empty =
    link.url === null
      ? html`<p>This code is reserved. Set a destination to use it.</p>`
      : html`<p>This link has not been followed yet. Its hits appear here within seconds.</p>`
  return hitChart(name, { buckets, total, empty })
}

/** The limits of the plan, and their usage in the last minute. */
function budgets({ limiter, plans }: DashboardDeps, { account }: CurrentUser): Html {
  const { read, write } = limiter.usage(account)
  return html`
    ${meter('Changes', 'write', write)}
    ${meter('Reads', 'read', read)}
    <p><strong>URLs in one bulk</strong><br>${parts.count(plans[account.plan].bulkMax)} at most</p>`
}

function meter(label: string, name: string, { limit, used }: Usage): Html {
  const id = `meter-${name}`
  if (limit === 0) return html`<p><strong>${label}</strong><br>no limit</p>`
  const all = { id, class: 'meter', min: 0, max: limit, value: used, high: Math.ceil(limit * 0.9) }
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

async function analyticsPage(
  deps: DashboardDeps,
  user: CurrentUser,
  range: RangeName,
  chart: HitChart,
): Promise<Response> {
  const { id, plan } = user.account
  const top = { accountId: id, limit: TOP_ROWS, offset: 0 }
  const links = chart.total > 0 ? await topLinks(deps, top) : []
  return page(user, {
    title: 'Analytics',
    current: 'analytics',
    main: html`
      ${hitSection({ path: PATH, live: PATH }, range, chart)}
      ${links.length > 0 && parts.card('Most followed of all time', topTable(links))}
      ${parts.card('API limits', [
        html`<p>Requests of your API keys and this dashboard in the last 60 seconds, and what the
          ${planName(plan)} plan allows. Redirects of your links do not count.</p>`,
        html`<div id="budgets" class="limits">${budgets(deps, user)}</div>`,
      ])}`,
  })
}

function topTable(links: Awaited<ReturnType<typeof topLinks>>): Html {
  const rows = links
    .filter(({ hitCount }) => hitCount > 0)
    .map(({ code, url, hitCount }) => {
      const { start, host, rest } = shownUrl(url ?? '')
      return [
        html`<a class="code" href="${linkPath(code)}">${code}</a>
          <div class="hint cut">${url === null ? 'reserved' : start + host + rest}</div>`,
        parts.count(hitCount),
      ]
    })
  const columns = ['Link', { label: 'Hits', isNumber: true }]
  return parts.table({ caption: 'The links with the most hits of all time', columns, rows })
}
