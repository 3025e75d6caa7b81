import type { Account } from '../../accounts/store.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import type { Link } from '../../links/link.ts'
import { SEARCH_MAX } from '../../links/schema.ts'
import { TOP_MAX, topLinks } from '../../links/top.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from './components.ts'
import { count } from './components.ts'
import { destination, linkPath, shortUrl } from './link-parts.ts'
import { lastPage, PAGE_SIZE, pageNumber, pager } from './pager.ts'

/** The list of an account's links: its query, its rows, its markup. */

interface TableQuery {
  /** Empty: all links. */
  search: string
  /** The text was too long, and `search` is its beginning. */
  isCut: boolean
  /** From 1. */
  page: number
  /** Only without a search. */
  byHits: boolean
}

export interface LinkTable extends TableQuery {
  /** All matches on all pages. Sorted by hits: the links that the order reaches. */
  total: number
  /** All links of the account. */
  linkCount: number
  /** The cells of each row. */
  rows: readonly ReturnType<typeof cells>[]
}

export function parseTableQuery(query: Readonly<Record<string, string | undefined>>): TableQuery {
  const text = [...(query.q ?? '').trim()]
  const search = text.slice(0, SEARCH_MAX).join('')
  return {
    search,
    isCut: text.length > SEARCH_MAX,
    page: pageNumber(query.page),
    byHits: search === '' && query.sort === 'hits',
  }
}

function pathOf({ search, page, byHits }: TableQuery): string {
  const query = new URLSearchParams({
    ...(search && { q: search }),
    ...(byHits && { sort: 'hits' }),
    ...(page > 1 && { page: String(page) }),
  })
  return query.size > 0 ? `/app/links?${query}` : '/app/links'
}

/** Loads the requested page, or the last one if there are fewer. */
export async function loadTable(
  deps: DashboardDeps,
  account: Account,
  query: TableQuery,
  signal?: AbortSignal,
): Promise<LinkTable> {
  const linkCount = deps.accounts.find(account.id)?.linkCount ?? 0
  const { total, rows } = await loadRows(deps, account, { query, linkCount, signal })
  if (rows.length > 0 || total === 0 || query.page === 1) {
    return { ...query, total, linkCount, rows: await renderRows(deps, rows) }
  }
  const page = Math.min(lastPage(total), query.page - 1)
  return loadTable(deps, account, { ...query, page }, signal)
}

interface LoadOptions {
  query: TableQuery
  linkCount: number
  signal: AbortSignal | undefined
}

type CountedLink = Link & { hitCount: number }

async function loadRows(
  deps: DashboardDeps,
  { id: accountId }: Account,
  { query, linkCount, signal }: LoadOptions,
): Promise<{ total: number; rows: CountedLink[] }> {
  const { search, page, byHits } = query
  const part = { accountId, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE }
  if (byHits) return { total: Math.min(linkCount, TOP_MAX), rows: await topLinks(deps, part) }
  const { total, links } = await deps.pages.find({ ...part, search }, signal)
  const counts = deps.hits.of(links.map(({ id }) => id))
  return { total, rows: links.map((link) => ({ ...link, hitCount: counts.get(link.id) ?? 0 })) }
}

/** Rows rendered in one time slice, so that redirects do not wait for a whole page. */
const ROWS_AT_ONCE = 5

function renderRows({ addresses, moderation }: DashboardDeps, rows: readonly CountedLink[]) {
  const reasons = moderation.reads.findReasons(rows.map(({ code }) => code))
  return pageSlices.map(rows, ROWS_AT_ONCE, (row) =>
    cells(row, addresses.short(row.code), reasons.get(row.code)),
  )
}

/** `disabled`: why the operator disabled the code. */
const cells = (
  { code, url, createdAt, hitCount }: CountedLink,
  short: string,
  disabled: string | undefined,
) => [
  shortUrl(short, { id: `short-${code}`, href: linkPath(code) }),
  html`${
    url === null
      ? html`<span class="quiet">No destination yet</span>`
      : destination(url, linkPath(code))
  }${
    disabled !== undefined && html`<div class="error">Disabled by the operator: ${disabled}</div>`
  }`,
  parts.time(createdAt),
  count(hitCount),
  html`<a class="button plain small" ${attributes({ href: linkPath(code) })}
    aria-label="Details of ${code}">Details</a>`,
]

const COLUMNS = [
  'Short URL',
  'Destination',
  'Created',
  { label: 'Hits', isNumber: true },
  { label: 'Details', isHidden: true },
]

/** The search and the list; no search if the account has no links. */
export function listSection(table: LinkTable): Html {
  if (table.linkCount === 0 && table.search === '') {
    return parts.emptyState(
      'No links yet',
      html`<p>Paste a URL above to get a short link and a QR code. Your own code can create links
      with an <a href="/app/keys">API key</a>.</p>`,
    )
  }
  return html`
    <section class="card" aria-labelledby="all-links">
      <div class="list-top">
        <h2 id="all-links">Your links</h2>
        <p id="found" class="quiet" role="status">${found(table)}</p>
      </div>
      ${searchForm(table)}
      ${list(table)}
    </section>`
}

/** The list for htmx, and the path that the address bar then shows. */
export function listFragment(table: LinkTable): { markup: Html; path: string } {
  const status = html`<p id="found" hx-swap-oob="innerHTML">${found(table)}</p>`
  return { markup: html`${list(table)}${status}`, path: pathOf(table) }
}

function found({ search, isCut, total, linkCount }: LinkTable): string {
  if (search === '') return parts.plural(linkCount, 'link')
  const text = `${count(total)} of ${parts.plural(linkCount, 'link')}`
  return isCut ? `${text} match the first ${SEARCH_MAX} characters of your search` : text
}

function searchForm({ search }: TableQuery): Html {
  const all = attributes({
    method: 'get',
    action: '/app/links',
    role: 'search',
    class: 'one-line',
    id: 'search',
    'hx-get': '/app/links',
    'hx-target': '#list',
    'hx-swap': 'outerHTML',
    'hx-trigger': 'submit, input changed delay:250ms',
    'hx-sync': 'this:replace',
    'hx-indicator': '#list',
  })
  return html`
    <form ${all}>
      ${parts.field({
        name: 'q',
        label: 'Search code and URL',
        type: 'search',
        value: search,
        autocomplete: 'off',
        extra: { maxlength: SEARCH_MAX, spellcheck: 'false' },
      })}
      ${parts.button('Search', 'plain')}
    </form>`
}

function list(table: LinkTable): Html {
  const { search, rows, page, total } = table
  if (rows.length === 0) {
    return html`<div id="list">${parts.emptyState(
      'Nothing found',
      html`<p>No links match “${search}”.</p>
        ${parts.linkButton('Show all links', '/app/links')}`,
    )}</div>`
  }
  return html`
    <div id="list">
      ${sortLinks(table)}
      ${parts.table({ caption: 'Your links', columns: COLUMNS, rows })}
      ${pager(page, total, (to) => pathOf({ ...table, page: to }))}
    </div>`
}

function sortLinks({ search, byHits, linkCount }: LinkTable): Html {
  const order = (label: string, isCurrent: boolean, path: string) =>
    isCurrent ? html`<strong>${label}</strong>` : html`<a href="${path}">${label}</a>`
  return html`
    <div class="orders">
      <p>${
        search === ''
          ? html`${order('Newest first', !byHits, '/app/links')} ·
            ${order('Most hits first', byHits, '/app/links?sort=hits')}`
          : html`Newest first · <a href="/app/links">Show all links</a>`
      }</p>
      <p><a href="/app/links/export.csv" download>Download all as CSV</a></p>
    </div>
    ${
      byHits &&
      html`<p class="hint">Hits of the last few seconds may not be included in this order.
        ${linkCount > TOP_MAX && `These are the first ${count(TOP_MAX)}.`}</p>`
    }`
}
