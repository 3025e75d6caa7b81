import { Elysia } from 'elysia'
import { type PlanLimits, planName } from '../../accounts/plans.ts'
import { AppError } from '../../errors.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Usage } from '../../limits/budgets.ts'
import type { Link } from '../../links/link.ts'
import { topLinks } from '../../links/top.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { goTo } from '../answers.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import {
  type HitChart,
  hitChart,
  hitSection,
  outOfBand,
  queryOf,
  type RangeName,
  rangeNamed,
  refreshedHits,
} from '../ui/hit-chart.ts'
import { fragment, page, wantsFragment } from '../ui/layout.ts'
import { shownUrl } from '../ui/shown-url.ts'

const TOP = 10

export const numberPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.numbers', prefix: '/app/numbers' })
    .use(signedIn(deps))
    .get('', async ({ request, visitor, query }) => {
      const range = rangeNamed(query.range)
      const path = '/app/numbers'
      const shown = await ofAccount(deps, visitor, range)
      const usage = budgets(deps, visitor)
      if (wantsFragment(request))
        return fragment(html`${refreshedHits(shown)}${outOfBand('budgets', usage)}`)
      return numbersPage(deps, visitor, {
        numbers: hitSection({ path, live: path }, range, shown),
        usage,
        shown,
      })
    })
    .get('/:code', async ({ request, visitor, params, query }) => {
      const link = requireOwnedLink(deps, visitor.account, params.code)
      const range = rangeNamed(query.range)
      if (!wantsFragment(request)) return goTo(`/app/links/${link.code}?range=${range}`)
      return fragment(refreshedHits(await ofLink(deps, link, range)))
    })

/**
 * The hits of one of the visitor's own links over time, for the link's page: its address takes the
 * part's own `?range=`. Refreshes itself where the script runs.
 */
export async function linkNumbers(
  deps: DashboardDeps,
  { account }: Visitor,
  link: Link,
  query: { range?: string | undefined },
): Promise<Html> {
  if (link.accountId !== account.id) throw new AppError('code_not_found', link.code)
  const range = rangeNamed(query.range)
  const shown = await ofLink(deps, link, range)
  const place = { path: `/app/links/${link.code}`, live: `/app/numbers/${link.code}` }
  return hitSection(place, range, shown)
}

async function ofAccount(
  { reader, clock }: DashboardDeps,
  { account }: Visitor,
  name: RangeName,
): Promise<HitChart> {
  const now = clock()
  const query = { ...queryOf(name, now), accountId: account.id, now }
  const { buckets, committed } = await reader.call('accountSeries', query)
  const empty = html`<p>Nobody has followed a link of yours yet. Make one and share it: its hits
    show here a moment later.</p>${parts.linkButton('Go to the links', '/app/links', 'primary')}`
  return hitChart(name, { buckets, total: committed, empty })
}

async function ofLink(
  { series, hits, clock }: DashboardDeps,
  link: Link,
  name: RangeName,
): Promise<HitChart> {
  const now = clock()
  // Before the series: a hit between the two must not look like one outside of the range.
  const total = hits.of([link.id]).get(link.id) ?? 0
  const buckets = await series.ofLink(link.id, queryOf(name, now))
  const empty =
    link.url === null
      ? html`<p>The code is reserved. Give it a destination, and it can be followed.</p>`
      : html`<p>Nobody has followed this link yet. Its hits show here a moment after the first.</p>`
  return hitChart(name, { buckets, total, empty })
}

/** What the plan allows, and how much of it the last minute took. */
function budgets({ limiter, plans }: DashboardDeps, { account }: Visitor): Html {
  const { read, write } = limiter.usage(account)
  const limits: PlanLimits = plans[account.plan]
  return html`
    ${meter('Changes', 'write', write)}
    ${meter('Reads', 'read', read)}
    <p><strong>URLs in one bulk</strong><br>${limits.bulkMax.toLocaleString('en')} at most</p>`
}

function meter(label: string, name: string, { limit, used }: Usage): Html {
  const id = `meter-${name}`
  if (limit === 0) return html`<p><strong>${label}</strong><br>no limit</p>`
  const all = { id, class: 'meter', min: 0, max: limit, value: used, high: Math.ceil(limit * 0.9) }
  const text = `${used.toLocaleString('en')} of ${limit.toLocaleString('en')} used`
  return html`
    <div class="field">
      <label for="${id}">${label}</label>
      <meter ${attributes(all)}>${text}</meter>
      <p class="hint">${text}${used >= limit && html`. <strong>The next is refused</strong>`}</p>
    </div>`
}

interface Page {
  numbers: Html
  usage: Html
  shown: HitChart
}

async function numbersPage(deps: DashboardDeps, visitor: Visitor, all: Page): Promise<Response> {
  const { plan, id } = visitor.account
  const links = all.shown.total > 0 ? await topLinks(deps, { accountId: id, ...FIRST }) : []
  return page(visitor, {
    ...{ title: 'Numbers', current: 'numbers' },
    main: html`
      ${all.numbers}
      ${links.length > 0 && parts.card('Most followed', topTable(links))}
      ${parts.card('The last minute', [
        html`<p>What your API keys and these pages took of what the ${planName(plan)} plan allows in
          any 60 seconds. Visitors of your links take nothing of it.</p>`,
        html`<div id="budgets" class="limits">${all.usage}</div>`,
      ])}`,
  })
}

const FIRST = { limit: TOP, offset: 0 }

function topTable(links: Awaited<ReturnType<typeof topLinks>>): Html {
  const rows = links
    .filter(({ hitCount }) => hitCount > 0)
    .map(({ code, url, hitCount }) => {
      const { start, host, rest } = shownUrl(url ?? '')
      return [
        html`<a class="code" href="${`/app/links/${code}`}">${code}</a>
          <div class="hint cut">${url === null ? 'reserved' : start + host + rest}</div>`,
        hitCount.toLocaleString('en'),
      ]
    })
  const columns = [{ label: 'Link' }, { label: 'Hits', isNumber: true }]
  return parts.table({ caption: 'The links with the most hits of all time', columns, rows })
}
