import { join } from 'node:path'
import { Elysia, type InternalRoute } from 'elysia'
import type { PasswordFunctions } from './accounts/password-hash.ts'
import { anonymousBudgets, planLimits } from './accounts/plans.ts'
import { AccountStore } from './accounts/store.ts'
import { OwnAddress } from './blocklist/own-address.ts'
import { Blocklist } from './blocklist/watch.ts'
import type { Config } from './config.ts'
import { type Dashboard, openDashboard } from './dashboard/build.ts'
import { errorPage, isDashboardPath } from './dashboard/errors.ts'
import { dashboardRoutes } from './dashboard/routes.ts'
import { databaseFile, openReadonly } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { Writer } from './db/writer.ts'
import { AppError } from './errors.ts'
import { HitFlusher } from './hits/flush.ts'
import { HitCounts, HitSeries, journalFile } from './hits/hits.ts'
import { BucketPruner } from './hits/pruner.ts'
import { HitReads } from './hits/store.ts'
import { ClientAddress } from './hot/client-address.ts'
import { RequestBodies } from './http/body.ts'
import { closingConnections } from './http/closing-connections.ts'
import { errorAnswers } from './http/errors.ts'
import { refuseUnrouted } from './http/guard.ts'
import { RequestIds } from './http/request-id.ts'
import { observeRequests, RequestTally } from './http/requests.ts'
import { securityHeaders } from './http/security-headers.ts'
import { countUnsent, UnsentResponses } from './http/unsent.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from './lib/histogram.ts'
import type { Log } from './lib/log.ts'
import { limitLines } from './lib/log-limit.ts'
import type { RandomBytes } from './lib/random.ts'
import { RestartingThread } from './lib/restarting-thread.ts'
import { type Functions, Thread, type ThreadOptions } from './lib/thread.ts'
import { RateLimiter } from './limits/budgets.ts'
import { Pace } from './limits/pace.ts'
import { CountingReads, LinkCache } from './links/cache.ts'
import { BULK_BYTES_PER_SECOND } from './links/create.ts'
import { LinkEffects } from './links/effects.ts'
import { PublicUrls } from './links/link.ts'
import { LinkPages } from './links/lists.ts'
import { LinkReads } from './links/read.ts'
import { linkListRoutes, linkLookupRoutes, linkWriteRoutes } from './links/routes.ts'
import { SearchIndexer } from './links/search-index.ts'
import { LinkWriter } from './links/writer.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { Moderation } from './moderation/moderation.ts'
import { ModerationReads } from './moderation/store.ts'
import { openapiRoutes } from './openapi/routes.ts'
import { prepare } from './prepare.ts'
import { QrImages } from './qr/images.ts'
import { Remake } from './qr/remake.ts'
import type { Renderer } from './qr/renderer.ts'
import { qrApiRoutes, qrFileRoutes, qrRedirectRoutes } from './qr/routes.ts'
import { follower } from './redirect/follow.ts'
import { logged, timed } from './redirect/observe.ts'
import { nativeRedirect, redirectRoutes } from './redirect/routes.ts'
import { DataWatch } from './status/data-watch.ts'
import { Descriptors } from './status/descriptors.ts'
import { Health } from './status/health.ts'
import { Metrics, WriterWork } from './status/metrics.ts'
import { isLocal, metricsRoutes, probeRoutes, statusRoutes } from './status/routes.ts'
import { ThreadWatch } from './status/thread-watch.ts'
import { readVitals } from './status/vitals.ts'
import type { Reads } from './threads/reader.ts'
import type { Writes } from './threads/writer.ts'

/** What the app takes from outside itself: tests pass their own. */
export interface Outside {
  clock: Clock
  monotonic: MonotonicClock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal, when a new one is made. */
  journalEntries?: number
  /** Addresses that the limiter tells apart at once. */
  addressesMax?: number
  /** Lines that the log could not write. */
  logLinesDropped?: () => number
}

export interface App {
  http: Elysia
  /** Metrics and probes for an address of their own; undefined without `METRICS_LISTEN`. */
  operators: Elysia | undefined
  /** No account exists yet: the service has just been set up. */
  fresh: boolean
  /** A link that sets up the owner's account, once; undefined when there is an owner. A secret. */
  setupLink: string | undefined
  /**
   * Makes /-/ready say that nothing more should be sent here. A crowd that waits to sign in is told
   * so: it would take longer than a stop may.
   */
  beginStop(): void
  /** Watches over file descriptors once the ports are open. */
  descriptors: Descriptors
  /** Hits not counted in the database yet. */
  hitsWaiting(): number
  /**
   * Ends the background work, counts the last hits and closes the database. After that, images and
   * passwords under way are waited for, `patienceMs` at most. Throws if the disk refuses.
   */
  close(patienceMs?: number): Promise<void>
}

const CALLS_MAX = 200_000

/** Builds the whole service over `config.dataDir`, without listening. Throws DataError. */
export async function buildApp(config: Config, outside: Outside): Promise<App> {
  const { clock, monotonic, random } = outside
  const log = limitLines(outside.log, monotonic)
  const file = databaseFile(config.dataDir)
  const imageDir = join(config.dataDir, 'cdn', 'qr')
  const tally = new RequestTally()
  const outcomes = { foundByHead: 0, notFound: 0, disabled: 0, limited: 0, failed: 0 }
  const redirectSeconds = new Histogram(LATENCY_BOUNDS)
  const writerWork = new WriterWork()

  const prepared = prepare(config, { ...outside, log, imageDir })
  const { lock, journal, remakeImages, fresh, setupLink, hasher } = prepared

  /** Starts a thread of the service; the log says when it ends by a fault. */
  const start = <Calls extends Functions<Calls>>(
    thread: string,
    url: URL,
    settings: unknown,
    options: Partial<ThreadOptions> = {},
  ) =>
    Thread.start<Calls>(new Worker(url), settings, {
      batchMax: 1,
      queueMax: CALLS_MAX,
      ...options,
      onDeath: (error) => {
        log.error('thread.ended', { thread }, error)
        options.onDeath?.(error)
      },
    })

  /** The same, of a thread without state, which is started again when it ends. */
  const startAgain = <Calls extends Functions<Calls>>(
    thread: string,
    url: URL,
    settings: unknown,
  ) =>
    RestartingThread.start<Calls>((onDeath) => start(thread, url, settings, { onDeath }), {
      onRestart: () => log.info('thread.restarted', { thread }),
    })

  const [writerThread, lists, renderer, blocklist] = await Promise.all([
    start<Writes>(
      'writer',
      new URL('./threads/writer.ts', import.meta.url),
      { file, journal: journalFile(config.dataDir) },
      { batchMax: 1000, observe: writerWork.observe },
    ),
    startAgain<Reads>('reader', new URL('./threads/reader.ts', import.meta.url), { file }),
    startAgain<Renderer>('qr', new URL('./threads/qr.ts', import.meta.url), {
      dir: imageDir,
    }),
    Blocklist.open({
      files: config.blocklistFiles,
      thread: new URL('./threads/blocklist.ts', import.meta.url),
      ownHosts: [config.baseUrl, config.cdnUrl],
      ownAddress: new OwnAddress({
        host: config.host,
        port: (): number | undefined => http.server?.port,
      }),
      log,
    }),
  ])

  // Not sooner: the last connection to close would first fold in all that a crash left in the log.
  prepared.db.close()
  const threads = { writer: writerThread, reader: lists, qr: renderer }
  const watch = new ThreadWatch({ threads, log })
  const data = new DataWatch({ dataDir: config.dataDir, journal, log })
  const descriptors = new Descriptors({ log })
  const writer = new Writer<Writes>(writerThread, {
    data,
    isHanging: () => watch.isHanging('writer'),
  })
  const db = openReadonly(file, { cacheKiB: 8192 })
  const reads = new LinkReads(db)
  const lookUps = new CountingReads(reads)
  const cache = new LinkCache({ reads: lookUps, blocklist, max: config.linkCacheMax })
  const hits = new HitCounts(new HitReads(db), journal)
  const flusher = new HitFlusher({ journal, writer, clock, flushMs: config.hitFlushMs, log })
  const pruner = new BucketPruner({ writer, clock })
  const addresses = new PublicUrls(config)
  const images = new QrImages({ renderer, dir: imageDir, addresses, log })
  const remake = remakeImages
    ? new Remake({ images, reads, lists, writer, baseUrl: config.baseUrl, log })
    : undefined
  const indexer = new SearchIndexer(writer)
  const effects = new LinkEffects({ cache, images, indexer })
  const moderation = new Moderation({
    reads: new ModerationReads(db),
    writer,
    effects,
    blocklist,
    clock,
  })
  const plans = planLimits(config)
  const unsent = new UnsentResponses()
  const deps = {
    ...{ clock, monotonic, random, reads, lists, cache, hits, journal, addresses, blocklist },
    ...{ images, plans, hasher, moderation },
    pages: new LinkPages(lists, { requireRoom: (account) => unsent.requireRoom(account) }),
    pace: new Pace({ bytesPerSecond: BULK_BYTES_PER_SECOND, monotonic }),
    accounts: new AccountStore(db),
    links: new LinkWriter({ writer, effects }),
    limiter: new RateLimiter({
      plans,
      anonymous: anonymousBudgets(config),
      pagesPerMinute: config.dashboardRequestsPerMinute,
      addressesMax: outside.addressesMax,
      clock,
      monotonic,
    }),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    address: new ClientAddress(config.trustedProxies),
    requestIds: new RequestIds(random),
    bodies: new RequestBodies(),
    unsent,
    health: new Health({ hits, writer, threads, watch }),
  }

  const dashboard: Dashboard = openDashboard({
    ...{ config, db, writer },
    shared: {
      ...{ ...deps, log, reader: lists },
      series: new HitSeries({ reader: lists, counts: hits, clock }),
      vitals: () => readVitals({ ...deps, writer, databaseFile: file }),
    },
    startPasswords: () =>
      start<PasswordFunctions>('passwords', new URL('./threads/passwords.ts', import.meta.url), {}),
  })
  // Known to the guards of the API too, which come by the same object.
  Object.assign(deps, { keyUses: dashboard.keyUses })

  const metrics = new Metrics({
    ...deps,
    ...{ tally, outcomes, redirectSeconds, lookUps, flusher, writer, writerWork, threads },
    watch,
    descriptors,
    databaseFile: file,
    logLinesDropped: outside.logLinesDropped ?? (() => 0),
  })
  const behindProxy = config.trustedProxies.length > 0
  const plainFollow = follower({ ...deps, log, behindProxy, outcomes })
  const timedFollow = timed(plainFollow, redirectSeconds, monotonic)
  const follow = config.logRequests === 'all' ? logged(timedFollow, { ...deps, log }) : timedFollow
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
    .use(observeRequests({ ...deps, log, tally, logs: config.logRequests !== 'none' }))
    .use(closingConnections(deps))
    .use(
      errorAnswers({
        ...{ ...deps, log },
        refuseUnrouted: (unrouted): never => refuseUnrouted(deps, http, unrouted),
        findPage: (failed) => (isDashboardPath(failed.path) ? errorPage(failed) : undefined),
      }),
    )
    .use(countUnsent(deps))
    .use(linkWriteRoutes(deps))
    .use(linkListRoutes(deps))
    .use(linkLookupRoutes(deps))
    .use(qrApiRoutes(deps))
    .use(qrRedirectRoutes(deps))
    .use(qrFileRoutes(deps))
    .use(statusRoutes(deps))
    .use(probeRoutes(deps))
    .use(config.localMetrics ? metricsRoutes({ metrics, admits: isLocal }) : new Elysia())
    .use(redirectRoutes(follow))
    .use(dashboardRoutes(dashboard.deps))
    .use(openapiRoutes(config.baseUrl, routes))

  function routes(): InternalRoute[] {
    return http.routes
  }

  const operators =
    config.metricsListen &&
    new Elysia({ serve: { idleTimeout: 30, reusePort: false } })
      .use(errorAnswers({ ...deps, log, refuseUnrouted: refuseUnknown }))
      .use(probeRoutes(deps))
      .use(metricsRoutes({ metrics, admits: () => true }))

  return {
    http: http as unknown as Elysia,
    operators: operators as unknown as Elysia | undefined,
    ...{ fresh, setupLink },
    descriptors,
    beginStop() {
      deps.health.beginStop()
      descriptors.close()
      void dashboard.deps.passwords.close()
    },
    hitsWaiting: () => journal.pending,
    async close(patienceMs) {
      data.close()
      metrics.close()
      watch.close()
      indexer.close()
      moderation.close()
      pruner.close()
      await Promise.all([dashboard.close(), blocklist.close()])
      // Their threads stand behind every other: on a busy machine the data would wait for seconds.
      const remade = remake?.close()
      const behind = Promise.all([images.close(), dashboard.deps.passwords.close()])
      try {
        await Promise.all([remade, flusher.close()])
      } finally {
        await lists.close()
        db.close()
        // Last, because only a writing connection can fold the write-ahead log in as it closes.
        await writer.close({ drop: ['indexLinks', 'pruneBuckets'] })
        await (patienceMs === undefined ? behind : Promise.race([behind, Bun.sleep(patienceMs)]))
        lock.release()
        log.close()
      }
    },
  }
}

function refuseUnknown(): never {
  throw new AppError('path_not_found')
}
