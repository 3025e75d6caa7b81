import { PATH_DAYS, type UnknownPath } from '../../addresses/unknown-paths.ts'
import { AppError } from '../../errors.ts'
import { DAY, zonedTime } from '../../lib/clock.ts'
import { type Html, html } from '../../lib/html.ts'
import type { PageContext } from '../auth/guard.ts'
import { owner, signedInPages } from '../page-routes.ts'
import { shortDate } from '../ui/chart.ts'
import * as parts from '../ui/components.ts'
import { page } from '../ui/layout.ts'
import { domainChoices } from '../ui/link-parts.ts'
import { line } from '../ui/service-parts.ts'

const PATH = '/app/service/unknown-paths'

/** Paths that visitors ask for and that name no link. */
export const serviceUnknownPathsPages = signedInPages({
  'GET /app/service/unknown-paths': owner(pathsPage, {
    offers: [{ label: 'Unknown paths', section: 'service', words: 'mistyped 404 not found' }],
  }),
})

async function pathsPage(context: PageContext): Promise<Response> {
  const { deps, query } = context
  const { addresses, data } = deps
  const { domain: host = '' } = query
  const domain = addresses.findDomain(addresses.idOf(host))
  if (!domain) throw new AppError('page_not_found')
  const since = Math.floor(deps.clock() / DAY) - PATH_DAYS + 1
  const all = await data.unknownPaths.list({ domainId: domain.id, since })
  const items = all.filter(({ path }) => !data.aliases.findByPath(path, domain))
  const choices = domainChoices(
    deps,
    data.domains.list().map((one) => one.host),
  )
  return page(context, {
    title: 'Unknown paths',
    at: PATH,
    main: parts.card('What visitors ask for and do not find', [
      choices.length > 1 &&
        html`<form class="form search" method="get" action="${PATH}">
          ${parts.select({ name: 'domain', label: 'Domain', value: host, choices })}
          ${parts.button('Show', 'plain')}
        </form>`,
      html`<p>Paths of the last ${PATH_DAYS} days (UTC). A path is listed after its third request
        from at least two networks on a day. Left out are paths that may be about a person, those of
        scanners, and 6 to 20 letters and digits without other signs: these may be codes.</p>`,
      !deps.visitDetails.isOn &&
        html`<p><strong>Nothing is counted: <code>VISIT_DETAILS=off</code>.</strong></p>`,
      items.length > 0 ? pathTable(context, host, items) : html`<p>No paths.</p>`,
    ]),
  })
}

function pathTable({ deps, user }: PageContext, host: string, items: readonly UnknownPath[]): Html {
  const usable = deps.data.domains.listFor(user.account.id)
  const isUsable = host === '' || usable.some((one) => one.host === host)
  const create = ({ path }: UnknownPath) => {
    const query = new URLSearchParams({ domain: host, code: path })
    return html`<a class="button plain" href="/app/links?${String(query)}"
      aria-label="Create alias ${path}">Create alias</a>`
  }
  const columns = {
    Path: ({ path }: UnknownPath) => line(path),
    Requests: { cell: ({ total }: UnknownPath) => parts.count(total), isNumber: true },
    'By day': ({ days }: UnknownPath) => line(days.map(dayText).join(', ')),
    ...(isUsable && { Create: { cell: create, isHidden: true } }),
  }
  return parts.table('Unknown paths, the most frequent first', items, columns, {
    widths: `- s l${isUsable ? ' m' : ''}`,
  })
}

const dayText = ([day, count]: UnknownPath['days'][number]): string =>
  `${shortDate(zonedTime(day * DAY, 'UTC').toPlainDate())}: ${count}`
