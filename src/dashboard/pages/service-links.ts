import type { AccountRow } from '../../accounts/store.ts'
import { resolveCode } from '../../addresses/resolve.ts'
import { AppError } from '../../errors.ts'
import { type Code, toCode } from '../../lib/code.ts'
import { type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import { type FoundLinks, findInAll, isSearchableInAll } from '../../lists/search-all.ts'
import type { DisabledCode } from '../../moderation/moderation.ts'
import { BAD_REASON, parseReason, REASON_LENGTH_MAX } from '../../moderation/moderation.ts'
import { type CurrentUser, ownerOf, type PageContext } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { refuseAt, seeOther } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { typed } from '../ui/form.ts'
import { PAGE_SIZE, page, pageNumber, pager } from '../ui/layout.ts'
import { addressText, destination } from '../ui/link-parts.ts'
import { day } from '../ui/local-time.ts'
import { line, serviceLinkTable } from '../ui/service-parts.ts'

const PATH = '/app/service/links'

/**
 * Links of all accounts, by their addresses and destinations, for the owner of the service: their
 * accounts, and whether they are disabled.
 */
export const serviceLinksPages = signedInPages({
  'GET /app/service/links': owner(listPage, {
    offers: [{ label: 'Links', section: 'service', words: 'of all accounts' }],
  }),
  'GET /app/service/links/:code': owner(linkPage),
  'POST /app/service/links/:code/disable': owner(async (context) => {
    const { data } = context.deps
    const { code } = requireLink(context)
    const reason = parseReason(context.form.text('reason'))
    if (reason === undefined) throw refuseAt('reason', `The reason ${BAD_REASON}.`)
    // Undefined if the link was deleted meanwhile: it has no page any more.
    const isDisabled = await data.moderation.disable({ author: ownerOf(context), code, reason })
    return isDisabled ? `${PATH}/${code}?done=disabled` : PATH
  }, linkPage),
  'POST /app/service/links/:code/enable': owner(async (context) => {
    const { code, link } = requireLink(context)
    await context.deps.data.moderation.enable({ author: ownerOf(context), code })
    return link ? `${PATH}/${code}?done=enabled` : PATH
  }),
})

/** `link` is undefined after its deletion: its code stays disabled. */
interface FoundLink {
  code: Code
  link: Link | undefined
  disabled: DisabledCode | undefined
}

function findLink({ data }: DashboardDeps, code: Code): FoundLink | undefined {
  const link = data.links.findByCode(code)
  const disabled = data.moderation.findByCode(code)
  return link || disabled ? { code, link, disabled } : undefined
}

function requireLink({ deps, params }: PageContext): FoundLink {
  const code = toCode(params.code ?? '')
  const found = code && findLink(deps, code)
  if (!found) throw new AppError('page_not_found')
  return found
}

/** Links of a search. A longer text finds fewer. */
const FOUND_MAX = 200

async function listPage(context: PageContext): Promise<Response> {
  const { deps, user, query } = context
  const text = (query.code ?? '').trim()
  const code = resolveCode(deps, text)
  if (code && findLink(deps, code)) return seeOther(`${PATH}/${code}`)
  const found = isSearchableInAll(text)
    ? await findInAll(deps.data, { text, limit: FOUND_MAX })
    : { links: [], hasMore: false }
  const hasFailed = text !== '' && found.links.length === 0
  const number = pageNumber(query.page)
  const range = { limit: PAGE_SIZE, offset: (number - 1) * PAGE_SIZE }
  const { total, items } = deps.data.moderation.list(range)
  return page(context, {
    title: 'Links of all accounts',
    at: PATH,
    status: hasFailed ? 422 : 200,
    main: html`
      ${parts.card('Find links', [
        parts.searchForm(PATH, {
          name: 'code',
          label: 'Short URL, alias, code, or a part of the destination',
          value: text,
          error: hasFailed ? problemOf(text) : undefined,
          autocomplete: 'off',
        }),
        found.links.length > 0 && foundLinks(context, found),
      ])}
      ${parts.card('Disabled codes', [
        html`<p>A disabled code answers “410 Link disabled”, and nobody can claim it.</p>`,
        items.length > 0 ? disabledTable(items, user) : html`<p>No disabled codes.</p>`,
        pager(number, total, (to) => `${PATH}?page=${to}`),
      ])}`,
  })
}

const problemOf = (text: string): string =>
  isSearchableInAll(text)
    ? 'No link has this address, or contains this text.'
    : 'No link has this address. To search, enter at least 3 characters.'

const foundLinks = ({ deps, user }: PageContext, { links, hasMore }: FoundLinks): Html => html`
  <p>${
    hasMore
      ? `The first ${FOUND_MAX} links that contain it. A longer text finds fewer.`
      : `${parts.plural(links.length, 'link')} with it in an address, the title, tags or note.`
  }</p>
  ${serviceLinkTable(deps, user, {
    caption: 'Links that contain the text',
    links,
    hasAccounts: true,
  })}`

const disabledTable = (items: readonly DisabledCode[], user: CurrentUser): Html =>
  parts.table(
    'Disabled codes, newest first',
    items,
    {
      Code: ({ code }) => line(code, `${PATH}/${code}`),
      Reason: ({ reason }) => line(reason),
      Since: ({ disabledAt }) => day(disabledAt, user),
    },
    { widths: 'l - s' },
  )

const DONE = {
  disabled: 'The link is disabled. Visitors get 410 from now on.',
  enabled: 'The code is enabled again.',
}

function linkPage(context: PageContext): Response {
  const { deps, user } = context
  const found = requireLink(context)
  return page(context, {
    title: found.link ? addressText(deps.addresses.display(found.link)) : found.code,
    at: PATH,
    back: { href: PATH, label: 'Links of all accounts' },
    messages: DONE,
    main: html`
      ${parts.card('The link', linkFacts(deps, found))}
      <div id="disable">
        ${found.disabled ? enableCard(user, found) : disableCard(context, found)}
      </div>`,
  })
}

function linkFacts(deps: DashboardDeps, { link, disabled }: FoundLink): Html {
  const reason = disabled && (['Reason', disabled.reason] as const)
  if (!link) return html`<p>This link was deleted.</p>${parts.facts([reason ?? false])}`
  const account = deps.data.accounts.findById(link.accountId)
  return parts.facts([
    ['State', stateOf(deps, link, disabled, account)],
    reason ?? false,
    link.alias !== null && ['Code', link.code],
    ['Destination', link.url === null ? 'none yet' : destination(link.url)],
    [
      'Account',
      account
        ? html`<a href="${`/app/service/accounts/${account.id}`}">${account.name}</a>`
        : 'none',
    ],
    ['Created', parts.time(link.createdAt)],
    ['Hits', parts.count(deps.hits.ofLink(link.id))],
  ])
}

function stateOf(
  { blocklist }: DashboardDeps,
  { url }: Link,
  disabled: DisabledCode | undefined,
  account: AccountRow | undefined,
): Html | string {
  if (disabled) return html`<strong>disabled</strong> since ${parts.time(disabled.disabledAt)}`
  if (account?.linksDisabledAt) return html`<strong>disabled</strong> with its account`
  if (url === null) return 'reserved'
  if (blocklist.isBlocked(new URL(url)))
    return blocklist.isOwn(new URL(url))
      ? html`<strong>stopped</strong>: it leads to this service itself`
      : html`<strong>stopped</strong>: its host is <a href="/app/service/hosts">blocked</a>`
  return 'active'
}

const disableCard = (context: PageContext, { code }: FoundLink): Html =>
  parts.card('Disable the link', [
    html`<p>Visitors get 410 immediately. The account sees the reason, and cannot undo it.</p>`,
    parts.form(context.user, `${PATH}/${code}/disable`, [
      parts.field({
        ...typed(context, 'reason'),
        label: 'Reason',
        required: true,
        extra: { maxlength: REASON_LENGTH_MAX },
      }),
      parts.button('Disable the link', 'danger'),
    ]),
  ])

const enableCard = (user: CurrentUser, { code, link }: FoundLink): Html =>
  parts.card('Enable it again', [
    link
      ? html`<p>Visitors are redirected again immediately.</p>`
      : html`<p>Anybody can then claim the code.</p>`,
    parts.buttonForm(user, `${PATH}/${code}/enable`, 'Enable the code'),
  ])
