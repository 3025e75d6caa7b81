import type { Account } from '../accounts/store.ts'
import type { DomainMap, RequestDomain } from '../addresses/map.ts'
import type { Client } from '../hot/client-address.ts'
import type { Destination } from '../hot/destination-cache.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { VisitRecorder } from '../hot/visit-ring.ts'
import type { RequestHeaders } from '../http/context.ts'
import type { Clock } from '../lib/clock.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { RateLimiter } from '../limits/budgets.ts'
import { type HitLimits, type LinkRules, rulesReader } from '../links/destination.ts'
import type { DestinationChooser } from './choose-destination.ts'
import { withPath } from './forwarded-path.ts'
import { withQuery } from './forwarded-query.ts'
import {
  type Answer,
  Answers,
  type HeldBack,
  type PasswordRefusal,
  type ResponseDeps,
} from './responses.ts'
import type { OffReason } from './visitor-page.ts'

interface FollowDeps extends ResponseDeps {
  /** Null if no link has the code; undefined if only the control thread can tell. */
  findByCode(code: Code): Destination | null | undefined
  /** Called if no link has the path as its code. Null and undefined as above. */
  findAlias(path: string, domain: RequestDomain): AliasedLink | null | undefined
  domains: Pick<DomainMap, 'isEmpty' | 'primary' | 'ofHost'>
  /** Only on the control thread: see `HitLimits`. */
  hitLimits?: HitLimits
  /** Only on the control thread: which requests do not follow links with `max_hits`. */
  holdsBack?: (request: RequestHeaders) => HeldBack | undefined
  /** Only on the control thread: whether a request may pass the password of a link. */
  isUnlocked?: (request: FollowRequest, link: ProtectedLink) => boolean
  journal: { append(linkId: number): void }
  /** Absent with VISIT_DETAILS=off. */
  visits: Pick<VisitRecorder, 'record'> | undefined
  limiter: Pick<RateLimiter, 'take'>
  clock: Clock
  chooser: DestinationChooser
  counters: Pick<RedirectCounters, 'add'>
}

/** The link to which an alias resolves. */
export interface AliasedLink {
  code: Code
  link: Destination
}

/** A request for a short link. */
export interface FollowRequest extends RequestHeaders {
  /** The path, without the slash. */
  readonly text: string
  /** The whole path, if `text` is only a part of it. */
  readonly asked?: string
  /** What follows the address of a link that forwards it, as it was sent: see `CutPath`. */
  readonly rest?: string | undefined
  /** Query without its question mark. */
  readonly query: string
  /** The request as it was received, where that is known. */
  readonly head?: string
  /** Whether a redirect counts: not for HEAD. */
  readonly isHit: boolean
  /** The result for the password that it brought, if it brought one. */
  readonly attempt?: PasswordAttempt | undefined
}

/** A link whose visitors must enter a password. */
export interface ProtectedLink {
  id: number
  hash: string
}

export type PasswordAttempt = { unlocked: ProtectedLink } | { refusal: PasswordRefusal }

/** The link that was found for a request, on the control thread; null if there is none. */
export interface FoundLink {
  code: Code | undefined
  link: Destination | null
}

/** Undefined on a redirect thread: the control thread must answer. */
export type Follow = (
  request: FollowRequest,
  client: Client,
  account?: Account,
  found?: FoundLink,
) => Answer | undefined

const NO_RULES: LinkRules = {}

/**
 * HOT PATH. Answers GET /{code}. No schema, no hooks, no await, no exceptions, no needless object:
 * bench/load/redirect.ts and rules.ts guard its cost. A redirect thread leaves texts that are
 * neither a code nor an alias, and links with a password, with `max_hits` or with rules by country
 * that need the file of countries, to the control thread.
 */
export function follower(deps: FollowDeps): Follow {
  const { findByCode, findAlias, hitLimits, holdsBack, journal, visits, limiter, clock } = deps
  const { chooser, counters, domains, isUnlocked } = deps
  const answers = new Answers(deps)
  const readRules = rulesReader()

  return (request, client, account, found) => {
    const domain = domains.isEmpty ? domains.primary : domains.ofHost(request.get('host') ?? '')
    if (domain === undefined) return undefined
    const named = found ? found.code : toCode(request.text)
    const direct = found ? found.link : named === undefined ? null : findByCode(named)
    const alias = found || direct !== null ? null : findAlias(request.text, domain)
    const code = alias ? alias.code : named
    const own = !found && direct && isForeign(direct, domain) ? null : direct
    const link = alias ? alias.link : own
    const isUncertain = link === undefined || alias === undefined || code === undefined
    if (!hitLimits && isUncertain) return undefined
    const rules = link?.rules ? readRules(link.rules) : NO_RULES
    const isLimited = code !== undefined && link && rules.max_hits !== undefined
    const hash = rules.password
    const isElsewhere = request.rest !== undefined && !rules.forward_path
    if (!hitLimits && isElsewhere) return undefined
    const isLeft = rules !== NO_RULES && (isLimited || hash || chooser.isLeft(rules, client))
    if (!hitLimits && isLeft) return undefined
    const hits = isLimited ? (hitLimits as HitLimits).hitsOf(code, link.id) : 0
    const state = rules === NO_RULES ? 'active' : stateOf(rules, clock(), hits)
    // A link that is off is charged like an unknown code: the headers must not tell them apart.
    const location = state === 'off' ? null : link?.location
    const budget = limiter.take(location ? 'redirect' : 'read', account, client)
    if (!budget.allowed) {
      counters.add('limited')
      return answers.refuse('rate_limited', String(budget.retryAfter), {
        budget,
        headers: request,
        domain,
      })
    }
    if (!code || !link || !location) {
      const isDisabled = link?.isDisabled === true
      counters.add(isDisabled ? 'disabled' : 'notFound')
      const asked = request.asked ?? request.text
      const refusal = isDisabled ? 'link_disabled' : 'code_not_found'
      const reason = link && !isDisabled ? offReason(rules) : undefined
      const refused = { budget, headers: request, domain, reason }
      return answers.refuse(refusal, asked.toUpperCase(), refused)
    }
    if (state === 'expired') {
      counters.add('expired')
      if (rules.expired_url) return answers.redirect(rules.expired_url, budget, rules)
      return answers.refuse('link_expired', code, { budget, headers: request, domain })
    }
    if (hash !== undefined && !isUnlocked?.(request, { id: link.id, hash })) {
      counters.add('protected')
      const { attempt } = request
      const refusal = attempt && 'refusal' in attempt ? attempt.refusal : undefined
      return answers.askPassword(code, refusal, {
        budget,
        headers: request,
        domain,
        isPreview: holdsBack?.(request) === 'preview',
      })
    }
    const heldBack = isLimited ? holdsBack?.(request) : undefined
    if (heldBack) {
      counters.add(heldBack)
      return answers.holdBack(heldBack, { budget, headers: request, domain })
    }
    if (!request.isHit) counters.add('foundByHead')
    else {
      if (isLimited) hitLimits?.add(code)
      journal.append(link.id)
      visits?.record(link.id, client, request)
    }
    if (rules === NO_RULES) return answers.redirect(location, budget, rules, code)
    const chosen = chooser.find(rules, request, client) ?? location
    const place = request.rest === undefined ? chosen : withPath(chosen, request.rest)
    const target = rules.forward_query ? withQuery(place, request.query) : place
    return answers.redirect(target, budget, rules, code)
  }
}

/** A reserved code has no rules: it is to become active. */
function offReason({ paused, delete_at }: LinkRules): OffReason {
  if (delete_at !== undefined) return 'link_removed'
  return paused ? 'link_paused' : 'link_not_started'
}

/** HOT PATH. Whether the domain does not answer the code of the link. */
export const isForeign = (link: Destination, { id, codes }: RequestDomain): boolean =>
  codes === 'own' && link.domainId !== id

type LinkState = 'active' | 'off' | 'expired'

/** HOT PATH. A link that was paused or has not started is unknown, even if it has expired. */
export function stateOf(rules: LinkRules, now: number, hits: number): LinkState {
  const { paused, delete_at, starts_at, expires_at, max_hits } = rules
  if (paused || delete_at !== undefined) return 'off'
  if (starts_at !== undefined && now < starts_at) return 'off'
  if (expires_at !== undefined && now >= expires_at) return 'expired'
  return max_hits !== undefined && hits >= max_hits ? 'expired' : 'active'
}
