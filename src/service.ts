import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { KeyUses } from './accounts/keys.ts'
import type { PasswordFunctions } from './accounts/passwords.ts'
import { anonymousBudgets, planLimits } from './accounts/plans.ts'
import type { SecretHasher } from './accounts/secrets.ts'
import { AccountStore } from './accounts/store.ts'
import { TopLinks } from './analytics/top.ts'
import { OwnAddress } from './blocklist/own-address.ts'
import { Blocklist } from './blocklist/watch.ts'
import type { Config } from './config.ts'
import { openDashboard } from './dashboard/build.ts'
import { databaseFile, openReadonly } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { Writer } from './db/writer.ts'
import { HitFlusher } from './hits/flush.ts'
import { HitCounts, journalFile } from './hits/hits.ts'
import { BucketPruner, HitSeries } from './hits/series.ts'
import { HitReads } from './hits/store.ts'
import { ClientAddress } from './hot/client-address.ts'
import type { HitJournal } from './hot/journal.ts'
import { RequestBodies } from './http/body.ts'
import { RequestIds } from './http/context.ts'
import { RequestTally } from './http/requests.ts'
import { UnsentResponses } from './http/unsent.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import type { Code } from './lib/code.ts'
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
import { DelayedDeletion } from './links/delayed-deletion.ts'
import { LinkEffects } from './links/effects.ts'
import { KnownCodes } from './links/known-codes.ts'
import { PublicUrls } from './links/link.ts'
import { LinkPages } from './links/lists.ts'
import { PropertyReads } from './links/properties.ts'
import { Rankings } from './links/rankings.ts'
import { LinkReads } from './links/read.ts'
import { RuleCache } from './links/rules.ts'
import { SearchIndexer } from './links/search-index.ts'
import { LinkWriter } from './links/writer.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { Moderation, ModerationReads } from './moderation/moderation.ts'
import { prepare } from './prepare.ts'
import { QrImages } from './qr/images.ts'
import { Remake } from './qr/remake.ts'
import type { Renderer } from './qr/renderer.ts'
import { QrStore } from './qr/store.ts'
import { QrTrials } from './qr/trials.ts'
import { DataWatch } from './status/data-watch.ts'
import { Descriptors } from './status/descriptors.ts'
import { Health } from './status/health.ts'
import { Metrics, WriterWork } from './status/metrics.ts'
import { ThreadWatch } from './status/thread-watch.ts'
import { readVitals } from './status/vitals.ts'
import type { Reads } from './threads/reader.ts'
import type { Writes } from './threads/writer.ts'

type OpenWorker = (url: URL) => Worker

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
  /** Starts a thread. Default: a new Worker. */
  openWorker?: OpenWorker
  /** Lines that the log could not write. */
  logLinesDropped?: () => number
}

type Options = Outside & {
  /** The port of the HTTP server, once it listens. */
  ownPort: () => number | undefined
}

export type Service = Awaited<ReturnType<typeof openService>>

/** Opens what exists once per process, without listening. Throws DataError. */
export async function openService(config: Config, options: Options) {
  const { clock, monotonic, random } = options
  const log = limitLines(options.log, monotonic)
  const imageDir = join(config.dataDir, 'cdn', 'qr')
  const writerWork = new WriterWork()
  const prepared = prepare(config, { ...options, log, imageDir })
  const host = { log, openWorker: options.openWorker ?? ((url: URL) => new Worker(url)) }
  const { lock, journal, hasher, fresh, setupLink } = prepared
  const [threads, blocklist] = await Promise.all([
    startThreads({ config, host, imageDir, writerWork }),
    openBlocklist(config, log, options.ownPort),
  ])
  // The writer thread has the database open by now. Closing its last connection would merge the
  // whole write-ahead log that a crash left.
  prepared.db.close()
  const watch = new ThreadWatch({ threads, log })
  const dataWatch = new DataWatch({ dataDir: config.dataDir, journal, log })
  const isHanging = () => watch.isHanging('writer')
  const writer = new Writer<Writes>(threads.writer, { data: dataWatch, isHanging })
  const db = openReadonly(databaseFile(config.dataDir), { cacheKiB: 8192 })
  const base = { config, clock, monotonic, random, log, db, journal, hasher, writer, threads }
  const guards = openGuards({ ...base, addressesMax: options.addressesMax })
  const links = openLinks({ ...base, imageDir, blocklist, unsent: guards.unsent })
  const { hits, images, reads } = links
  const flusher = new HitFlusher({ journal, writer, clock, flushMs: config.hitFlushMs, log })
  const health = new Health({ hits, writer, threads, watch })
  const descriptors = new Descriptors({ log })
  const series = new HitSeries({ reader: threads.reader, counts: hits, clock })
  const deps = { ...base, ...guards, ...links, blocklist, lists: threads.reader, health, series }
  const rankings = new Rankings({ reader: threads.reader, monotonic })
  const dashboard = openDashboard({
    config,
    db,
    writer,
    shared: {
      ...deps,
      reader: threads.reader,
      top: new TopLinks({ reader: threads.reader, rankings }),
      rankings,
      vitals: () => readVitals({ ...deps, databaseFile: databaseFile(config.dataDir) }),
    },
    startPasswords: () => startThread<PasswordFunctions>(host, PASSWORDS),
  })
  const traffic = {
    tally: new RequestTally(),
    outcomes: { foundByHead: 0, notFound: 0, disabled: 0, expired: 0, limited: 0, failed: 0 },
    redirectSeconds: new Histogram(LATENCY_BOUNDS),
  }
  const metrics = new Metrics({
    ...deps,
    ...traffic,
    flusher,
    writerWork,
    watch,
    descriptors,
    databaseFile: databaseFile(config.dataDir),
    logLinesDropped: options.logLinesDropped ?? (() => 0),
  })
  const remake = prepared.remakeImages
    ? new Remake({ images, reads, lists: threads.reader, writer, baseUrl: config.baseUrl, log })
    : undefined
  const pruner = new BucketPruner({ writer, clock })
  const delayedDeletion = new DelayedDeletion({ db, links: links.links, clock, log })
  return {
    ...deps,
    ...traffic,
    lock,
    fresh,
    setupLink,
    dashboard,
    metrics,
    descriptors,
    flusher,
    remake,
    timers: [dataWatch, metrics, watch, links.indexer, links.moderation, pruner, delayedDeletion],
  }
}

interface Base {
  config: Config
  clock: Clock
  monotonic: MonotonicClock
  random: RandomBytes
  log: Log
  db: Database
  journal: HitJournal
  hasher: SecretHasher
  writer: Writer<Writes>
  threads: Threads
}

/** What admits or refuses a request: accounts, limits, maintenance, memory in flight. */
function openGuards(base: Base & { addressesMax: number | undefined }) {
  const { config, clock, monotonic, random, db, writer, addressesMax } = base
  const plans = planLimits(config)
  return {
    plans,
    accounts: new AccountStore(db),
    keyUses: new KeyUses(writer),
    limiter: new RateLimiter(
      RateLimiter.allocate({
        plans,
        anonymous: anonymousBudgets(config),
        pagesPerMinute: config.dashboardRequestsPerMinute,
        addressesMax,
      }),
      { clock, monotonic },
    ),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    address: new ClientAddress(config.trustedProxies),
    requestIds: new RequestIds(random),
    bodies: new RequestBodies(),
    unsent: new UnsentResponses(),
  }
}

interface LinkOptions extends Base {
  imageDir: string
  blocklist: Blocklist
  unsent: UnsentResponses
}

/** Links, their images and their hits. */
function openLinks(options: LinkOptions) {
  const { config, clock, monotonic, log, db, journal, writer, threads } = options
  const { imageDir, blocklist, unsent } = options
  const addresses = new PublicUrls(config)
  const reads = new LinkReads(db)
  const lookUps = new CountingReads(reads)
  const codes = new KnownCodes({ reads, reader: threads.reader })
  const cache = new LinkCache({ reads: lookUps, blocklist, codes, max: config.linkCacheMax })
  const qrStore = new QrStore(db)
  const images = new QrImages({
    renderer: threads.qr,
    dir: imageDir,
    addresses,
    reads,
    store: qrStore,
    log,
  })
  const indexer = new SearchIndexer(writer)
  const hits = new HitCounts(new HitReads(db), journal)
  const properties = new PropertyReads(db)
  const rules = new RuleCache({ properties, hits, blocklist })
  const effects = new LinkEffects({ cache, rules, images, indexer })
  const moderationReads = new ModerationReads(db)
  const requireRoom = (account: number) => unsent.requireRoom(account)
  return {
    addresses,
    reads,
    properties,
    rules,
    lookUps,
    cache,
    images,
    qrStore,
    qrTrials: new QrTrials({ command: OWN_COMMAND, text: addresses.short(LONGEST_CODE) }),
    indexer,
    hits,
    links: new LinkWriter({ writer, effects }),
    pages: new LinkPages(threads.reader, { requireRoom }),
    pace: new Pace({ bytesPerSecond: BULK_BYTES_PER_SECOND, monotonic }),
    moderation: new Moderation({ reads: moderationReads, writer, effects, blocklist, clock }),
  }
}

function openBlocklist(config: Config, log: Log, port: Options['ownPort']): Promise<Blocklist> {
  return Blocklist.open({
    files: config.blocklistFiles,
    thread: new URL('./threads/blocklist.ts', import.meta.url),
    ownHosts: [config.baseUrl, config.cdnUrl],
    ownAddress: new OwnAddress({ host: config.host, port }),
    log,
  })
}

/** Starts this program, compiled or not. */
const OWN_COMMAND = import.meta.dir.startsWith('/$bunfs/')
  ? [process.execPath]
  : [process.execPath, join(import.meta.dir, 'main.ts')]

const LONGEST_CODE = 'QWERTYUIOP0123456789' as Code

/** Calls that wait for one thread. */
const CALLS_MAX = 200_000

interface ThreadDescription {
  name: string
  url: URL
  settings: unknown
  options?: Partial<ThreadOptions>
}

const PASSWORDS: ThreadDescription = {
  name: 'passwords',
  url: new URL('./threads/passwords.ts', import.meta.url),
  settings: {},
}

interface ThreadHost {
  log: Log
  openWorker: OpenWorker
}

interface ThreadsOptions {
  config: Config
  host: ThreadHost
  imageDir: string
  writerWork: WriterWork
}

type Threads = Awaited<ReturnType<typeof startThreads>>

async function startThreads({ config, host, imageDir, writerWork }: ThreadsOptions) {
  const file = databaseFile(config.dataDir)
  const [writer, reader, qr] = await Promise.all([
    startThread<Writes>(host, {
      name: 'writer',
      url: new URL('./threads/writer.ts', import.meta.url),
      settings: { file, journal: journalFile(config.dataDir) },
      options: { batchMax: 1000, observe: writerWork.observe },
    }),
    startRestartingThread<Reads>(host, {
      name: 'reader',
      url: new URL('./threads/reader.ts', import.meta.url),
      settings: { file },
    }),
    startRestartingThread<Renderer>(host, {
      name: 'qr',
      url: new URL('./threads/qr.ts', import.meta.url),
      settings: { dir: imageDir },
    }),
  ])
  return { writer, reader, qr }
}

/** A thread whose end by a fault is logged. */
function startThread<Calls extends Functions<Calls>>(
  { log, openWorker }: ThreadHost,
  { name, url, settings, options }: ThreadDescription,
): Promise<Thread<Calls>> {
  return Thread.start<Calls>(openWorker(url), settings, {
    batchMax: 1,
    queueMax: CALLS_MAX,
    ...options,
    onDeath: (error) => {
      log.error('thread.ended', { thread: name }, error)
      options?.onDeath?.(error)
    },
  })
}

/** A thread without state, which is restarted when it ends. */
function startRestartingThread<Calls extends Functions<Calls>>(
  host: ThreadHost,
  thread: ThreadDescription,
): Promise<RestartingThread<Calls>> {
  return RestartingThread.start<Calls>(
    (onDeath) => startThread(host, { ...thread, options: { onDeath } }),
    { onRestart: () => host.log.info('thread.restarted', { thread: thread.name }) },
  )
}

/**
 * Stops background work, counts the last hits and closes the database. Images and password checks
 * in progress may then take `graceMs` more. Throws if the disk refuses.
 */
export async function closeService(service: Service, graceMs?: number): Promise<void> {
  const { timers, keyUses, dashboard, blocklist, images, remake, flusher } = service
  const { lists, db, writer, lock, log, qrTrials } = service
  for (const timer of timers) timer.close()
  qrTrials.close()
  await Promise.all([keyUses.close(), dashboard.close(), blocklist.close()])
  // These threads have the lowest priority: on a busy machine the data would wait for seconds.
  const background = Promise.all([images.close(), dashboard.deps.passwords.close()])
  try {
    await Promise.all([remake?.close(), flusher.close()])
  } finally {
    await lists.close()
    db.close()
    // Last, because only a writing connection can merge the write-ahead log when it closes.
    await writer.close({ drop: ['indexLinks', 'pruneBuckets'] })
    await (graceMs === undefined ? background : Promise.race([background, Bun.sleep(graceMs)]))
    lock.release()
    log.close()
  }
}
