import { join } from 'node:path'
import { Elysia } from 'elysia'
import { anonymousBudgets, planLimits } from './accounts/plans.ts'
import { AccountStore } from './accounts/store.ts'
import { Blocklist } from './blocklist/watch.ts'
import type { Config } from './config.ts'
import { makeDataFolder, openDataFolder } from './data-folder.ts'
import { FolderLock } from './db/lock.ts'
import { databaseFile, openReadonly } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { Writer } from './db/writer.ts'
import { AppError } from './errors.ts'
import { admit, refuseDuringMaintenance } from './guard.ts'
import { HitFlusher } from './hits/flush.ts'
import { HitCounts, journalFile, openJournal } from './hits/hits.ts'
import { HitReads } from './hits/store.ts'
import { ClientAddress } from './http/client-address.ts'
import { errorAnswers, type Unrouted } from './http/errors.ts'
import { methodsOf } from './http/methods.ts'
import { RequestIds } from './http/request-id.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import type { RandomBytes } from './lib/random.ts'
import { Thread } from './lib/thread.ts'
import { RateLimiter } from './limits/budgets.ts'
import { Addresses } from './links/addresses.ts'
import { LinkCache } from './links/cache.ts'
import { SearchIndexer } from './links/indexer.ts'
import { LinkWriter } from './links/links.ts'
import { linkListRoutes, linkLookupRoutes, linkWriteRoutes } from './links/routes.ts'
import { type LinkLists, LinkReads } from './links/store.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { openapiRoutes } from './openapi/routes.ts'
import { QrImages } from './qr/images.ts'
import { Remake, retireStaleImages } from './qr/remake.ts'
import type { Renderer } from './qr/renderer.ts'
import { qrApiRoutes, qrFileRoutes, qrRedirectRoutes } from './qr/routes.ts'
import { follower } from './redirect/follow.ts'
import { nativeRedirect, redirectRoutes } from './redirect/routes.ts'
import { Health } from './status/health.ts'
import { probeRoutes, statusRoutes } from './status/routes.ts'
import type { Writes } from './writer-thread.ts'

/** What the app takes from outside itself: tests pass their own. */
export interface Outside {
  clock: Clock
  monotonic: MonotonicClock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal, when a new one is made. */
  journalEntries?: number
}

export interface App {
  http: Elysia
  /** No account exists yet: the service has just been set up. */
  fresh: boolean
  /**
   * Ends the background work, counts the last hits and closes the database. Throws if the disk
   * refuses.
   */
  close(): Promise<void>
}

const CALLS_MAX = 200_000

/** Builds the whole service over `config.dataDir`, without listening. Throws DataError. */
export async function buildApp(config: Config, outside: Outside): Promise<App> {
  const { clock, monotonic, random, log } = outside
  const file = databaseFile(config.dataDir)
  const imageDir = join(config.dataDir, 'cdn', 'qr')

  const { lock, journal, remakeImages, fresh, hasher } = prepare(config, outside, imageDir)

  const [writerThread, lists, renderer, blocklist] = await Promise.all([
    Thread.start<Writes>(
      new Worker(new URL('./writer-thread.ts', import.meta.url)),
      { file, journal: journalFile(config.dataDir) },
      { batchMax: 1000, queueMax: CALLS_MAX },
    ),
    Thread.start<LinkLists>(
      new Worker(new URL('./reader-thread.ts', import.meta.url)),
      { file },
      { batchMax: 1, queueMax: CALLS_MAX },
    ),
    Thread.start<Renderer>(
      new Worker(new URL('./qr/renderer-thread.ts', import.meta.url)),
      { dir: imageDir },
      { batchMax: 1, queueMax: CALLS_MAX },
    ),
    Blocklist.open({
      files: config.blocklistFiles,
      ownHosts: [config.baseUrl, config.cdnUrl],
      log,
    }),
  ])

  const writer = new Writer<Writes>(writerThread)
  const db = openReadonly(file, { cacheKiB: 32_768 })
  const reads = new LinkReads(db)
  const cache = new LinkCache(reads, { max: config.linkCacheMax })
  const hits = new HitCounts(new HitReads(db), journal)
  const flusher = new HitFlusher({ journal, writer, flushMs: config.hitFlushMs, log })
  const addresses = new Addresses(config)
  const images = new QrImages({ renderer, dir: imageDir, addresses, log })
  const remake = remakeImages
    ? new Remake({ images, reads, lists, writer, baseUrl: config.baseUrl, log })
    : undefined
  const indexer = new SearchIndexer(writer)
  const plans = planLimits(config)
  const deps = {
    ...{ clock, monotonic, random, reads, lists, cache, hits, journal, addresses, blocklist },
    ...{ images, plans, hasher },
    accounts: new AccountStore(db),
    links: new LinkWriter({ writer, cache, images, indexer }),
    limiter: new RateLimiter({ plans, anonymous: anonymousBudgets(config), clock, monotonic }),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    address: new ClientAddress(config.trustedProxies),
    requestIds: new RequestIds(random),
    health: new Health(hits, writer),
  }

  const follow = follower({ ...deps, log, behindProxy: config.trustedProxies.length > 0 })
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
    .use(errorAnswers({ ...deps, log, refuseUnrouted }))
    .use(linkWriteRoutes(deps))
    .use(linkListRoutes(deps))
    .use(linkLookupRoutes(deps))
    .use(qrApiRoutes(deps))
    .use(qrRedirectRoutes(deps))
    .use(qrFileRoutes(deps))
    .use(statusRoutes(deps))
    .use(probeRoutes(deps))
    .use(redirectRoutes(follow))
    .use(openapiRoutes(config.baseUrl))

  /**
   * A path of the API with another method is charged like the path's own, and told which are
   * allowed.
   */
  function refuseUnrouted({ request, path, set }: Unrouted): never {
    const allowed = methodsOf(http.routes, path)
    if (allowed.length === 0) {
      if (path.startsWith('/api/')) refuseDuringMaintenance(deps)
      throw new AppError('path_not_found')
    }
    if (!/^\/(docs|cdn|-)?(\/|$)/.test(path)) {
      const budget = allowed.includes('POST') ? 'write' : 'read'
      const duringMaintenance = !path.startsWith('/api/')
      admit(deps, { request, server: http.server, set }, { budget, duringMaintenance })
    }
    throw new AppError('method_not_allowed', request.method, {
      headers: { allow: allowed.join(', ') },
    })
  }

  return {
    http: http as unknown as Elysia,
    fresh,
    async close() {
      indexer.close()
      await remake?.close()
      await blocklist.close()
      try {
        await flusher.close()
      } finally {
        await Promise.all([lists.close(), images.close()])
        db.close()
        // Last, because only a writing connection can fold the write-ahead log in as it closes.
        await writer.close({ drop: ['indexLinks'] })
        lock.release()
      }
    },
  }
}

/** Gets the data folder ready. The one time that this thread writes: nobody is served yet. */
function prepare(config: Config, { log, journalEntries }: Outside, imageDir: string) {
  const { dataDir, baseUrl } = config
  makeDataFolder(dataDir)
  const lock = FolderLock.claim(dataDir)
  try {
    const { db, accounts, hasher } = openDataFolder(dataDir)
    const journal = openJournal(db, dataDir, log, journalEntries)
    const remakeImages = retireStaleImages(new SettingStore(db), imageDir, baseUrl)
    const fresh = accounts.isEmpty()
    db.close()
    return { lock, journal, remakeImages, fresh, hasher }
  } catch (error) {
    lock.release()
    throw error
  }
}
