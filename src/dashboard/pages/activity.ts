import { eventOf } from '../../history/schema.ts'
import type { EventPage, EventRow } from '../../history/subject.ts'
import { type Html, html } from '../../lib/html.ts'
import { eventList } from '../cards/history.ts'
import { admin, signedInPages } from '../page-routes.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'

const PATH = '/app/account/activity'

/** What was changed about all links of the account. */
export const activityPages = signedInPages({
  [`GET ${PATH}`]: admin(
    (context) => {
      const { deps, user } = context
      const { id } = user.account
      const find = (part: Omit<EventPage, 'id'>) => deps.data.history.pageOfAccount({ ...part, id })
      const list = eventList(context, { path: PATH, find, what: linksOf })
      return page(context, { title: 'Activity', at: PATH, main: parts.card('Changes', list) })
    },
    { offers: [{ label: 'Activity', section: 'account', words: 'history changes audit' }] },
  ),
})

/** The codes of some links, and how many there are. A deleted link has no page. */
function linksOf(row: EventRow): Html {
  const { kind, before } = eventOf(row)
  const existing: string[] = JSON.parse(row.codes)
  const codes = kind === 'deleted' ? [before].flat().slice(0, 3).map(String) : existing
  const shown = codes.map((code, at) => {
    const isLinked = existing.includes(code)
    return html`${at > 0 && ', '}${isLinked ? html`<a href="${linkPath(code)}">${code}</a>` : code}`
  })
  if (row.links === 1 && codes.length === 1) return html`${shown}`
  const more = row.links > codes.length && ' …'
  return html`${parts.plural(row.links, 'link')}${codes.length > 0 && html` (${shown}${more})`}`
}
