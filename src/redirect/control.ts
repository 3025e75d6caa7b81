import { apiKeyOf, findAccount, payerOf } from '../accounts/keys.ts'
import type { Account } from '../accounts/store.ts'
import { lookedUp, withoutLastSlash } from '../addresses/address.ts'
import type { DomainMap, RequestDomain } from '../addresses/map.ts'
import type { UnknownPaths } from '../addresses/unknown-paths.ts'
import { type Client, clientIp } from '../hot/client-address.ts'
import type { CodeVersions } from '../hot/code-versions.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { VisitRecorder } from '../hot/visit-ring.ts'
import type { RequestBodies } from '../http/body.ts'
import { clientOf, markShortLink, type RequestHeaders } from '../http/context.ts'
import { type GuardDeps, rateLimited } from '../http/guard.ts'
import type { Clock } from '../lib/clock.ts'
import { toCode } from '../lib/code.ts'
import type { Log } from '../lib/log.ts'
import { decodePercent } from '../lib/percent.ts'
import { type DestinationReads, type HitLimits, rulesReader } from '../links/destination.ts'
import type { Kit } from '../links/kit.ts'
import type { KnownCodes } from '../links/known-codes.ts'
import { isLinkPreview, isPrefetch } from '../visits/bots.ts'
import { LazyCountries } from '../visits/country.ts'
import { DestinationChooser } from './choose-destination.ts'
import {
  type FollowRequest,
  type FoundLink,
  follower,
  isForeign,
  type PasswordAttempt,
  type ProtectedLink,
  stateOf,
} from './follow.ts'
import { cutsOf } from './forwarded-path.ts'
import { basicPassword, formPassword, type GateDeps, PasswordGate } from './password-gate.ts'
import { previewedPath, previewer } from './preview.ts'
import { type Answer, Answers, type HeldBack, isOfBrowser, type ResponseDeps } from './responses.ts'

interface ControlDeps extends GuardDeps, GateDeps, ResponseDeps {
  bodies: RequestBodies
  destinations: DestinationReads
  data: GuardDeps['data'] & Pick<Kit['data'], 'links' | 'aliases'>
  hits: Kit['hits']
  addresses: Kit['addresses']
  hitLimits: HitLimits
  journal: { append(linkId: number): void }
  visits: VisitRecorder | undefined
  countryFile: string | undefined
  countryHeader: string | undefined
  log: Log
  counters: Pick<RedirectCounters, 'add'>
  domains: DomainMap
  versions: Pick<CodeVersions, 'ofKey'>
  codes: Pick<KnownCodes, 'mayName' | 'prepare'>
  unknownPaths: Pick<UnknownPaths, 'count'>
}

/** Requests for short links on the control thread. */
export interface ControlFollower {
  /** `path`: that of the URL. */
  answer(path: string, request: Request): Promise<Answer>
  /**
   * The answer to a POST with the form of a link with a password; throws AppError for a body that
   * is no form. Undefined for a path of no such link, and without a look-up if the caller's budget
   * for unknown paths is used up: refuse it as one without a route.
   */
  answerForm(path: string, request: Request): Promise<Answer> | undefined
}

/**
 * Answers the requests for short links that a redirect thread forwards: with an API key, for a link
 * with `max_hits` or a password, in an unusual form, and during a failure of the database.
 */
export function controlFollower(deps: ControlDeps): ControlFollower {
  const { limiter, address, counters, domains, versions, unknownPaths } = deps
  const { clock, countryFile, countryHeader } = deps
  const countries = countryFile === undefined ? undefined : new LazyCountries(countryFile)
  const chooser = new DestinationChooser({ clock, countries, countryHeader })
  const answers = new Answers(deps)
  const find = linkFinder(deps)
  const gate = new PasswordGate(deps)
  const show = previewer({ ...deps, chooser }, answers)
  const isUnlocked = (request: FollowRequest, link: ProtectedLink) =>
    isSame(request.attempt, link) || gate.isUnlocked(request, link)
  const follow = follower({ ...deps, ...FOUND, holdsBack, isUnlocked, chooser })
  const { protectedIn, attemptOf } = passwordChecks(gate, clock)

  /** `before`: the link of a form. */
  const answer = async (urlPath: string, request: Request, before?: FoundPath): Promise<Answer> => {
    const text = lookedUp(urlPath)
    const { headers, method } = request
    markShortLink(request)
    const client = clientOf(address, request)
    // A browser gets the form and has not asked for credentials: they belong to a proxy.
    const basic = isOfBrowser(headers) ? undefined : basicPassword(headers)
    const sent = before ? await readForm(deps, request, client) : basic
    const domain = domains.ofRequest(request)
    let account: Account | undefined
    try {
      account = payerOf(findAccount(deps, apiKeyOf(headers)))
      const current = (found: FoundPath) =>
        found.code !== undefined && versions.ofKey(found.code) !== found.version
          ? find(urlPath, domain)
          : found
      const first = before ? current(before) : find(urlPath, domain)
      const query = queryOf(request.url)
      const shown = first.isPreview && show(first, { headers, query, domain, account, client })
      if (shown) return shown
      const attempt = await attemptOf(protectedIn(first), headers, sent, client)
      const found = current(first)
      const about = {
        text: found.path,
        rest: found.rest,
        asked: text || '/',
        query,
        isHit: method !== 'HEAD' && !first.isPreview,
        attempt,
        get: (name: string) => headers.get(name),
      }
      const answer = follow(about, client, account, found) as Answer
      if (found.link === null && answer.status !== 429 && method === 'GET') {
        unknownPaths.count({ domainId: domain.id, path: text }, { client, headers })
      }
      if (!before || answer.status !== 302) return answer
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
  const answerForm = (path: string, request: Request): Promise<Answer> | undefined => {
    const account = payerOf(findAccount(deps, apiKeyOf(request.headers)))
    if (!limiter.hasRoom('read', account, clientOf(address, request))) return undefined
    const found = find(path, domains.ofRequest(request))
    return found.isPreview ? undefined : protectedIn(found) && answer(path, request, found)
  }
  return { answer: (path, request) => answer(path, request), answerForm }
}

function passwordChecks(gate: PasswordGate, clock: Clock) {
  const readRules = rulesReader()
  const protectedIn = ({ link }: FoundLink) => {
    const rules = link?.rules ? readRules(link.rules) : undefined
    return link && rules?.password
      ? { rules, link: { id: link.id, hash: rules.password } }
      : undefined
  }
  /** The result for the password of a request, unless the request needs none. */
  const attemptOf = async (
    found: ReturnType<typeof protectedIn>,
    headers: Headers,
    sent: string | undefined,
    client: Client,
  ) => {
    if (!found || sent === undefined || stateOf(found.rules, clock(), 0) !== 'active')
      return undefined
    return gate.isUnlocked(headers, found.link) ? undefined : gate.verify(found.link, sent, client)
  }
  return { protectedIn, attemptOf }
}

/** `find` has found the link of each request before. */
const FOUND = { findByCode: () => null, findAlias: () => null }

type NamedLink = Omit<FoundPath, 'isPreview'>

/** A link, and the path or the part of it that names the link. */
interface FoundPath extends FoundLink {
  path: string
  /** Version of the code when the link was read: a later version means that the link changed. */
  version: number
  /** The request asks where the link leads. */
  isPreview: boolean
  /** See `FollowRequest`. */
  rest?: string
}

function linkFinder({
  destinations,
  data: { aliases },
  versions,
  codes,
}: Pick<ControlDeps, 'destinations' | 'data' | 'versions' | 'codes'>) {
  const findLink = (path: string, domain: RequestDomain): NamedLink | undefined => {
    const code = toCode(path)
    const version = code === undefined ? 0 : versions.ofKey(code)
    const direct = code && destinations.findByCode(code)
    if (direct) return isForeign(direct, domain) ? undefined : { path, code, link: direct, version }
    const alias = aliases.findByPath(path, domain)
    if (!alias) return undefined
    const ofAlias = versions.ofKey(alias.code)
    const link = destinations.findByCode(alias.code)
    return link ? { path, code: alias.code, link, version: ofAlias } : undefined
  }
  const readRules = rulesReader()
  const findNamed = (text: string, domain: RequestDomain): NamedLink | undefined => {
    const rest = withoutSigns(text)
    return (
      findLink(text, domain) ??
      (rest === text ? undefined : findLink(withoutLastSlash(rest), domain))
    )
  }
  const findForwarding = (path: string, domain: RequestDomain): FoundPath | undefined => {
    for (const { address, rest } of cutsOf(path)) {
      const decoded = decodePercent(address) ?? address
      // Guessed paths cost no look-up for each of their segments.
      codes.prepare()
      const named = codes.mayName(decoded) ? findLink(decoded, domain) : undefined
      const rules = named?.link?.rules ? readRules(named.link.rules) : undefined
      if (named && rules?.forward_path) {
        return { ...named, rest, isPreview: false }
      }
    }
    return undefined
  }
  return (urlPath: string, domain: RequestDomain): FoundPath => {
    const text = lookedUp(urlPath)
    const named = findNamed(text, domain)
    if (named) return { ...named, isPreview: false }
    const path = previewedPath(text)
    const asked = path === undefined ? undefined : findNamed(path, domain)
    if (asked) return { ...asked, isPreview: true }
    const forwarding = findForwarding(urlPath.slice(1), domain)
    if (forwarding) return forwarding
    return { path: text, code: undefined, link: null, version: 0, isPreview: false }
  }
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

/**
 * Signs that apps take for a part of a URL that stands in a text: punctuation of any script except
 * that of URLs, brackets, quotes, blanks and characters without a width.
 */
const SIGN = /^(?![#%&/@\\_-])[\p{P}\p{Z}\p{Cf}<>|~`´]$/u

/** A decoded path without such signs at its end. Takes linear time. */
function withoutSigns(path: string): string {
  let end = path.length
  while (end > 0 && SIGN.test(path.charAt(end - 1))) end--
  return path.slice(0, end)
}
