import { Elysia, type InternalRoute } from 'elysia'
import type { Config } from './config.ts'
import { errorPage, isDashboardPath } from './dashboard/errors.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { AppError } from './errors.ts'
import { compressed } from './http/compression.ts'
import { errorResponses } from './http/errors.ts'
import { refuseUnmatched } from './http/guard.ts'
import { closingConnections, securityHeaders } from './http/headers.ts'
import { observeRequests } from './http/requests.ts'
import { countUnsent } from './http/unsent.ts'
import { linkPropertyRoutes } from './links/property-routes.ts'
import { linkListRoutes, linkLookupRoutes, linkWriteRoutes } from './links/routes.ts'
import { openapiRoutes } from './openapi/routes.ts'
import { qrApiRoutes, qrFileRoutes, qrRedirectRoutes } from './qr/routes.ts'
import { type Follow, follower } from './redirect/follow.ts'
import { logged, timed } from './redirect/observe.ts'
import { nativeRedirect, redirectRoutes } from './redirect/routes.ts'
import { closeService, type Outside, openService, type Service } from './service.ts'
import type { Descriptors } from './status/descriptors.ts'
import { isLocal, metricsRoutes, probeRoutes, statusRoutes } from './status/routes.ts'

export interface App {
  http: Elysia
  /** Metrics and probes for an address of their own; undefined without `METRICS_LISTEN`. */
  operators: Elysia | undefined
  /** No account exists yet: the service has just been set up. */
  fresh: boolean
  /** A link that sets up the owner's account, once; undefined when there is an owner. A secret. */
  setupLink: string | undefined
  /**
   * From now on /-/ready is 503, and so are sign-ins that wait: they would take longer than a stop
   * may.
   */
  beginStop(): void
  /** Watches over file descriptors once the ports are open. */
  descriptors: Descriptors
  /** Hits not counted in the database yet. */
  hitsWaiting(): number
  /** See `closeService`. */
  close(graceMs?: number): Promise<void>
}

/** Builds the whole service over `config.dataDir`, without listening. Throws DataError. */
export async function buildApp(config: Config, outside: Outside): Promise<App> {
  const ownPort = (): number | undefined => http.server?.port
  const service = await openService(config, { ...outside, ownPort })
  const http = routes(service)
  const { health, descriptors, dashboard, journal, fresh, setupLink } = service
  return {
    http: http as unknown as Elysia,
    operators: config.metricsListen ? operatorRoutes(service) : undefined,
    fresh,
    setupLink,
    descriptors,
    beginStop() {
      health.beginStop()
      descriptors.close()
      void dashboard.deps.passwords.close()
    },
    hitsWaiting: () => journal.pending,
    close: (graceMs) => closeService(service, graceMs),
  }
}

/** Every endpoint of the public port. */
function routes(service: Service) {
  const { config, dashboard, metrics } = service
  const follow = openRedirect(service)
  const http = new Elysia({
    // Without this a request with a short Host header reaches the wrong route.
    handler: { standardHostname: false },
    serve: {
      // Bodies are bounded by http/body.ts, which answers in JSON; Bun would not.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 30,
      // A port in use is an error: shared with another process, each would answer for its own data.
      reusePort: false,
      routes: nativeRedirect(follow),
    },
  })
    .headers(securityHeaders(config.baseUrl))
    .use(observeRequests({ ...service, logs: config.logRequests !== 'none' }))
    .use(closingConnections(service))
    .use(
      errorResponses({
        ...service,
        refuseUnmatched: (unmatched): never => refuseUnmatched(service, http, unmatched),
        findPage: (failed) =>
          isDashboardPath(failed.path) ? errorPage(dashboard.deps, failed) : undefined,
      }),
    )
    .use(compressed())
    .use(countUnsent(service))
    .use(linkWriteRoutes(service))
    .use(linkListRoutes(service))
    .use(linkLookupRoutes(service))
    .use(linkPropertyRoutes(service))
    .use(qrApiRoutes(service))
    .use(qrRedirectRoutes(service))
    .use(qrFileRoutes(service))
    .use(statusRoutes(service))
    .use(probeRoutes(service))
    .use(config.localMetrics ? metricsRoutes({ metrics, admits: isLocal }) : new Elysia())
    .use(redirectRoutes(follow))
    .use(dashboardRoutes(dashboard.deps))
    .use(openapiRoutes(config, listRoutes))

  function listRoutes(): InternalRoute[] {
    return http.routes
  }
  return http
}

function openRedirect(service: Service): Follow {
  const { config, monotonic, redirectSeconds } = service
  const follow = follower({ ...service, behindProxy: config.trustedProxies.length > 0 })
  const timedFollow = timed(follow, redirectSeconds, monotonic)
  return config.logRequests === 'all' ? logged(timedFollow, service) : timedFollow
}

/** Metrics and probes on the address of `METRICS_LISTEN`. */
function operatorRoutes(service: Service): Elysia {
  const { metrics } = service
  const operators = new Elysia({ serve: { idleTimeout: 30, reusePort: false } })
    .use(errorResponses({ ...service, refuseUnmatched: refuseUnknown }))
    .use(probeRoutes(service))
    .use(metricsRoutes({ metrics, admits: () => true }))
  return operators as unknown as Elysia
}

function refuseUnknown(): never {
  throw new AppError('path_not_found')
}
