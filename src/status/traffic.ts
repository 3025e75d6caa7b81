import type { RequestTally } from '../http/requests.ts'
import type { Histogram } from '../lib/histogram.ts'
import type { LimiterWindow, RateLimiter } from '../limits/budgets.ts'
import type { CountingReads, LinkCache } from '../links/cache.ts'
import type { RedirectOutcomes } from '../redirect/follow.ts'
import { SAMPLED_ONE_IN } from '../redirect/observe.ts'
import { type Exposition, samples } from './exposition.ts'

export interface TrafficDeps {
  tally: RequestTally
  outcomes: RedirectOutcomes
  redirectSeconds: Histogram
  cache: LinkCache
  lookUps: CountingReads
  limiter: RateLimiter
}

/** Who asked for what. `hits`: redirects counted since the start. */
export function writeTraffic(out: Exposition, deps: TrafficDeps, hits: number): void {
  writeRequests(out, deps, hits)
  writeRedirects(out, deps, hits)
  writeLimits(out, deps)
}

function writeRequests(out: Exposition, { tally, outcomes }: TrafficDeps, hits: number): void {
  out
    .counter(
      'hopcode_http_requests_total',
      'Answers by route pattern. Refusals of short links (/:code) count under GET.',
      [
        ...[...tally.counts()].map(({ route, method, status, count }) => ({
          labels: { route, method, status },
          value: count,
        })),
        ...redirectAnswers(outcomes, hits),
      ],
    )
    .histogram(
      'hopcode_http_request_duration_seconds',
      'From arrival to answer, of every request but short links.',
      [...tally.times()].map(({ route, method, seconds }) => ({
        labels: { route, method },
        histogram: seconds,
      })),
    )
}

function redirectAnswers(outcomes: RedirectOutcomes, hits: number) {
  const { foundByHead, notFound, disabled, limited, failed } = outcomes
  const answers = [
    ['GET', 302, hits],
    ['HEAD', 302, foundByHead],
    ['GET', 404, notFound],
    ['GET', 410, disabled],
    ['GET', 429, limited],
    ['GET', 500, failed],
  ] as const
  return answers.map(([method, status, value]) => ({
    labels: { route: '/:code', method, status },
    value,
  }))
}

function writeRedirects(out: Exposition, deps: TrafficDeps, hits: number): void {
  const { outcomes, redirectSeconds, cache, lookUps } = deps
  const { foundByHead, notFound, disabled, limited, failed } = outcomes
  const byOutcome = { found: hits + foundByHead, not_found: notFound }
  const { known, unknown } = lookUps
  out
    .counter(
      'hopcode_redirects_total',
      'Short links asked for, by outcome.',
      samples('outcome', { ...byOutcome, disabled, limited, failed }),
    )
    .histogram(
      'hopcode_redirect_duration_seconds',
      `Time in the handler of a short link. Sampled: one request in ${SAMPLED_ONE_IN}.`,
      redirectSeconds,
    )
    .gauge(
      'hopcode_link_cache_entries',
      'Codes in memory: those that somebody holds, and those that nobody does.',
      samples('kind', cache.sizes),
    )
    .counter(
      'hopcode_link_cache_misses_total',
      'Codes not in memory, looked up in the database, by what it said.',
      samples('kind', { known, unknown }),
    )
}

function writeLimits(out: Exposition, { limiter }: TrafficDeps): void {
  const windows = limiter.windows()
  const each = (value: (window: LimiterWindow['window']) => number) =>
    windows.map(({ callers, budget, window }) => ({
      labels: { callers, budget },
      value: value(window),
    }))
  out
    .gauge(
      'hopcode_limiter_callers',
      'Callers with a request in the last minute.',
      each(({ size }) => size),
    )
    .gauge(
      'hopcode_limiter_memory_bytes',
      'Memory of the windows, at its highest.',
      each(({ bytes }) => bytes),
    )
    .counter(
      'hopcode_limiter_refusals_total',
      'Requests over the budget of their caller.',
      each(({ refused }) => refused),
    )
    .counter(
      'hopcode_limiter_overflow_total',
      'Requests of callers for whom no window was left because there are too many callers.',
      each(({ overflowed }) => overflowed),
    )
    .counter(
      'hopcode_limiter_uncounted_total',
      'Requests that passed without being counted because the windows are full.',
      each(({ uncounted }) => uncounted),
    )
    .counter(
      'hopcode_limiter_memory_refusals_total',
      'Requests under the budget for which the memory of the windows was full.',
      each(({ arenaRefused }) => arenaRefused),
    )
}
