import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { type Code, toCode } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import {
  BAD_REASON,
  type DisabledCode,
  parseReason,
  REASON_LENGTH_MAX,
} from '../../moderation/moderation.ts'
import { goTo } from '../answers.ts'
import { signedIn, type Visitor } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { count, destination } from '../ui/link-parts.ts'
import { serviceTabs } from './service.ts'

const LINKS = '/app/service/links'
const PAGE_SIZE = 50
const PAGES_MAX = 1_000_000

/** Any link by its code, for the owner of the service: who has it, and whether it redirects. */
export const serviceLinksPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.serviceLinks', prefix: LINKS })
    .use(signedIn(deps, { owner: true }))
    .get('', ({ visitor, query }) => {
      const text = (query.code ?? '').trim()
      const code = codeIn(text)
      if (code && findLink(deps, code)) return goTo(`${LINKS}/${code}`)
      return listPage(deps, visitor, { text, number: Number(query.page ?? 1) })
    })
    .get('/:code', ({ visitor, params, query }) =>
      linkPage(deps, visitor, requireLink(deps, params.code), { done: query.done }),
    )
    .post('/:code/disable', async ({ visitor, params, form }) => {
      const found = requireLink(deps, params.code)
      const text = form.text('reason')
      const reason = parseReason(text)
      if (reason === undefined) return linkPage(deps, visitor, found, { text, isBad: true })
      // A link that was deleted meanwhile has no page any more.
      const isDone = await deps.moderation.disableCode(found.code, reason)
      return goTo(isDone ? `${LINKS}/${found.code}?done=disabled` : LINKS)
    })
    .post('/:code/enable', async ({ params }) => {
      const { code, link } = requireLink(deps, params.code)
      await deps.moderation.enableCode(code)
      return goTo(link ? `${LINKS}/${code}?done=enabled` : `${LINKS}`)
    })

/** A code, or the short URL that ends with it. */
const codeIn = (text: string): Code | undefined =>
  toCode((text.split(/[?#]/)[0] ?? '').replace(/\/$/, '').split('/').at(-1) ?? '')

/** `link` is undefined once it was deleted: its code stays disabled. */
interface Found {
  code: Code
  link: Link | undefined
  disabled: DisabledCode | undefined
}

function findLink({ reads, moderation }: DashboardDeps, code: Code): Found | undefined {
  const link = reads.findByCode(code)
  const disabled = moderation.reads.find(code)
  return link || disabled ? { code, link, disabled } : undefined
}

function requireLink(deps: DashboardDeps, text: string): Found {
  const code = toCode(text)
  const found = code && findLink(deps, code)
  if (!found) throw new AppError('page_not_found')
  return found
}

function listPage(
  deps: DashboardDeps,
  visitor: Visitor,
  { text, number: wanted }: { text: string; number: number },
): Response {
  const number = Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, PAGES_MAX) : 1
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { total, items } = deps.moderation.reads.list(range)
  const error = text === '' ? undefined : 'No link has this code.'
  return page(visitor, {
    title: 'Links of all accounts',
    current: 'service',
    status: error ? 422 : 200,
    main: html`
      ${serviceTabs('links')}
      ${parts.card('Find a link', findForm(text, error))}
      ${parts.card('Disabled codes', [
        html`<p>Visitors of a disabled code get “410 Link disabled”, and nobody can claim it.</p>`,
        table(items),
        pager(number, total),
      ])}`,
  })
}

const findForm = (text: string, error: string | undefined): Html => html`
  <form class="form search" method="get" action="${LINKS}" role="search">
    ${parts.field({
      name: 'code',
      label: 'Code or short URL',
      type: 'search',
      value: text,
      error,
      autocomplete: 'off',
    })}
    ${parts.button('Find', 'plain')}
  </form>`

function table(items: readonly DisabledCode[]): Html {
  if (items.length === 0) return html`<p>None is disabled.</p>`
  const rows = items.map(({ code, reason, disabledAt }) => [
    html`<a class="code" href="${`${LINKS}/${code}`}">${code}</a>`,
    html`<span class="long">${reason}</span>`,
    parts.time(disabledAt),
  ])
  const columns = [{ label: 'Code' }, { label: 'Reason' }, { label: 'Since' }]
  return parts.table({ caption: 'Disabled codes, newest first', columns, rows })
}

function pager(number: number, total: number): Html | false {
  const last = Math.ceil(total / PAGE_SIZE)
  if (last <= 1) return false
  return html`<nav class="row" aria-label="Pages of disabled codes">
    ${number > 1 && parts.linkButton('Newer', `${LINKS}?page=${number - 1}`)}
    <span>Page ${number} of ${last} · ${parts.plural(total, 'code')}</span>
    ${number < last && parts.linkButton('Older', `${LINKS}?page=${number + 1}`)}
  </nav>`
}

const DONE: Readonly<Record<string, string>> = {
  disabled: 'The link is disabled: its visitors get 410 from now on.',
  enabled: 'The code is enabled again.',
}

interface Shown {
  done?: string | undefined
  /** The reason that was sent, if it was a bad one. */
  text?: string
  isBad?: boolean
}

function linkPage(deps: DashboardDeps, visitor: Visitor, found: Found, shown: Shown): Response {
  const { code, link, disabled } = found
  const { done = '', text = '', isBad = false } = shown
  const good = Object.hasOwn(DONE, done) ? DONE[done] : undefined
  return page(visitor, {
    title: code,
    current: 'service',
    status: isBad ? 422 : 200,
    main: html`
      <p><a href="${LINKS}">Links of all accounts</a></p>
      ${good && parts.notice('good', html`<p>${good}</p>`)}
      <div class="cards two">
        ${parts.card('The link', facts(deps, found))}
        ${disabled ? enableCard(visitor, code, link) : disableCard(visitor, code, { text, isBad })}
      </div>`,
  })
}

function facts(deps: DashboardDeps, { link, disabled }: Found): Html {
  const account = link && deps.accounts.find(link.accountId)
  const reason = disabled && html`<dt>Reason</dt><dd>${disabled.reason}</dd>`
  if (!link) return html`<p>Its link was deleted.</p><dl class="facts">${reason}</dl>`
  const hits = deps.hits.of([link.id]).get(link.id) ?? 0
  const address = account && `/app/service/accounts/${account.id}`
  return html`<dl class="facts">
    <dt>State</dt><dd>${stateOf(deps, link, { disabled, account })}</dd>
    ${reason}
    <dt>Leads to</dt><dd>${link.url === null ? 'nowhere yet' : destination(link.url)}</dd>
    <dt>Account</dt><dd>${address ? html`<a href="${address}">${account.email}</a>` : 'none'}</dd>
    <dt>Created</dt><dd>${parts.time(link.createdAt)}</dd>
    <dt>Hits</dt><dd>${count(hits)}</dd>
  </dl>`
}

function stateOf(
  { blocklist }: DashboardDeps,
  { url }: Link,
  by: {
    disabled: DisabledCode | undefined
    account: { linksDisabledAt: number | null } | undefined
  },
): Html | string {
  if (by.disabled) {
    return html`<strong>disabled</strong> since ${parts.time(by.disabled.disabledAt)}`
  }
  if (by.account?.linksDisabledAt) return html`<strong>disabled</strong> with its account`
  if (url === null) return 'reserved'
  if (blocklist.isBlocked(new URL(url)))
    return html`<strong>stopped</strong>: its host is on the blocklist`
  return 'active'
}

const disableCard = (
  { csrf }: Visitor,
  code: Code,
  { text, isBad }: { text: string; isBad: boolean },
): Html =>
  parts.card('Disable the link', [
    html`<p>Its visitors get 410 at once. Its account sees the reason, and cannot undo it.</p>`,
    parts.form({
      action: `${LINKS}/${code}/disable`,
      csrf,
      children: [
        parts.field({
          name: 'reason',
          label: 'Reason',
          value: text,
          error: isBad ? `The reason ${BAD_REASON}.` : undefined,
          required: true,
          autocomplete: 'off',
          extra: { maxlength: REASON_LENGTH_MAX },
        }),
        parts.button('Disable the link', 'danger'),
      ],
    }),
  ])

const enableCard = (visitor: Visitor, code: Code, link: Link | undefined): Html =>
  parts.card('Enable it again', [
    link
      ? html`<p>Its visitors are redirected again at once.</p>`
      : html`<p>Anybody can then claim the code.</p>`,
    parts.buttonForm(visitor, { action: `${LINKS}/${code}/enable`, label: 'Enable the code' }),
  ])
