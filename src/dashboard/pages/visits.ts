import { Elysia } from 'elysia'
import { visitsCsv } from '../../analytics/read.ts'
import type { DayRange } from '../../analytics/visits.ts'
import { type HitRange, hitRange } from '../../hits/range.ts'
import { DAYS_KEPT, type HitOwner, HOURS_OF_DAY } from '../../hits/series.ts'
import { CSV_TYPE } from '../../lib/csv.ts'
import { type Html, html } from '../../lib/html.ts'
import { requireOwnedLink } from '../../links/update.ts'
import { VISIT_KINDS, type VisitKind } from '../../visits/values.ts'
import { type CurrentUser, type Query, requireAccount, signedIn } from '../auth/guard.ts'
import type { DashboardDeps } from '../deps.ts'
import { fileResponse } from '../responses.ts'
import * as parts from '../ui/components.ts'
import { type ChosenRange, parseRange } from '../ui/hit-chart.ts'
import { page } from '../ui/layout.ts'
import { linkPath } from '../ui/link-parts.ts'
import { knownPart, PANEL_TITLES, totalOf, valueTable, visitSection } from '../ui/visit-panels.ts'
import { zoneOf } from '../ui/zone-form.ts'

/** Values on a page of all values, and in a file. */
const VALUES_MAX = 1000

/** All values of a panel, as a page and as a file. */
export const visitPages = (deps: DashboardDeps) =>
  new Elysia({ name: 'dashboard.visits', prefix: '/app' })
    .use(signedIn(deps))
    .get('/analytics/visits', ({ user, query }) =>
      valuesPage(deps, user, accountPlace(user), query),
    )
    .get('/analytics/visits.csv', ({ user, query }) =>
      valuesFile(deps, user, accountPlace(user), query),
    )
    .get('/links/:code/visits', ({ user, params, query }) =>
      valuesPage(deps, user, linkPlace(deps, user, params.code), query),
    )
    .get('/links/:code/visits.csv', ({ user, params, query }) =>
      valuesFile(deps, user, linkPlace(deps, user, params.code), query),
    )

/** Whose visits, and the page that shows them. */
interface Place {
  owner: HitOwner
  path: string
  label: string
}

const accountPlace = ({ account }: CurrentUser): Place => ({
  owner: { accountId: account.id },
  path: '/app/analytics',
  label: 'Analytics',
})

function linkPlace(deps: DashboardDeps, user: CurrentUser, text: string): Place {
  const { id, code } = requireOwnedLink(deps, user.account, text)
  return { owner: { linkId: id }, path: linkPath(code), label: code }
}

/** The panels below a chart, for the UTC days of its range. */
export async function visitPanels(
  deps: DashboardDeps,
  { owner, path, chosen, range }: Omit<Place, 'label'> & { chosen: ChosenRange; range: HitRange },
): Promise<Html> {
  const days = daysOf(range)
  const { isOn, hasCountries } = deps.visitDetails
  const paths = (kind: VisitKind) => {
    const query = `by=${kind}&${chosen.query}`
    return { all: `${path}/visits?${query}`, csv: `${path}/visits.csv?${query}` }
  }
  const visits = await deps.visitDetails.of(owner, days)
  return visitSection({ visits, days, isOn, hasCountries, paths })
}

/** The UTC days that a range of another time zone touches, at most as many as are kept. */
export function daysOf({ bounds }: HitRange): DayRange {
  const to = Math.ceil((bounds.at(-1) ?? 0) / HOURS_OF_DAY)
  const from = Math.max(to - DAYS_KEPT.day, Math.floor((bounds[0] ?? 0) / HOURS_OF_DAY))
  return { from, to }
}

async function read(deps: DashboardDeps, user: CurrentUser, { owner }: Place, query: Query) {
  const kind = VISIT_KINDS.find((one) => one === query.by) ?? 'referrer'
  const chosen = parseRange(query)
  const zone = zoneOf(requireAccount(deps, user))
  const isPreset = 'preset' in chosen.choice
  const firstHit = isPreset ? await deps.series.firstHit(owner) : undefined
  const range = hitRange(chosen.choice, { zone, now: deps.clock(), firstHit })
  const visits = await deps.visitDetails.of(owner, daysOf(range))
  return { kind, chosen, range, visits, values: visits.values[kind].slice(0, VALUES_MAX) }
}

async function valuesPage(
  deps: DashboardDeps,
  user: CurrentUser,
  place: Place,
  query: Query,
): Promise<Response> {
  const { kind, chosen, visits, values } = await read(deps, user, place, query)
  const title = PANEL_TITLES[kind]
  const { path, label } = place
  const csv = `${path}/visits.csv?by=${kind}&${chosen.query}`
  return page(user, {
    title,
    current: 'linkId' in place.owner ? 'links' : 'analytics',
    back: { href: `${path}?${chosen.query}#visits`, label },
    main: parts.card('All values', [
      html`<p class="hint">${knownPart(visits)}</p>`,
      values.length === 0
        ? html`<p>None yet.</p>`
        : valueTable(title, values, totalOf(visits, kind)),
      html`<p><a href="${csv}" download>Download as CSV</a></p>`,
    ]),
  })
}

async function valuesFile(
  deps: DashboardDeps,
  user: CurrentUser,
  place: Place,
  query: Query,
): Promise<Response> {
  const { kind, range, values } = await read(deps, user, place, query)
  const name = `${PANEL_TITLES[kind].toLowerCase()}-${range.first}-to-${range.last}.csv`
  return fileResponse(visitsCsv(values), { name, type: CSV_TYPE })
}
