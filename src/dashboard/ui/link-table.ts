import type { Account } from '../../accounts/store.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { pageTurns } from '../../lib/turns.ts'
import type { Link } from '../../links/link.ts'
import { SEARCH_MAX } from '../../links/schema.ts'
import { TOP_MAX, topLinks } from '../../links/top.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from './components.ts'
import { count, destination, linkPath, noDestination, shortUrl } from './link-parts.ts'

/** The table of an account's links: what its address asks for, its rows, its markup. */

const PAGE_SIZE = 50
const PAGE_MAX = 1_000_000_000

interface State {
  /** Empty: all links. */
  search: string
  /** The text was too long: `search` is its beginning. */
  isCut: boolean
  /** From 1. */
  page: number
  /** Without a search only. */
  byHits: boolean
}

/** `disabled`: why the operator has disabled the code. */
type Row = Link & { hitCount: number; shortUrl: string; disabled: string | undefined }

export interface LinkTable extends State {
  /** All that match, on every page; of the order by hits, those that it reaches. */
  total: number
  /** All links of the account. */
  linkCount: number
  /** The cells of each row. */
  rows: readonly Cells[]
}

type Cells = ReturnType<typeof cells>

/** A page is laid out in parts, so that redirects do not wait for the whole of it. */
const ROWS_AT_ONCE = 5

export function readState(query: Readonly<Record<string, string | undefined>>): State {
  const text = [...(query.q ?? '').trim()]
  const search = text.slice(0, SEARCH_MAX).join('')
  const page = /^[1-9]\d*$/.test(query.page ?? '') ? Math.min(Number(query.page), PAGE_MAX) : 1
  const isCut = text.length > SEARCH_MAX
  return { search, isCut, page, byHits: search === '' && query.sort === 'hits' }
}

function pathOf({ search, page, byHits }: State): string {
  const query = new URLSearchParams({
    ...(search && { q: search }),
    ...(byHits && { sort: 'hits' }),
    ...(page > 1 && { page: String(page) }),
  })
  return query.size > 0 ? `/app/links?${query}` : '/app/links'
}

/** The page that is asked for, or the last one where there are fewer. */
export async function loadTable(
  deps: DashboardDeps,
  account: Account,
  state: State,
  signal?: AbortSignal,
): Promise<LinkTable> {
  const linkCount = deps.accounts.find(account.id)?.linkCount ?? 0
  const { total, rows } = await loadRows(deps, account, { state, linkCount, signal })
  if (rows.length > 0 || total === 0 || state.page === 1) {
    return { ...state, total, linkCount, rows: await layOut(deps, rows) }
  }
  const page = Math.min(lastPage(total), state.page - 1)
  return loadTable(deps, account, { ...state, page }, signal)
}

const lastPage = (total: number) => Math.max(1, Math.ceil(total / PAGE_SIZE))

function layOut(
  { addresses, moderation }: DashboardDeps,
  rows: readonly (Link & { hitCount: number })[],
): Promise<Cells[]> {
  const reasons = moderation.reads.findReasons(rows.map(({ code }) => code))
  return pageTurns.map(rows, ROWS_AT_ONCE, (row) =>
    cells({ ...row, shortUrl: addresses.short(row.code), disabled: reasons.get(row.code) }),
  )
}

interface LoadOptions {
  state: State
  linkCount: number
  signal: AbortSignal | undefined
}

async function loadRows(
  deps: DashboardDeps,
  { id: accountId }: Account,
  { state, linkCount, signal }: LoadOptions,
): Promise<{ total: number; rows: (Link & { hitCount: number })[] }> {
  const { search, page, byHits } = state
  const part = { accountId, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE }
  if (byHits) return { total: Math.min(linkCount, TOP_MAX), rows: await topLinks(deps, part) }
  const { total, links } = await deps.pages.find({ ...part, search }, signal)
  const counts = deps.hits.of(links.map(({ id }) => id))
  return { total, rows: links.map((link) => ({ ...link, hitCount: counts.get(link.id) ?? 0 })) }
}

/** The search and the table; nothing to search where there are no links. */
export function listSection(table: LinkTable): Html {
  if (table.linkCount === 0 && table.search === '') {
    return parts.emptyState(
      'No links yet',
      html`<p>Paste a URL above, and it gets a short link and a QR code. Programs can do the same
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

/** What htmx puts in place of the list, and the address that the page then has. */
export function listFragment(table: LinkTable): { markup: Html; path: string } {
  const status = html`<p id="found" hx-swap-oob="innerHTML">${found(table)}</p>`
  return { markup: html`${list(table)}${status}`, path: pathOf(table) }
}

function found({ search, isCut, total, linkCount }: LinkTable): string {
  if (search === '') return parts.plural(linkCount, 'link')
  const text = `${count(total)} of ${parts.plural(linkCount, 'link')}`
  return isCut ? `${text} match the first ${SEARCH_MAX} characters of your search` : text
}

function searchForm({ search }: State): Html {
  const all = {
    ...{ method: 'get', action: '/app/links', role: 'search', class: 'one-line', id: 'search' },
    ...{ 'hx-get': '/app/links', 'hx-target': '#list', 'hx-swap': 'outerHTML' },
    ...{ 'hx-trigger': 'submit, input changed delay:250ms', 'hx-sync': 'this:replace' },
    'hx-indicator': '#list',
  }
  return html`
    <form ${attributes(all)}>
      ${parts.field({
        ...{ name: 'q', label: 'Search code and URL', type: 'search', value: search },
        ...{ autocomplete: 'off', extra: { maxlength: SEARCH_MAX, spellcheck: 'false' } },
      })}
      ${parts.button('Search', 'plain')}
    </form>`
}

function list(table: LinkTable): Html {
  const { search, rows } = table
  if (rows.length === 0) {
    return html`<div id="list">${parts.emptyState(
      'Nothing found',
      html`<p>None of your codes and URLs holds “${search}”.</p>
        ${parts.linkButton('Show all links', '/app/links')}`,
    )}</div>`
  }
  return html`
    <div id="list">
      ${orders(table)}
      ${parts.table({
        caption: 'Your links',
        columns: [
          ...[{ label: 'Short URL' }, { label: 'Destination' }, { label: 'Created' }],
          ...[
            { label: 'Hits', isNumber: true },
            { label: 'Its page', isHidden: true },
          ],
        ],
        rows,
      })}
      ${pager(table)}
    </div>`
}

const cells = ({ code, url, createdAt, hitCount, shortUrl: short, disabled }: Row) => [
  shortUrl(short, { id: `short-${code}`, href: linkPath(code) }),
  html`${url === null ? noDestination() : destination(url, linkPath(code))}${
    disabled !== undefined && html`<div class="error">Disabled by the operator: ${disabled}</div>`
  }`,
  parts.time(createdAt),
  count(hitCount),
  html`<a class="button plain small" ${attributes({ href: linkPath(code) })}
    aria-label="${`Details of ${code}`}">Details</a>`,
]

function orders({ search, byHits, linkCount }: LinkTable): Html {
  const order = (label: string, isNow: boolean, path: string) =>
    isNow ? html`<strong>${label}</strong>` : html`<a href="${path}">${label}</a>`
  const note = byHits && [
    'Hits of the last seconds may not have moved a link up yet. ',
    linkCount > TOP_MAX && `These are the first ${count(TOP_MAX)}.`,
  ]
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
    ${note && html`<p class="hint">${note}</p>`}`
}

function pager(table: LinkTable): Html | '' {
  const { page, total } = table
  const last = lastPage(total)
  if (last === 1) return ''
  const step = (label: string, to: number, rel: string) => {
    const all = { class: 'button plain', href: pathOf({ ...table, page: to }), rel }
    return html`<a ${attributes(all)}>${label}</a>`
  }
  const none = html`<span></span>`
  return html`
    <nav class="pager" aria-label="Pages">
      ${page > 1 ? step('← Previous', page - 1, 'prev') : none}
      <span>Page ${count(page)} of ${count(last)}</span>
      ${page < last ? step('Next →', page + 1, 'next') : none}
    </nav>`
}
