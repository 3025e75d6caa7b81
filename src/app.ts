import { Elysia, type InternalRoute } from 'elysia'
import { canonicalHost } from './addresses/address.ts'
import { certificateRoutes, domainRoutes } from './addresses/routes.ts'
import { hitRoutes, visitRoutes } from './analytics/routes.ts'
import { checkerRoutes } from './checks/routes.ts'
import { compatibleRefusal, compatibleRoutes } from './compatible/routes.ts'
import type { Config } from './config.ts'
import { errorPage, isDashboardPath } from './dashboard/errors.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { AppError } from './errors.ts'
import { historyRoutes } from './history/routes.ts'
import { compressed } from './http/compression.ts'
import { crossOriginRequests } from './http/cors.ts'
import { errorResponses, type UnmatchedRequest } from './http/errors.ts'
import { refuseUnknownPath, refuseUnmatched } from './http/guard.ts'
import { closingConnections, DEFAULT_HEADERS, datedHeads, publicHeaders } from './http/headers.ts'
import { observeRequests } from './http/requests.ts'
import { countUnsent } from './http/unsent.ts'
import { importRoutes } from './import/routes.ts'
import { linkLookupRoutes, linkPropertyRoutes, linkWriteRoutes } from './links/routes.ts'
import { listRoutes, ownListRoutes } from './lists/routes.ts'
import { openapiRoutes } from './openapi/routes.ts'
import { qrApiRoutes, qrFileRoutes, qrRedirectRoutes } from './qr/routes.ts'
import { type ControlFollower, controlFollower } from './redirect/control.ts'
import { domainSite } from './redirect/domain-routes.ts'
import { toResponse } from './redirect/responses.ts'
import { redirectRoutes } from './redirect/routes.ts'
import type { Control } from './redirect/threads.ts'
import { wellKnownRoutes } from './redirect/well-known-routes.ts'
import { brandOf, type Outside, openService, type Service } from './service.ts'
import { benchRoutes, isLocal, metricsRoutes, probeRoutes, statusRoutes } from './status/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'

export type App = Awaited<ReturnType<typeof startApp>>

/**
 * Starts the whole service over `config.dataDir`. Redirects are answered before the rest has
 * started. Throws DataError and ListenError.
 */
export async function startApp(config: Config, outside: Outside) {
  const control = Promise.withResolvers<Control>()
  const service = await openService(config, outside, control.promise)
  const follow = redirectFollower(service)
  const http = routes(service, follow)
  control.resolve({ answer: answerer(service, http, follow), codes: service.codes })
  const { health, dashboard, journal, setupLink, redirects } = service
  return {
    /** The public port, without TLS. */
    port: redirects.port as number,
    /** The port for https; undefined without it. */
    httpsPort: redirects.httpsPort,
    /** A link that sets up the owner's account, once; undefined when there is one. A secret. */
    setupLink,
    /** Metrics and probes for an address of their own; undefined without `METRICS_LISTEN`. */
    operators: config.metricsListen ? operatorRoutes(service) : undefined,
    /** What commands on the data use. */
    administration: service,
    /** Closes the public port. Open connections are answered as before. */
    refuseConnections: () => redirects.refuseConnections(),
    /** Waits up to `graceMs` for requests in progress, and closes all connections. */
    stopListening: (graceMs: number) => redirects.stop(graceMs),
    /**
     * From now on /-/ready answers 503, and so do waiting sign-ins, which would take too long for a
     * stop.
     */
    async beginStop() {
      health.beginStop()
      void dashboard.passwords.close()
      await redirects.beginStop()
    },
    /** Hits not counted in the database yet. */
    hitsWaiting: () => journal.pending,
    close: (graceMs?: number) => closeService(service, graceMs),
  }
}

/**
 * Stops background work, counts the last hits and closes the database. Images and password checks
 * in progress may then take `graceMs` more. Throws if the disk refuses.
 */
async function closeService(service: Service, graceMs?: number): Promise<void> {
  const { background, keyUses, dashboard, blocklist, images, remake, flusher } = service
  const { threads, db, writer, lock, log, redirects } = service
  const { cluster, otherChanges, journal, visits, outgoing, unknownPaths } = service
  for (const part of background) part.close()
  service.certificates?.close()
  dashboard.imports.close()
  // Before the writer, because its tasks write what they have done.
  await Promise.all([
    outgoing.close(),
    keyUses.close(),
    dashboard.deletion.close(),
    blocklist.close(),
  ])
  const unlessHitsCanWait = (error: unknown) => {
    const reason = cluster?.problem
    if (!reason) throw error
    log.warn('hits.waiting', { hits: journal.pending, reason })
  }
  // These threads have the lowest priority: on a busy machine the data would wait for seconds.
  const late = Promise.all([images.close(), dashboard.passwords.close()])
  try {
    await redirects.close()
    await Promise.all([
      remake?.close(),
      flusher.close().catch(unlessHitsCanWait),
      visits?.flusher.close(),
      unknownPaths.close(),
    ])
  } finally {
    await Promise.all([threads.reader.close(), visits?.thread.close()])
    db.close()
    // Last, because only a writing connection can merge the write-ahead log when it closes.
    await writer.close({ drop: ['links.index', 'hits.prune', 'history.prune'] })
    cluster?.close()
    otherChanges?.close()
    await (graceMs === undefined ? late : Promise.race([late, Bun.sleep(graceMs)]))
    lock.release()
    log.close()
  }
}

/** Every endpoint of the public port. */
function routes(service: Service, follow: ControlFollower) {
  const { config, dashboard, health } = service
  const http = new Elysia({
    // Elysia's default sends a request with a short Host header to the wrong route.
    handler: { standardHostname: false },
  })
    .headers(publicHeaders(config.baseUrl))
    .use(observeRequests({ ...service, logs: config.logRequests }))
    .use(closingConnections(service))
    .use(datedHeads())
    .use(crossOriginRequests(service))
    .use(
      errorResponses({
        ...service,
        answerUnmatched: (unmatched): Response | Promise<Response> =>
          answerIfShortLink(service, follow, unmatched) ??
          refuseUnmatched(service, http, unmatched),
        findAnswer: (failed): Response | undefined =>
          isDashboardPath(failed.path)
            ? errorPage(dashboard, failed, http)
            : compatibleRefusal(failed, config),
      }),
    )
    .use(compressed())
    .use(countUnsent(service))
    .use(linkWriteRoutes(service))
    .use(listRoutes(service))
    .use(linkLookupRoutes(service))
    .use(ownListRoutes(service))
    .use(linkPropertyRoutes(service))
    .use(historyRoutes(service))
    .use(importRoutes(service))
    .use(domainRoutes(service))
    .use(webhookRoutes(service))
    .use(hitRoutes(service))
    .use(visitRoutes(service))
    .use(qrApiRoutes(service))
    .use(qrRedirectRoutes(service))
    .use(qrFileRoutes(service))
    .use(statusRoutes(service))
    .use(probeRoutes({ health, admits: isLocal }))
    .use(config.checkDestinations ? checkerRoutes(config) : new Elysia())
    .use(benchRoutes(service))
    .use(localCertificateRoutes(service))
    .use(config.localMetrics ? localMetricsRoutes(service) : new Elysia())
    .use(wellKnown(service))
    .use(config.compatibleApis ? compatibleRoutes(service) : new Elysia())
    .use(redirectRoutes(follow))
    .use(dashboardRoutes(dashboard))
    .use(openapiRoutes(service, (): InternalRoute[] => http.routes))
  service.aliasRules.reserve(http.routes)
  return http
}

/**
 * Answers a request with all of the service on the primary domain, and with short links only on the
 * others: nobody signs in on a brand that somebody else may control. A name that is none of them,
 * which a proxy may still have, gets short links, probes and, as the host of `CDN_URL`, images.
 */
function answerer(
  service: Service,
  http: ReturnType<typeof routes>,
  follow: ControlFollower,
): Control['answer'] {
  const { config, domains } = service
  const duringMaintenance = true
  const site = linkSite(
    service,
    (unmatched) =>
      answerShortLink(follow, unmatched) ??
      refuseUnknownPath(service, unmatched, { duringMaintenance }),
  )
    .use(wellKnown(service))
    .use(domainSite(service, follow.answer))
  const foreign = linkSite(
    service,
    (unmatched) =>
      (unmatched.path === '/' ? undefined : answerIfShortLink(service, follow, unmatched)) ??
      refuseUnknownPath(service, unmatched, { duringMaintenance, code: 'misdirected' }),
  )
  const cdnHost = canonicalHost(new URL(config.cdnUrl).host)
  return (request) => {
    if (domains.isUnused) return http.fetch(request)
    const host = request.headers.get('host') ?? ''
    const domain = domains.ofHost(host)
    if (domain === undefined) return severalHosts()
    if (domain.isPrimary) return http.fetch(request)
    if (domain !== domains.foreign) return site.fetch(request)
    const path = URL.parse(request.url)?.pathname ?? ''
    const isImage = path.startsWith('/cdn/') && canonicalHost(host) === cdnHost
    return (isImage || /^\/-\/(live|ready)\/?$/.test(path) ? http : foreign).fetch(request)
  }
}

/** What has no routes of the service. */
const linkSite = (
  service: Service,
  answerUnmatched: (unmatched: UnmatchedRequest) => Promise<Response>,
) =>
  new Elysia({ handler: { standardHostname: false } })
    .headers(DEFAULT_HEADERS)
    .use(observeRequests({ ...service, logs: service.config.logRequests }))
    .use(closingConnections(service))
    .use(datedHeads())
    .use(errorResponses({ ...service, answerUnmatched }))
    .use(compressed())
    .use(countUnsent(service))

const severalHosts = (): Response =>
  Response.json(
    { error: 'Invalid Host: must be one name' },
    { status: 400, headers: DEFAULT_HEADERS },
  )

const wellKnown = (service: Service) =>
  wellKnownRoutes({ ...service, operatorContact: service.config.operatorContact })

const localCertificateRoutes = (service: Service) =>
  certificateRoutes({
    ...service,
    admits: isLocal,
    refuse: (request, set) =>
      refuseUnknownPath(service, { request, set: set as never }, { duringMaintenance: true }),
  })

const localMetricsRoutes = (service: Service) =>
  metricsRoutes({
    ...service,
    admits: isLocal,
    refuse: (context) => refuseUnknownPath(service, context, { duringMaintenance: true }),
  })

function redirectFollower(service: Service) {
  const { config, redirects, dashboard, data } = service
  return controlFollower({
    ...service,
    baseUrl: config.baseUrl,
    throttle: dashboard.throttle,
    replacePassword: data.links.replacePassword,
    counters: redirects.controlCounters,
    visits: redirects.controlVisits,
    brand: brandOf(config),
    countryFile: config.countryFile,
    countryHeader: config.countryHeader,
  })
}

/**
 * `answerShortLink`, for a path that no route of the service reserves. Aliases below `/rest/` are
 * older than its routes.
 */
const answerIfShortLink = (
  { aliasRules }: Service,
  follow: ControlFollower,
  unmatched: UnmatchedRequest,
): Promise<Response> | undefined =>
  aliasRules.isReserved(unmatched.path.slice(1)) && !/^\/rest\/(?!v3\/)/i.test(unmatched.path)
    ? undefined
    : answerShortLink(follow, unmatched)

/**
 * The answer to a request without a route that may be one for a short link: for a path of several
 * segments, or with the form of a link with a password. A path that is no alias is answered and
 * charged like an unknown code.
 */
function answerShortLink(
  follow: ControlFollower,
  { request, path }: UnmatchedRequest,
): Promise<Response> | undefined {
  const { method } = request
  const answer = /^(GET|HEAD)$/.test(method)
    ? follow.answer(path, request)
    : method === 'POST'
      ? follow.answerForm(path, request)
      : undefined
  return answer?.then(toResponse)
}

/** Metrics and probes on the address of `METRICS_LISTEN`. */
function operatorRoutes(service: Service): Elysia {
  const { metrics, health, domains } = service
  const operators = new Elysia({ serve: { idleTimeout: 30, reusePort: false } })
    .headers(DEFAULT_HEADERS)
    .use(datedHeads())
    .use(errorResponses({ ...service, answerUnmatched: refuseUnknown }))
    .use(probeRoutes({ health, admits: () => true }))
    .use(metricsRoutes({ metrics, admits: () => true, refuse: refuseUnknown }))
    .use(certificateRoutes({ domains, admits: () => true, refuse: refuseUnknown }))
  return operators as unknown as Elysia
}

function refuseUnknown(): never {
  throw new AppError('path_not_found')
}
