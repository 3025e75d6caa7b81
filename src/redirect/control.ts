import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { VisitRecorder } from '../hot/visit-ring.ts'
import { clientOf, markShortLink, type RequestHeaders } from '../http/context.ts'
import type { GuardDeps } from '../http/guard.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import type { AliasReads } from '../links/aliases.ts'
import type { DestinationReads, HitLimits } from '../links/destination.ts'
import { isLinkPreview, isPrefetch } from '../visits/bots.ts'
import { LazyCountries } from '../visits/country.ts'
import { DestinationChooser } from './choose-destination.ts'
import { type AliasedLink, follower } from './follow.ts'
import { withoutSigns } from './following-signs.ts'
import { type Answer, Answers, type HeldBack, type ResponseDeps } from './responses.ts'

interface ControlDeps extends GuardDeps, ResponseDeps {
  destinations: DestinationReads
  aliases: AliasReads
  hitLimits: HitLimits
  journal: { append(linkId: number): void }
  visits: VisitRecorder | undefined
  countryFile: string | undefined
  countryHeader: string | undefined
  log: Log
  counters: Pick<RedirectCounters, 'add'>
}

/**
 * Answers the requests for short links that a redirect thread forwards: with an API key, for a link
 * with `max_hits`, in an unusual form, and during a failure of the database.
 */
export function controlFollower(deps: ControlDeps): (text: string, request: Request) => Answer {
  const { destinations, aliases, limiter, address, counters } = deps
  const { clock, countryFile, countryHeader } = deps
  const countries = countryFile === undefined ? undefined : new LazyCountries(countryFile)
  const chooser = new DestinationChooser({ clock, countries, countryHeader })
  const answers = new Answers(deps)
  const findAlias = (path: string): AliasedLink | null => {
    const alias = aliases.findByPath(path)
    const link = alias && destinations.findByCode(alias.code)
    return link ? { code: alias.code, link } : null
  }
  const findByCode = (code: Code) => destinations.findByCode(code) ?? null
  const follow = follower({ ...deps, findByCode, findAlias, holdsBack, chooser })
  const isLink = (path: string): boolean => {
    const code = toCode(path)
    return (code !== undefined && findByCode(code) !== null) || findAlias(path) !== null
  }

  return (text, request) => {
    const { headers, method } = request
    markShortLink(request)
    const client = clientOf(address, request)
    let account: Account | undefined
    try {
      const key = headers.get('x-api-key')
      account = key === null ? undefined : findAccount(deps, key)
      const part = withoutSigns(text)
      const isPart = part !== text && !isLink(text) && isLink(part)
      const about = {
        text: isPart ? part : text,
        asked: text,
        query: queryOf(request.url),
        isHit: method === 'GET',
        get: (name: string) => headers.get(name),
      }
      return follow(about, client, account) as Answer
    } catch (error) {
      // A failed request is charged too, and its headers report its own caller's budget.
      const budget = limiter.take('read', account, client)
      counters.add('failed')
      const { answer, requestId } = answers.fail({ budget, headers })
      const fields = { request_id: requestId, method, path: '/:code' }
      deps.log.error('request.failed', fields, error)
      return answer
    }
  }
}

/**
 * Which requests do not follow a link with `max_hits`. Nobody passes the maximum by pretending to
 * be one of them, because neither response contains the destination.
 */
function holdsBack(headers: RequestHeaders): HeldBack | undefined {
  if (isPrefetch((name) => headers.get(name))) return 'prefetch'
  return isLinkPreview(headers.get('user-agent') ?? '') ? 'preview' : undefined
}

/** A request of HTTP/1.0 without a Host has no host in its URL, so that `URL` cannot parse it. */
function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}
