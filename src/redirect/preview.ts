import type { Account } from '../accounts/store.ts'
import type { RequestDomain } from '../addresses/map.ts'
import type { Client } from '../hot/client-address.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { RequestHeaders } from '../http/context.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import { type HitLimits, rulesReader } from '../links/destination.ts'
import type { Kit } from '../links/kit.ts'
import { lookupView } from '../links/properties.ts'
import type { DestinationChooser } from './choose-destination.ts'
import { type FoundLink, stateOf } from './follow.ts'
import type { Answer, Answers } from './responses.ts'

/** The path that asks where a link leads has this sign behind that of the link. */
const SIGN = '+'

/** The path of the link whose preview a decoded path asks for; undefined if it asks for none. */
export const previewedPath = (path: string): string | undefined =>
  path.endsWith(SIGN) ? path.slice(0, -SIGN.length) : undefined

interface PreviewDeps extends Pick<Kit, 'hits' | 'addresses' | 'clock'> {
  data: Pick<Kit['data'], 'links'>
  hitLimits: HitLimits
  limiter: Pick<RateLimiter, 'take'>
  counters: Pick<RedirectCounters, 'add'>
  chooser: DestinationChooser
}

interface Asking {
  headers: RequestHeaders
  /** Without its question mark. */
  query: string
  domain: RequestDomain
  account: Account | undefined
  client: Client
}

/**
 * Answers where an active link leads, without following it. Undefined for another link: the answer
 * is that of its redirect. `path`: of the link, decoded.
 */
export function previewer(
  { data, hits, addresses, clock, ...deps }: PreviewDeps,
  answers: Answers,
) {
  const { hitLimits, limiter, counters, chooser } = deps
  const readRules = rulesReader()
  return (
    { code, link, path }: FoundLink & { path: string },
    asking: Asking,
  ): Answer | undefined => {
    const stored = code && data.links.findByCode(code)
    if (!stored || !link?.location) return undefined
    const rules = link.rules ? readRules(link.rules) : {}
    const count = rules.max_hits === undefined ? 0 : hitLimits.hitsOf(code, link.id)
    if (stateOf(rules, clock(), count) !== 'active') return undefined
    const { account, client, query, ...about } = asking
    const budget = limiter.take('read', account, client)
    if (!budget.allowed) {
      counters.add('limited')
      return answers.refuse('rate_limited', String(budget.retryAfter), { ...about, budget })
    }
    counters.add('preview')
    const url = data.links.publicUrlOf(stored)
    const request = { query, get: (name: string) => asking.headers.get(name) }
    const chosen = url === null ? undefined : chooser.find(rules, request, client)
    const page = {
      shortUrl: decodeURI(addresses.display(stored).replace(/^https?:\/\//, '')),
      path: `/${path.split('/').map(encodeURIComponent).join('/')}`,
      url: chosen ?? url,
      createdAt: stored.createdAt,
      hasRules: rules.destinations !== undefined,
    }
    const view = lookupView(stored, hits.ofLink(link.id), url)
    return answers.preview(page, view, { ...about, budget })
  }
}
