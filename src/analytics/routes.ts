import { Elysia } from 'elysia'
import type { HitSeries } from '../hits/series.ts'
import { parseWith } from '../http/body.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { operation } from '../http/operation.ts'
import { requireOwnedLink, type UpdateDeps } from '../links/update.ts'
import { hitsOverTime } from './read.ts'
import { HitsQuery, HitsView, LinkHitsView } from './schema.ts'

interface Deps extends GuardDeps, Pick<UpdateDeps, 'reads'> {
  series: HitSeries
}

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
      {
        detail: operation({
          id: 'hits',
          summary: "Hits of all the account's links over time",
          description: `${DESCRIPTION} Hits of the last quarter of a second may be missing.`,
          tag: 'Links',
          key: true,
          query: HitsQuery,
          answers: { 200: { description: 'The buckets, in order.', view: HitsView } },
          refusals: [400, 401, 503],
        }),
      },
    )
    .get(
      '/links/:code/hits',
      async ({ account, params, query }) => {
        const span = parseWith(HitsQuery, query)
        const link = requireOwnedLink(deps, account, params.code)
        return { code: link.code, ...(await hitsOverTime(deps, { linkId: link.id }, span)) }
      },
      {
        detail: operation({
          id: 'linkHits',
          summary: 'Hits of a code over time',
          description: DESCRIPTION,
          tag: 'Links',
          key: true,
          code: true,
          query: HitsQuery,
          answers: { 200: { description: 'The buckets, in order.', view: LinkHitsView } },
          refusals: [400, 401, 404, 503],
        }),
      },
    )
