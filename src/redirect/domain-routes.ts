import { Elysia } from 'elysia'
import type { DomainMap } from '../addresses/map.ts'
import { clientOf, markShortLink, newRequestId, REQUEST_ID } from '../http/context.ts'
import { describeBudget, type GuardDeps, rateLimited } from '../http/guard.ts'
import { type Answer, toResponse } from './responses.ts'

interface DomainSiteDeps extends GuardDeps {
  domains: DomainMap
}

/** For search engines: they may follow every short link. */
const ROBOTS = 'User-agent: *\nDisallow:\n'
const DAY_SECONDS = 24 * 3600

/** What another domain than the primary one has beside its short links: see `app.ts`. */
export const domainSite = (
  { domains, limiter, address }: DomainSiteDeps,
  follow: (path: string, request: Request) => Promise<Answer>,
) =>
  new Elysia({ name: 'redirect.domain' })
    .get('/', async ({ request, set }) => {
      const { rootUrl } = domains.ofRequest(request)
      if (rootUrl === undefined) return toResponse(await follow('/', request))
      markShortLink(request)
      const budget = limiter.take('redirect', undefined, clientOf(address, request))
      set.headers[REQUEST_ID] = newRequestId()
      describeBudget(budget, set as Parameters<typeof describeBudget>[1])
      if (!budget.allowed) throw rateLimited(budget)
      set.headers.location = rootUrl
      return new Response(null, { status: 302 })
    })
    .get(
      '/robots.txt',
      () =>
        new Response(ROBOTS, {
          headers: {
            'content-type': 'text/plain; charset=utf-8',
            'cache-control': `public, max-age=${DAY_SECONDS}`,
          },
        }),
    )
    // The icon of the service would be that of another brand.
    .get('/favicon.ico', () => new Response(null, { status: 204 }))
