import type { Code } from '../../lib/code.ts'
import { attributes, type Html, html } from '../../lib/html.ts'
import type { Link } from '../../links/link.ts'
import type { CurrentUser } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import * as parts from './components.ts'
import { addressText, destination } from './link-parts.ts'

/** Parts of the pages for the owner of the service: their tabs, paths and the table of links. */

const PATH = '/app/service'

/** The links of all accounts that contain the text. */
export const searchPath = (text: string) =>
  `${PATH}/links?${new URLSearchParams({ code: text })}` as const

/** The navigation between the pages of the service. `current`: the path of one. */
export function serviceTabs({ offers }: CurrentUser, current: string): Html {
  const tabs = offers.flatMap(({ place, label, href }) => {
    if (place !== 'tabs') return []
    const all = attributes({ href, 'aria-current': href === current ? 'page' : undefined })
    return [html`<li><a ${all}>${label}</a></li>`]
  })
  return html`<nav class="tabs" aria-label="Service"><ul>${tabs}</ul></nav>`
}

/** The path of a link's page for the owner of the service. */
export const servicePathOf = (code: Code) => `/app/service/links/${code}` as const

interface LinkTableProps {
  caption: string
  links: readonly Link[]
  /** Whether the links are of several accounts. */
  hasAccounts: boolean
}

/** Links as the owner of the service sees them, each with the way to its page. */
export function serviceLinkTable(
  deps: DashboardDeps,
  { caption, links, hasAccounts }: LinkTableProps,
): Html {
  const { addresses, data, hits, blocklist } = deps
  const counts = hits.of(links.map(({ id }) => id))
  const reasons = data.moderation.findReasons(links.map(({ code }) => code))
  const accountOf = ({ accountId }: Link) => {
    const account = data.accounts.findById(accountId)
    if (!account) return 'none'
    const path = `/app/service/accounts/${account.id}`
    return html`<a class="long" href="${path}">${account.name}</a>`
  }
  const stateOf = ({ code, url }: Link) => {
    if (reasons.has(code)) return html`<strong>disabled</strong>`
    if (url === null) return 'reserved'
    return blocklist.isBlocked(new URL(url)) ? html`<strong>host blocked</strong>` : 'active'
  }
  return parts.table(caption, links, {
    Link: (link) => {
      const text = addressText(addresses.display(link))
      return html`<a class="code long" href="${servicePathOf(link.code)}">${text}</a>`
    },
    Destination: ({ code, url }) => url !== null && destination(url, servicePathOf(code)),
    ...(hasAccounts && { Account: accountOf }),
    State: stateOf,
    Created: ({ createdAt }) => parts.time(createdAt),
    Hits: { cell: ({ id }) => parts.count(counts.get(id) ?? 0), isNumber: true },
  })
}
