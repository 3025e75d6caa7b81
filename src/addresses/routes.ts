import { Elysia } from 'elysia'
import { z } from 'zod'
import type { DataOf } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { type GuardDeps, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { canonicalHost } from './address.ts'
import type { domains } from './domains.ts'
import type { DomainMap, RequestDomain } from './map.ts'

type DomainRouteDeps = GuardDeps & {
  data: DataOf<{ domains: typeof domains }>
  domains: DomainMap
}

const Page = z.string().nullable().meta({ format: 'uri' })

const DomainView = z
  .object({
    domain: z.string().meta({ example: 'go.example' }),
    root_url: Page.meta({ description: 'Where visitors of `/` are redirected.' }),
    not_found_url: Page.meta({ description: 'Where browsers that open an unknown path go.' }),
    codes: z.enum(['own', 'all']).meta({
      description: '`own`: it answers the codes of its own links only. `all`: every code.',
    }),
    is_default: z.boolean().meta({ description: 'New links of the account get it.' }),
  })
  .meta({ id: 'Domain' })

const DomainsView = z.object({ items: z.array(DomainView) }).meta({ id: 'Domains' })

const viewOf = (
  { host, rootUrl, notFoundUrl, codes }: Omit<RequestDomain, 'id' | 'isPrimary'> | NullPages,
  isDefault: boolean,
): z.infer<typeof DomainView> => ({
  domain: host,
  root_url: rootUrl ?? null,
  not_found_url: notFoundUrl ?? null,
  codes,
  is_default: isDefault,
})

interface NullPages extends Pick<RequestDomain, 'host' | 'codes'> {
  rootUrl: string | null
  notFoundUrl: string | null
}

export const domainRoutes = (deps: DomainRouteDeps) =>
  new Elysia({ name: 'domains', prefix: '/api' }).use(requireKey(deps, 'read')).get(
    '/domains',
    ({ account }) => {
      const { data, domains } = deps
      const standard = data.domains.defaultOf(account.id)
      const others = data.domains.listFor(account.id)
      return {
        items: [
          viewOf(domains.primary, domains.primary.id === standard),
          ...others.map((one) => viewOf(one, one.id === standard)),
        ],
      }
    },
    described({
      id: 'listDomains',
      summary: 'The domains that the account may use for short URLs',
      description: 'The first one is that of the service, which answers every code.',
      tag: 'Links',
      answers: { 200: { description: 'The domains.', view: DomainsView } },
    }),
  )

interface AskDeps {
  domains: DomainMap
  /** Whether this request may ask. Others are refused like those for an unknown path. */
  admits: (request: Request) => boolean
  refuse: (request: Request, set: object) => never
}

/**
 * For a proxy that gets certificates on demand: 200 if the service answers for the host, else 404.
 */
export const certificateRoutes = ({ domains, admits, refuse }: AskDeps) =>
  new Elysia({ name: 'domains.ask', prefix: '/-' }).get(
    '/domains/ask',
    ({ request, query, set }) => {
      if (!admits(request)) refuse(request, set)
      const { domain = '' } = query as { domain?: string }
      const host = canonicalHost(domain)
      if (host === undefined || !domains.findByHost(host)) throw new AppError('path_not_found')
      return { domain: host }
    },
  )
