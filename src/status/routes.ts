import { Elysia } from 'elysia'
import { z } from 'zod'
import { answerBenchToken } from '../accounts/bench-token.ts'
import { AppError, degradedError } from '../errors.ts'
import { peerOf, type RequestContext, type ResponseState } from '../http/context.ts'
import { type GuardDeps, publicly, requireKey } from '../http/guard.ts'
import { described } from '../http/operation.ts'
import { isoTime } from '../lib/clock.ts'
import { VERSION } from '../lib/version.ts'
import { EXPOSITION_TYPE } from './exposition.ts'
import type { Health } from './health.ts'

interface StatusDeps extends GuardDeps {
  health: Health
}

const StatusView = z
  .object({
    status: z.literal('operational'),
    database: z.literal('ok'),
    total_redirects: z.int().min(0),
    response_time_ms: z.int().min(0),
    timestamp: z.string().meta({ format: 'date-time' }),
    version: z.string(),
  })
  .meta({ id: 'ServiceStatus' })
type StatusView = z.infer<typeof StatusView>

export const statusRoutes = (deps: StatusDeps) =>
  new Elysia({ name: 'status.api', prefix: '/api' })
    .use(publicly(deps, { budget: 'read', reportsState: true }))
    .get(
      '/status',
      () => status(deps),
      described({
        id: 'status',
        summary: 'State of the service',
        description: 'Ask at most once in 30 seconds.',
        tag: 'Status',
        isPublic: true,
        answers: { 200: { description: 'The service works.', view: StatusView } },
      }),
    )

interface ProbeDeps {
  health: Health
  /** Whether this request may read why the host does not follow its cluster. */
  admits: (request: Request) => boolean
}

/**
 * For operators, without a limit. `live`: the process answers and all its threads run. `ready`:
 * also, the database answers, the host follows its cluster, and the service is not about to stop.
 */
export const probeRoutes = ({ health, admits }: ProbeDeps) =>
  new Elysia({ name: 'status.probes', prefix: '/-' })
    .get('/live', () => {
      if (health.deadThread) throw degraded(health)
      return { status: 'live' }
    })
    .get('/ready', ({ request }) => {
      if (health.isStopping) throw new AppError('stopping', '', { fields: { status: 'stopping' } })
      if (!health.isReady()) throw degraded(health, admits(request))
      return { status: 'ready' }
    })

/** For `npm run bench -- --url`: answers the token that `hopcode bench-token` has printed here. */
export const benchRoutes = (deps: GuardDeps) =>
  new Elysia({ name: 'status.bench', prefix: '/-' })
    .use(requireKey(deps, 'change'))
    .get('/bench-token', ({ account, request }) => {
      const token = request.headers.get('x-bench-token') ?? ''
      const answer = answerBenchToken(deps, account.id, token)
      if (answer === undefined) throw new AppError('path_not_found')
      return { answer }
    })

interface MetricsRouteDeps {
  metrics: { text(): string }
  /** Whether this request may read the metrics. */
  admits: (request: Request) => boolean
  /** Refuses all other requests like those for an unknown path. */
  refuse: (context: RequestContext) => never
}

export const metricsRoutes = ({ metrics, admits, refuse }: MetricsRouteDeps) =>
  new Elysia({ name: 'status.metrics', prefix: '/-' }).get('/metrics', ({ request, set }) => {
    if (!admits(request)) refuse({ request, set: set as ResponseState })
    set.headers['content-type'] = EXPOSITION_TYPE
    return metrics.text()
  })

/** Headers that a proxy adds: with one of them, the peer's address is not the caller's. */
const PROXY_HEADERS = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'forwarded',
  'via',
  'cf-connecting-ip',
]

/** The caller is on this machine, and is not a proxy that forwards a request of another. */
export function isLocal(request: Request): boolean {
  const peer = peerOf(request)
  const isLoopback = /^(::ffff:)?127\.|^::1$/.test(peer)
  return isLoopback && !PROXY_HEADERS.some((name) => request.headers.has(name))
}

function status({ health, clock, monotonic }: StatusDeps): StatusView {
  const start = monotonic()
  const totalRedirects = health.totalRedirects()
  const { deadThread, hangingThread } = health
  if (totalRedirects === undefined || deadThread || hangingThread) throw degraded(health)
  return {
    status: 'operational',
    database: 'ok',
    total_redirects: totalRedirects,
    response_time_ms: Math.round(monotonic() - start),
    timestamp: isoTime(clock()),
    version: VERSION,
  }
}

function degraded(health: Health, isOperator = false): AppError {
  const { deadThread, hangingThread } = health
  const database = health.totalRedirects() === undefined ? 'error' : 'ok'
  if (deadThread) return degradedError('thread_ended', database, { thread: deadThread })
  if (hangingThread) return degradedError('thread_hanging', database, { thread: hangingThread })
  if (health.clusterProblem) {
    const reason = isOperator ? health.clusterProblem : undefined
    return degradedError('not_following', database, { reason })
  }
  return degradedError('unhealthy', database)
}
