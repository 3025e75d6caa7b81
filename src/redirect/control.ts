import { findAccount } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import type { DomainMap, RequestDomain } from '../domains/map.ts'
import { type Client, clientIp } from '../hot/client-address.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { VisitRecorder } from '../hot/visit-ring.ts'
import type { RequestBodies } from '../http/body.ts'
import { clientOf, markShortLink, type RequestHeaders } from '../http/context.ts'
import { type GuardDeps, rateLimited } from '../http/guard.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import { type AliasReads, lookedUp, withoutLastSlash } from '../links/aliases.ts'
import { type DestinationReads, type HitLimits, rulesReader } from '../links/destination.ts'
import { isLinkPreview, isPrefetch } from '../visits/bots.ts'
import { LazyCountries } from '../visits/country.ts'
import { DestinationChooser } from './choose-destination.ts'
import {
  type AliasedLink,
  type FollowRequest,
  follower,
  isForeign,
  type PasswordAttempt,
  type ProtectedLink,
  stateOf,
} from './follow.ts'
import { withoutSigns } from './following-signs.ts'
import { basicPassword, formPassword, type GateDeps, PasswordGate } from './password-gate.ts'
import { type Answer, Answers, type HeldBack, isOfBrowser, type ResponseDeps } from './responses.ts'

interface ControlDeps extends GuardDeps, GateDeps, ResponseDeps {
  bodies: RequestBodies
  destinations: DestinationReads
  aliases: AliasReads
  hitLimits: HitLimits
  journal: { append(linkId: number): void }
  visits: VisitRecorder | undefined
  countryFile: string | undefined
  countryHeader: string | undefined
  log: Log
  counters: Pick<RedirectCounters, 'add'>
  domains: DomainMap
}

/** Requests for short links on the control thread. */
export interface ControlFollower {
  /** `path`: that of the URL. Throws AppError for a POST whose body is no form. */
  answer(path: string, request: Request): Promise<Answer>
  /** Whether the path is that of a link with a password, so that a form may be sent to it. */
  isProtected(path: string, request: Request): boolean
}

/**
 * Answers the requests for short links that a redirect thread forwards: with an API key, for a link
 * with `max_hits` or a password, in an unusual form, and during a failure of the database.
 */
export function controlFollower(deps: ControlDeps): ControlFollower {
  const { limiter, address, counters, domains } = deps
  const { clock, countryFile, countryHeader } = deps
  const countries = countryFile === undefined ? undefined : new LazyCountries(countryFile)
  const chooser = new DestinationChooser({ clock, countries, countryHeader })
  const answers = new Answers(deps)
  const { findByCode, findAlias, findLink, pathIn } = linkFinder(deps)
  const gate = new PasswordGate(deps)
  const isUnlocked = (request: FollowRequest, link: ProtectedLink) =>
    isSame(request.attempt, link) || gate.isUnlocked(request, link)
  const follow = follower({ ...deps, findByCode, findAlias, holdsBack, isUnlocked, chooser })
  const readRules = rulesReader()
  const rulesOf = (path: string, domain: RequestDomain) => {
    const link = findLink(path, domain)
    const rules = link?.rules ? readRules(link.rules) : undefined
    return link && rules?.password
      ? { rules, link: { id: link.id, hash: rules.password } }
      : undefined
  }
  /** The result for the password of a request, unless the request needs none. */
  const attemptOf = async (
    found: ReturnType<typeof rulesOf>,
    headers: Headers,
    sent: string | undefined,
    client: Client,
  ) => {
    if (!found || sent === undefined || stateOf(found.rules, clock(), 0) !== 'active')
      return undefined
    return gate.isUnlocked(headers, found.link) ? undefined : gate.verify(found.link, sent, client)
  }

  const answer = async (urlPath: string, request: Request): Promise<Answer> => {
    const text = lookedUp(urlPath)
    const { headers, method } = request
    markShortLink(request)
    const client = clientOf(address, request)
    const isForm = method === 'POST'
    // A browser gets the form and has not asked for credentials: they belong to a proxy.
    const basic = isOfBrowser(headers) ? undefined : basicPassword(headers)
    const sent = isForm ? await readForm(deps, request, client) : basic
    const domain = domains.ofRequest(request)
    let account: Account | undefined
    try {
      const key = headers.get('x-api-key')
      account = key === null ? undefined : findAccount(deps, key)
      const path = pathIn(text, domain)
      const found = sent === undefined ? undefined : rulesOf(path, domain)
      const attempt = await attemptOf(found, headers, sent, client)
      const about = {
        text: path,
        asked: text || '/',
        query: queryOf(request.url),
        isHit: method !== 'HEAD',
        attempt,
        get: (name: string) => headers.get(name),
      }
      const answer = follow(about, client, account) as Answer
      if (!isForm || answer.status !== 302) return answer
      const cookie = attempt && 'unlocked' in attempt && gate.cookie(attempt.unlocked)
      Object.assign(answer.headers, NO_REFERRER, cookie && { 'Set-Cookie': cookie })
      return { ...answer, status: 303 }
    } catch (error) {
      // A failed request is charged too, and its headers report its own caller's budget.
      const budget = limiter.take('read', account, client)
      counters.add('failed')
      const { answer, requestId } = answers.fail({ budget, headers, domain })
      const fields = { request_id: requestId, method, path: '/:code' }
      deps.log.error('request.failed', fields, error)
      return answer
    }
  }
  const isProtected = (path: string, request: Request): boolean => {
    const domain = domains.ofRequest(request)
    return rulesOf(pathIn(lookedUp(path), domain), domain) !== undefined
  }
  return { answer, isProtected }
}

function linkFinder({ destinations, aliases }: Pick<ControlDeps, 'destinations' | 'aliases'>) {
  const findAlias = (path: string, domain: RequestDomain): AliasedLink | null => {
    const alias = aliases.findByPath(path, domain)
    const link = alias && destinations.findByCode(alias.code)
    return link ? { code: alias.code, link } : null
  }
  const findByCode = (code: Code) => destinations.findByCode(code) ?? null
  const findLink = (path: string, domain: RequestDomain) => {
    const code = toCode(path)
    const direct = code && findByCode(code)
    if (direct) return isForeign(direct, domain) ? undefined : direct
    return findAlias(path, domain)?.link
  }
  /** The path, or the part of it that is a link. */
  const pathIn = (text: string, domain: RequestDomain): string => {
    const rest = withoutSigns(text)
    if (rest === text || findLink(text, domain)) return text
    const part = withoutLastSlash(rest)
    return findLink(part, domain) ? part : text
  }
  return { findByCode, findAlias, findLink, pathIn }
}

const NO_REFERRER = { 'Referrer-Policy': 'no-referrer' }

/** The password may have changed while it was verified. */
const isSame = (attempt: PasswordAttempt | undefined, { id, hash }: ProtectedLink): boolean =>
  attempt !== undefined &&
  'unlocked' in attempt &&
  attempt.unlocked.id === id &&
  attempt.unlocked.hash === hash

/** The password of a form. A body that is no form is charged too. */
async function readForm(
  { bodies, limiter }: Pick<ControlDeps, 'bodies' | 'limiter'>,
  request: Request,
  client: Client,
): Promise<string> {
  try {
    return await formPassword(bodies, request, clientIp(client))
  } catch (error) {
    const budget = limiter.take('read', undefined, client)
    throw budget.allowed ? error : rateLimited(budget)
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

function queryOf(url: string): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}
