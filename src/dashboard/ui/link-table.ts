import { hasRole } from '../../accounts/roles.ts'
import type { Account, Role } from '../../accounts/store.ts'
import { pastedSearch } from '../../addresses/resolve.ts'
import { MINUTE } from '../../lib/clock.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import { pageSlices } from '../../lib/time-slices.ts'
import type { Link } from '../../links/link.ts'
import { withDetails } from '../../links/properties.ts'
import { TAG_MAX } from '../../links/property-table.ts'
import { Tag } from '../../links/schema.ts'
import type { LinkFilter, LinkStateName } from '../../lists/link-sources.ts'
import { TOP_MAX } from '../../lists/ranking.ts'
import { SEARCH_MAX } from '../../lists/schema.ts'
import type { CurrentUser, PageContext, Query } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from './components.ts'
import { count } from './components.ts'
import { lastPage, PAGE_SIZE, pageNumber, pager } from './layout.ts'
import { badgesOf } from './link-parts.ts'
import { linkRow } from './link-row.ts'

/** The list of an account's links: its query, its rows, its toolbar. */

interface TableQuery {
  /** Empty: all links. */
  search: string
  /** The text was too long, and `search` is its beginning. */
  isCut: boolean
  /** Empty: links with any tags, or none. */
  tag: string
  /** Empty: links in any state. */
  state: LinkStateName | ''
  /** From 1. */
  page: number
  byHits: boolean
}

export interface LinkTable extends TableQuery {
  /** All matches. */
  total: number
  linkCount: number
  /** Destinations are checked for whether they answer. */
  hasChecks: boolean
  rows: readonly Html[]
}

const STATE_LABELS: Readonly<Record<LinkStateName, string>> = {
  active: 'Active',
  paused: 'Paused',
  expired: 'Expired',
  scheduled: 'Not started',
  unused: 'Never followed',
  dead: 'Does not answer',
}
const isState = (text: string): text is LinkStateName => Object.hasOwn(STATE_LABELS, text)

export function parseTableQuery(query: Readonly<Record<string, string | undefined>>): TableQuery {
  const text = [...(query.q ?? '').trim()]
  const search = text.slice(0, SEARCH_MAX).join('')
  const tag = Tag.safeParse(query.tag).data ?? ''
  return {
    search,
    isCut: text.length > SEARCH_MAX,
    tag,
    state: isState(query.state ?? '') ? (query.state as LinkStateName) : '',
    page: pageNumber(query.page),
    byHits: query.sort === 'hits',
  }
}

export const tagPath = (tag: string): string => `/app/links?${new URLSearchParams({ tag })}`

/** The query of the page that htmx sends a form from; that of all links without htmx. */
export function currentTableQuery({ headers }: Request): TableQuery {
  const [, query = ''] = /\?([^#]*)/.exec(headers.get('hx-current-url') ?? '') ?? []
  return parseTableQuery(Object.fromEntries(new URLSearchParams(query)))
}

const pathOf = (query: TableQuery): string => `/app/links${queryText(query)}`

export function listPathWith(query: TableQuery, message: Readonly<Record<string, string>>): string {
  const params = new URLSearchParams(queryText(query))
  for (const [name, value] of Object.entries(message)) params.set(name, value)
  return `/app/links?${params}`
}

const isFiltered = ({
  search,
  tag,
  state,
}: Pick<TableQuery, 'search' | 'tag' | 'state'>): boolean =>
  search !== '' || tag !== '' || state !== ''

function queryText({ search, tag, state, page, byHits }: Omit<TableQuery, 'isCut'>): string {
  const query = new URLSearchParams({
    ...(search && { q: search }),
    ...(tag && { tag }),
    ...(state && { state }),
    ...(byHits && { sort: 'hits' }),
    ...(page > 1 && { page: String(page) }),
  })
  return query.size > 0 ? `?${query}` : ''
}

/** Loads the requested page, or the last one if there are fewer. */
export async function loadTable(context: PageContext, query: TableQuery): Promise<LinkTable> {
  const { deps, request } = context
  const { id: accountId } = context.user.account
  const linkCount = deps.data.accounts.findById(accountId)?.linkCount ?? 0
  const { page, byHits } = query
  const filter = { ...filterOf(context, query), byHits }
  const part = { ...filter, limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE }
  const { total, links } = await deps.pages.findPage({ accountId, ...part }, request.signal)
  if (links.length > 0 || total === 0 || page === 1) {
    const rows = await renderRows(deps, links, query.search)
    return { ...query, total, linkCount, hasChecks: deps.checks !== undefined, rows }
  }
  const earlier = Math.min(lastPage(reachable({ ...query, total })), page - 1)
  return loadTable(context, { ...query, page: earlier })
}

/** The matches on all pages: the order by hits ends at a rank. */
const reachable = ({ byHits, total }: Pick<LinkTable, 'byHits' | 'total'>): number =>
  byHits ? Math.min(total, TOP_MAX) : total

/**
 * The links that a list has, on all its pages. States are those at the last full minute, so that
 * the pages of a list share one count.
 */
export function filterOf(
  { deps, user }: Pick<PageContext, 'deps' | 'user'>,
  { search, tag, state }: Pick<TableQuery, 'search' | 'tag' | 'state'>,
): LinkFilter {
  const at = Math.floor(deps.clock() / MINUTE) * MINUTE
  const found = pastedSearch(deps, user.account.id, search)
  const tagged = tag === '' ? undefined : tag
  return { ...found, inProperties: true, tag: tagged, state: state ? { is: state, at } : undefined }
}

/** Rows rendered in one time slice, so that redirects do not wait for a whole page. */
const ROWS_AT_ONCE = 5
/** Days of a sparkline. */
const DAYS = 30

async function renderRows(
  deps: DashboardDeps,
  links: readonly Link[],
  search: string,
): Promise<Html[]> {
  const { addresses, blocklist, clock, data, series } = deps
  const days = await series.ofLinks(
    links.map(({ id }) => id),
    DAYS,
  )
  const reasons = data.moderation.findReasons(links.map(({ code }) => code))
  const aliases = deps.data.aliases.ofLinks(links.map(({ id }) => id))
  const dead = deps.checks?.findDead(links.map(({ id }) => id))
  const now = clock()
  return pageSlices.map(withDetails(deps, links), ROWS_AT_ONCE, (link) => {
    const { code, url, properties } = link
    const isBlocked = url !== null && blocklist.isBlocked(new URL(url))
    return linkRow({
      link,
      aliases: aliases.get(link.id) ?? [],
      addresses,
      badges: badgesOf({
        link,
        properties,
        disabled: reasons.get(code),
        dead: dead?.get(link.id),
        isBlocked,
        now,
      }),
      days: days.get(link.id),
      now,
      search,
    })
  })
}

/** Tags offered for a choice. */
const TAGS_MAX = 60

/** The tags with the most links, in alphabetical order. */
export async function offeredTags({ data }: DashboardDeps, account: Account): Promise<string[]> {
  const tags = await data.lists.tags({ accountId: account.id })
  const most = tags.toSorted((a, b) => b.count - a.count).slice(0, TAGS_MAX)
  return most.map(({ tag }) => tag).sort()
}

/**
 * The toolbar and the list; only a first step if the account has no links. `isOutOfBand`: it
 * replaces the one on the page, in addition to the target of the request.
 */
export async function listSection(
  { deps, user }: PageContext,
  table: LinkTable,
  isOutOfBand: boolean,
): Promise<Html> {
  const tags = await offeredTags(deps, user.account)
  const isEmpty = table.linkCount === 0 && !isFiltered(table)
  const all = attributes({
    id: 'links',
    'aria-label': isEmpty ? undefined : 'Your links',
    'hx-swap-oob': isOutOfBand ? 'true' : undefined,
  })
  if (isEmpty) {
    const advice = user.may('POST', '/app/links')
      ? firstSteps(user)
      : html`<p>Links that the editors of ${user.account.name} create appear here.</p>`
    return html`<section ${all}>${parts.emptyState('No links yet', advice)}</section>`
  }
  return html`<section ${all}>
    ${toolbar(user, table, tags)}
    <form id="batch" method="post" action="/app/links/batch">
      <input type="hidden" name="csrf" value="${user.csrf}">
      ${list(table)}
      ${batchBar(user, table, tags)}
    </form></section>`
}

const firstSteps = (user: CurrentUser): Html => html`
  <p>Paste a URL above to get a short link and a QR code.
    ${parts.offer(
      user,
      '/app/keys',
      html`Programs can create links with an <a href="/app/keys">API key</a>.`,
    )}</p>
  <p>Do you have links elsewhere? They keep their paths, titles, tags and hits.</p>
  <div class="row">${parts.linkButton('Import links', '/app/links/import')}
    ${parts.linkButton('Create many at once', '/app/links/bulk')}</div>`

/** The list for htmx, and the path that the address bar then shows. */
export function listFragment(table: LinkTable): { markup: Html; path: string } {
  const status = html`<p id="found" hx-swap-oob="innerHTML">${found(table)}</p>`
  return {
    markup: html`${list(table)}${status}${exportLink(table, true)}
    ${allMatches(table, true)}`,
    path: pathOf(table),
  }
}

function found(table: LinkTable): string {
  const { isCut, total, linkCount } = table
  const shown = reachable(table)
  if (shown < total) {
    const matches = isFiltered(table) ? 'matching links' : 'links'
    return `Top ${count(shown)} of ${count(total)} ${matches}`
  }
  if (!isFiltered(table)) return parts.plural(linkCount, 'link')
  const text = `${count(total)} of ${parts.plural(linkCount, 'link')}`
  return isCut ? `${text} match the first ${SEARCH_MAX} characters of your search` : text
}

function toolbar(user: CurrentUser, table: LinkTable, tags: readonly string[]): Html {
  const { search, tag, state, byHits } = table
  const choices = tag === '' || tags.includes(tag) ? tags : [tag, ...tags]
  return html`
    <form method="get" action="/app/links" role="search" class="row toolbar" id="search"
      hx-get="/app/links" hx-target="#list" hx-swap="outerHTML"
      hx-trigger="submit, input changed delay:250ms" hx-sync="this:replace"
      hx-indicator="#list">
      ${parts.field({
        name: 'q',
        label: 'Search links',
        type: 'search',
        value: search,
        autocomplete: 'off',
        extra: { maxlength: SEARCH_MAX, spellcheck: 'false', placeholder: 'Search links' },
      })}
      ${parts.button('Filter', 'plain', {
        type: 'button',
        class: 'button plain filter',
        popovertarget: 'filters',
      })}
      <div id="filters" class="menu filters" popover>
      ${
        choices.length > 0 &&
        parts.select({
          name: 'tag',
          label: 'Tag',
          choices: [
            { value: '', label: 'All tags' },
            ...choices.map((value) => ({ value, label: value })),
          ],
          value: tag,
        })
      }
      ${parts.select({
        name: 'state',
        label: 'State',
        choices: [
          { value: '', label: 'All states' },
          ...Object.entries(STATE_LABELS)
            .filter(([value]) => value !== 'dead' || table.hasChecks || state === 'dead')
            .map(([value, label]) => ({ value, label })),
        ],
        value: state,
      })}
      ${parts.select({
        name: 'sort',
        label: 'Sort by',
        choices: [
          { value: 'newest', label: 'Last added' },
          { value: 'hits', label: 'Most hits' },
        ],
        value: byHits ? 'hits' : 'newest',
      })}
      </div>
      ${parts.button('Search', 'plain', { 'data-without-script': true })}
      <p id="found" class="hint" role="status">${found(table)}</p>
      ${exportLink(table, false)}
      ${parts.offer(user, '/app/links/bulk', html`<a href="/app/links/bulk">Bulk create</a>`)}
      ${parts.offer(user, '/app/links/import', html`<a href="/app/links/import">Import</a>`)}
      <button type="button" class="act" hidden data-needs-script data-shortcuts>Shortcuts</button>
    </form>`
}

/** Downloads or prints what the list shows, with all its pages. */
function exportLink(table: LinkTable, isOutOfBand: boolean): Html {
  const all = attributes({
    id: 'export',
    href: `/app/links/export.csv${queryText({ ...table, page: 1 })}`,
    download: true,
    'hx-swap-oob': isOutOfBand ? 'true' : undefined,
  })
  const print = attributes({
    id: 'print',
    href: `/app/print${queryText({ ...table, page: 1 })}`,
    'hx-swap-oob': isOutOfBand ? 'true' : undefined,
  })
  return html`<a ${all}>Export CSV</a> <a ${print}>Print</a> ${reportLink(table, isOutOfBand)}`
}

function reportLink({ tag }: LinkTable, isOutOfBand: boolean): Html {
  const all = attributes({ id: 'report', 'hx-swap-oob': isOutOfBand ? 'true' : undefined })
  const href = `/app/analytics?${new URLSearchParams({ tag })}`
  const link = html`<a href="${href}" aria-label="Analytics of this tag">Analytics</a>`
  return html`<span ${all}>${tag !== '' && link}</span>`
}

/** Selects also the links on the other pages of the list. */
function allMatches(table: LinkTable, isOutOfBand: boolean): Html {
  const { rows, total } = table
  const all = attributes({ id: 'all-matches', 'hx-swap-oob': isOutOfBand ? 'true' : undefined })
  const text = isFiltered(table) ? `All ${count(total)} that match` : `All ${count(total)} links`
  const box = html`<label><input type="checkbox" name="all" value="1"> ${text}</label>`
  return html`<span ${all}>${total > rows.length && box}</span>`
}

function list(table: LinkTable): Html {
  const { search, tag, state, rows, page } = table
  if (rows.length === 0) {
    return html`<div id="list">${parts.emptyState(
      'Nothing found',
      html`<p>No links match${search && html` “${search}”`}${tag && ` with the tag “${tag}”`}${
        state && ` in the state “${STATE_LABELS[state]}”`
      }.</p>
        ${parts.linkButton('Show all links', '/app/links')}`,
    )}</div>`
  }
  return html`
    <div id="list">
      <table class="table links">
        <caption class="visually-hidden">Your links</caption>
        <thead><tr>
          <th scope="col" class="pick"><input type="checkbox" id="pick-all" aria-label="Select all"
            hidden data-needs-script></th>
          <th scope="col" class="name">Link</th>
          <th scope="col" class="to">Destination</th>
          <th scope="col" class="days">30 days</th>
          <th scope="col" class="hits">Hits</th>
          <th scope="col" class="age">Age</th>
          <th scope="col" class="acts"><span class="visually-hidden">Actions</span></th>
        </tr></thead>
        <tbody>${rows}</tbody>
      </table>
      <input type="hidden" name="at" value="${queryText(table)}">
      ${
        table.byHits &&
        html`<p class="hint">Hits of the last ten seconds may not be included in this order.</p>`
      }
      ${pager(page, reachable(table), (to) => pathOf({ ...table, page: to }))}
    </div>`
}

/** The actions on selected links, by the value of the field `action`: the least role for each. */
export const BATCH_ROLES = {
  analytics: 'viewer',
  qr: 'viewer',
  print: 'viewer',
  export: 'viewer',
  tag: 'editor',
  untag: 'editor',
  pause: 'editor',
  resume: 'editor',
  delete: 'editor',
  move: 'admin',
} as const satisfies Record<string, Role>

export type BatchAction = keyof typeof BATCH_ROLES

export const isBatchAction = (name: string): name is BatchAction => Object.hasOwn(BATCH_ROLES, name)

/** Shown while a link is selected. The first button is that of the Enter key. */
function batchBar({ role, others }: CurrentUser, table: LinkTable, tags: readonly string[]): Html {
  const button = (action: BatchAction, label: string, extra: Record<string, boolean> = {}) =>
    hasRole(role, BATCH_ROLES[action]) &&
    parts.button(label, action === 'delete' ? 'danger' : 'plain', {
      name: 'action',
      value: action,
      ...extra,
    })
  const canMove = others.some((one) => one.role === 'admin')
  const changes = html`
    <label class="visually-hidden" for="batch-tag">Tag</label>
    <input id="batch-tag" name="tag" list="tags" placeholder="Tag" maxlength="${TAG_MAX}"
      autocomplete="off">
    <datalist id="tags">${tags.map((tag) => html`<option value="${tag}"></option>`)}</datalist>
    ${button('tag', 'Add tag')}
    ${button('untag', 'Remove tag')}
    ${button('pause', 'Pause')}
    ${button('resume', 'Resume')}`
  return html`
  <div class="row batch" role="group" aria-label="Selected links">
    <p class="selected" role="status"></p>
    ${allMatches(table, false)}
    ${hasRole(role, BATCH_ROLES.tag) && changes}
    ${button('analytics', 'Analytics')}
    ${button('qr', 'QR codes', { 'data-downloads': true })}
    ${button('print', 'Print')}
    ${button('export', 'Export CSV', { 'data-downloads': true })}
    ${canMove && button('move', 'Move to account…')}
    ${button('delete', 'Delete')}
  </div>`
}

export const MOVE_PATH = '/app/links/move'

/** For the query of the page that moves links: the selected codes, or a list with its filter. */
export const movePath = (links: { codes: readonly string[] } | Query): string => {
  const query = Array.isArray(links.codes) ? { codes: links.codes.join(',') } : links
  return `${MOVE_PATH}?${new URLSearchParams(query as Record<string, string>)}`
}
