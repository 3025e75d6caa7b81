import { Elysia } from 'elysia'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { type GuardDeps, publicly } from '../guard.ts'
import { operation } from '../http/operation.ts'
import { isoTime } from '../lib/clock.ts'
import { VERSION } from '../lib/version.ts'
import type { Health } from './health.ts'

interface StatusDeps extends GuardDeps {
  health: Health
}

const StatusView = z.object({
  status: z.literal('operational'),
  database: z.literal('ok'),
  total_redirects: z.int().min(0),
  response_time_ms: z.int().min(0),
  timestamp: z.string().meta({ format: 'date-time' }),
  version: z.string(),
})
type StatusView = z.infer<typeof StatusView>

export const statusRoutes = (deps: StatusDeps) =>
  new Elysia({ name: 'status.api', prefix: '/api' })
    .use(publicly(deps, { budget: 'read' }))
    .get('/status', () => status(deps), {
      detail: operation({
        id: 'status',
        summary: 'How the service is',
        description: 'Ask at most once in 30 seconds.',
        tag: 'Status',
        answers: { 200: { description: 'All is well.', view: StatusView } },
        refusals: [503],
      }),
    })

/** For those who run the service. `live`: the process answers. `ready`: so does its database. */
export const probeRoutes = ({ health }: Pick<StatusDeps, 'health'>) =>
  new Elysia({ name: 'status.probes', prefix: '/-' })
    .get('/live', () => ({ status: 'live' }))
    .get('/ready', () => {
      if (health.totalRedirects() === undefined) throw degraded()
      return { status: 'ready' }
    })

function status({ health, clock, monotonic }: StatusDeps): StatusView {
  const start = monotonic()
  const totalRedirects = health.totalRedirects()
  if (totalRedirects === undefined) throw degraded()
  return {
    status: 'operational',
    database: 'ok',
    total_redirects: totalRedirects,
    response_time_ms: Math.round(monotonic() - start),
    timestamp: isoTime(clock()),
    version: VERSION,
  }
}

const degraded = () =>
  new AppError('unhealthy', '', {
    headers: { 'retry-after': '1' },
    fields: { status: 'degraded', database: 'error' },
  })
