import { Elysia } from 'elysia'
import type { CountedLinks, HitSeries } from '../hits/series.ts'
import { parseWith } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { DAY } from '../lib/clock.ts'
import { CSV_TYPE } from '../lib/csv.ts'
import type { Kit } from '../links/kit.ts'
import { requireOwnedLink } from '../links/update.ts'
import { hitsOverTime, parseSpan, visitsCsv, visitsView } from './read.ts'
import {
  HitsQuery,
  HitsView,
  LinkHitsView,
  LinkVisitsView,
  VisitsQuery,
  VisitsView,
} from './schema.ts'
import type { VisitDetails } from './visits.ts'

type Deps = Kit & GuardDeps & { series: HitSeries; visitDetails: VisitDetails }

const DESCRIPTION = [
  'Hits per hour (at most 31 days, of the last 100) or per UTC day (at most 400 days, of the last',
  '400). Buckets that are older than that or in the future are left out.',
].join(' ')

export const hitRoutes = (deps: Deps) =>
  new Elysia({ name: 'analytics.hits', prefix: '/api' })
    .use(requireKey(deps, 'read'))
    .get(
      '/hits',
      ({ account, query }) =>
        hitsOverTime(deps, { accountId: account.id }, parseWith(HitsQuery, query)),
      described({
        id: 'hits',
        summary: "Hits of all the account's links over time",
        description: `${DESCRIPTION} Hits of the last quarter of a second may be missing.`,
        query: HitsQuery,
        answers: { 200: { description: 'The buckets, in order.', view: HitsView } },
      }),
    )
    .get(
      '/links/:code/hits',
      async ({ account, params, query }) => {
        const span = parseWith(HitsQuery, query)
        const link = requireOwnedLink(deps, account, params.code)
        return { code: link.code, ...(await hitsOverTime(deps, { linkId: link.id }, span)) }
      },
      described({
        id: 'linkHits',
        summary: 'Hits of a code over time',
        description: DESCRIPTION,
        query: HitsQuery,
        answers: { 200: { description: 'The buckets, in order.', view: LinkHitsView } },
      }),
    )

const VISITS_DESCRIPTION = [
  'Redirects of UTC days by one property of their visitors: at most 400 days, of the last 400.',
  'Details of redirects may be missing; `known` says how many have them. Those of the last 10',
  'seconds are not in the answer yet.',
].join(' ')

export const visitRoutes = (deps: Deps) =>
  new Elysia({ name: 'analytics.visits', prefix: '/api' })
    .use(requireKey(deps, 'read'))
    .get(
      '/visits',
      ({ account, query }) =>
        answer(deps, account, { accountId: account.id }, parseWith(VisitsQuery, query)),
      described({
        id: 'visits',
        summary: "Where the visitors of all the account's links come from, and what they use",
        description: VISITS_DESCRIPTION,
        query: VisitsQuery,
        answers: { 200: { description: 'The values.', view: VisitsView, binary: ['text/csv'] } },
      }),
    )
    .get(
      '/links/:code/visits',
      ({ account, params, query }) => {
        const wanted = parseWith(VisitsQuery, query)
        const link = requireOwnedLink(deps, account, params.code)
        return answer(deps, account, { linkId: link.id }, wanted, link.code)
      },
      described({
        id: 'linkVisits',
        summary: 'Where the visitors of a code come from, and what they use',
        description: VISITS_DESCRIPTION,
        query: VisitsQuery,
        answers: {
          200: { description: 'The values.', view: LinkVisitsView, binary: ['text/csv'] },
        },
      }),
    )

async function answer(
  { visitDetails, clock }: Deps,
  account: { id: number },
  counted: CountedLinks,
  { by, limit, format, from, to }: VisitsQuery,
  code?: string,
) {
  const span = parseSpan({ from, to, by: 'day' }, clock())
  const days = { from: span.from / DAY, to: span.to / DAY }
  const view = visitsView(await visitDetails.of(counted, days, account.id), { by, limit, days })
  if (format === 'json') return { ...(code !== undefined && { code }), ...view }
  const headers = { 'content-type': CSV_TYPE }
  return new Response(visitsCsv(view.values), { headers })
}
