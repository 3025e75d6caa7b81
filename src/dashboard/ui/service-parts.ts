import { DNS_NAME_MAX } from '../../addresses/address.ts'
import type { Code } from '../../lib/code.ts'
import { type Html, html, type Value } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import type { CurrentUser } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from './components.ts'
import { icon } from './icons.ts'
import { addressText, badge, destination } from './link-parts.ts'
import { day } from './local-time.ts'

/** Parts of the pages for the owner of the service: paths, menus of rows and the table of links. */

const PATH = '/app/service'

/** The links of all accounts that contain the text. */
export const searchPath = (text: string) =>
  `${PATH}/links?${new URLSearchParams({ code: text })}` as const

/** The path of a link's page for the owner of the service. */
export const servicePathOf = (code: Code) => `/app/service/links/${code}` as const

/** What can be done with a row. The browser opens and closes it, also without scripts. */
export const rowMenu = (id: string | number, name: string, items: Value): Html => html`
  <button type="button" class="act" popovertarget="menu-${id}"
    aria-label="Actions for ${name}">${icon('ellipsis')}</button>
  <div id="menu-${id}" class="menu" popover>${items}</div>`

export const menuLink = (label: string, href: string): Html =>
  html`<a class="menu-item" href="${href}">${label}</a>`

export const menuButton = (
  user: CurrentUser,
  action: string,
  label: string,
  values: Readonly<Record<string, string | number>> = {},
): Html =>
  parts.form(user, action, [
    parts.hiddenFields(values),
    html`<button class="menu-item">${label}</button>`,
  ])

/** A text of one line, whose end may be cut. */
export const line = (text: string, href?: string): Html =>
  href === undefined
    ? html`<span title="${text}">${text}</span>`
    : html`<a title="${text}" href="${href}">${text}</a>`

interface LinkTableProps {
  caption: string
  links: readonly Link[]
  /** Whether the links are of several accounts. */
  hasAccounts: boolean
}

/** Links as the owner of the service sees them, each with the way to its page. */
export function serviceLinkTable(
  deps: DashboardDeps,
  user: CurrentUser,
  { caption, links, hasAccounts }: LinkTableProps,
): Html {
  const { addresses, data, hits, blocklist } = deps
  const counts = hits.of(links.map(({ id }) => id))
  const reasons = data.moderation.findReasons(links.map(({ code }) => code))
  const accountPath = ({ accountId }: Link) => `${PATH}/accounts/${accountId}`
  /** Why visitors do not reach the destination. */
  const stateOf = ({ code, url }: Link) => {
    if (reasons.has(code)) return badge({ label: 'disabled', kind: 'bad' })
    if (url === null) return badge({ label: 'reserved', kind: 'note' })
    return blocklist.isBlocked(new URL(url)) && badge({ label: 'host blocked', kind: 'bad' })
  }
  const addressOf = (link: Link) => addressText(addresses.display(link))
  const menuOf = (link: Link) => {
    const path = servicePathOf(link.code)
    const host = link.url === null ? undefined : new URL(link.url).hostname
    return rowMenu(link.code, addressOf(link), [
      menuLink('Details', path),
      hasAccounts && menuLink('Its account', accountPath(link)),
      menuLink('Disable…', `${path}#disable`),
      host && host.length <= DNS_NAME_MAX && menuLink('Block its host…', blockPath(host)),
    ])
  }
  const accountOf = (link: Link) => {
    const account = data.accounts.findById(link.accountId)
    return account ? line(account.name, accountPath(link)) : 'none'
  }
  const columns = {
    Link: (link: Link) => line(addressOf(link), servicePathOf(link.code)),
    Destination: (link: Link) => [
      stateOf(link),
      ' ',
      link.url !== null && destination(link.url, servicePathOf(link.code)),
    ],
    ...(hasAccounts && { Account: accountOf }),
    Created: ({ createdAt }: Link) => day(createdAt, user),
    Hits: { cell: ({ id }: Link) => parts.count(counts.get(id) ?? 0), isNumber: true },
    Actions: { cell: menuOf, isHidden: true },
  }
  return parts.table(caption, links, columns, { widths: `l - ${hasAccounts ? 'm ' : ''}s - x` })
}

/** The form that blocks the host, filled in. */
const blockPath = (host: string) => `${PATH}/hosts?${new URLSearchParams({ host })}`
