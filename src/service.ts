import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { KeyUses } from './accounts/keys.ts'
import { anonymousBudgets, planLimits } from './accounts/plans.ts'
import type { SecretHasher } from './accounts/secrets.ts'
import { SharedStore } from './accounts/shared-store.ts'
import { AccountStore } from './accounts/store.ts'
import { TopLinks } from './analytics/top.ts'
import { OwnAddress } from './blocklist/own-address.ts'
import { Blocklist } from './blocklist/watch.ts'
import { Cluster, OtherChanges } from './cluster/cluster.ts'
import type { Config } from './config.ts'
import { openDashboard } from './dashboard/build.ts'
import { databaseFile, openReadonly } from './db/open.ts'
import { SettingStore } from './db/settings.ts'
import { Writer } from './db/writer.ts'
import { HitFlusher } from './hits/flush.ts'
import { HitCounts } from './hits/hits.ts'
import { BucketPruner, HitSeries } from './hits/series.ts'
import { HitReads } from './hits/store.ts'
import { ClientAddress } from './hot/client-address.ts'
import { CodeVersions } from './hot/code-versions.ts'
import type { HitJournal } from './hot/journal.ts'
import { RequestBodies } from './http/body.ts'
import { RequestIds } from './http/context.ts'
import { RequestTally } from './http/requests.ts'
import { UnsentResponses } from './http/unsent.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import type { Code } from './lib/code.ts'
import type { Log } from './lib/log.ts'
import { limitLines } from './lib/log-limit.ts'
import type { RandomBytes } from './lib/random.ts'
import { Valkey } from './lib/valkey.ts'
import { ApiLimits } from './limits/api-limits.ts'
import { RateLimiter } from './limits/budgets.ts'
import { Pace } from './limits/pace.ts'
import { BULK_BYTES_PER_SECOND } from './links/create.ts'
import { DelayedDeletion } from './links/delayed-deletion.ts'
import { DestinationReads } from './links/destination.ts'
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
import { imageFolder } from './qr/files.ts'
import { QrImages } from './qr/images.ts'
import { Remake } from './qr/remake.ts'
import { QrStore } from './qr/store.ts'
import { QrTrials } from './qr/trials.ts'
import { RedirectThreads } from './redirect/threads.ts'
import { type OpenWorker, startPasswords, startThreads, type Threads } from './start-threads.ts'
import { DataWatch } from './status/data-watch.ts'
import { Descriptors } from './status/descriptors.ts'
import { Health } from './status/health.ts'
import { Metrics, WriterWork } from './status/metrics.ts'
import { ThreadWatch } from './status/thread-watch.ts'
import { readVitals } from './status/vitals.ts'
import type { ClusterSettings, Writes } from './threads/writer.ts'

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
  /** How long a request waits for the limits that hosts share. */
  sharedLimitsTimeoutMs?: number | undefined
  /** `clock` and `monotonic` for other threads: see `clocksIn`. Default: the machine's. */
  time?: SharedArrayBuffer
  /** Starts a thread. Default: a new Worker. */
  openWorker?: OpenWorker
  /** Lines that the log could not write. */
  logLinesDropped?: () => number
}

type Options = Outside & {
  /** The port of the HTTP server, once it listens. */
  ownPort: () => number | undefined
  /** Answers what the redirect threads pass on. */
  answer: (request: Request) => Response | Promise<Response>
}

export type Service = Awaited<ReturnType<typeof openService>>

/** Opens what exists once per process, without listening. Throws DataError. */
export async function openService(config: Config, options: Options) {
  const { clock, monotonic } = options
  const log = limitLines(options.log, monotonic)
  const data = await openData(config, { ...options, log })
  const { prepared, host, threads, blocklist, watch, dataWatch, cluster, writer, db } = data
  const { lock, journal, hasher, fresh, setupLink } = prepared
  const base = { ...options, ...host, config, log, db, journal, hasher, writer, threads }
  const guards = openGuards(base)
  await guards.valkey?.tried
  const links = openLinks({ ...base, ...guards, blocklist })
  const { hits, images, reads, effects } = links
  const flusher = new HitFlusher({ journal, writer, clock, flushMs: config.hitFlushMs, log })
  const allThreads = { ...threads, redirect: links.redirects }
  const health = new Health({ hits, writer, threads: allThreads, watch, cluster })
  const descriptors = new Descriptors({ log })
  const series = new HitSeries({ reader: threads.reader, counts: hits, clock })
  const tally = new RequestTally()
  const deps = { ...base, ...guards, ...links, blocklist, health, series, tally, cluster }
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
    sharedStore: guards.shared,
    startPasswords: () => startPasswords(host),
  })
  const metrics = new Metrics({
    ...deps,
    lists: threads.reader,
    threads: allThreads,
    flusher,
    writerWork: data.writerWork,
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
    lock,
    fresh,
    setupLink,
    dashboard,
    metrics,
    descriptors,
    flusher,
    remake,
    timers: [dataWatch, metrics, watch, links.indexer, links.moderation, pruner, delayedDeletion],
    otherChanges: data.ports && new OtherChanges({ port: data.ports.applied, effects }),
  }
}

/** The data folder, the threads on it, and the blocklist. */
async function openData(config: Config, options: Options) {
  const { log } = options
  const writerWork = new WriterWork()
  const prepared = await prepare(config, options)
  const host = { log, openWorker: options.openWorker ?? ((url: URL) => new Worker(url)) }
  const ports = openClusterPorts(config, prepared.hostId)
  const [threads, blocklist] = await Promise.all([
    startThreads({ config, host, writerWork, cluster: ports?.ofWriter }),
    openBlocklist(config, log, options.ownPort),
  ])
  // The writer thread has the database open by now. Closing its last connection would merge the
  // whole write-ahead log that a crash left.
  prepared.db.close()
  const watch = new ThreadWatch({ threads, log })
  const dataWatch = new DataWatch({ dataDir: config.dataDir, journal: prepared.journal, log })
  const isHanging = () => watch.isHanging('writer')
  const cluster = ports && new Cluster({ port: ports.state, log })
  const writer = new Writer<Writes>(threads.writer, { data: dataWatch, isHanging }, cluster)
  const db = openReadonly(databaseFile(config.dataDir), { cacheKiB: 8192 })
  return {
    prepared,
    host,
    ports,
    threads,
    blocklist,
    watch,
    dataWatch,
    cluster,
    writer,
    writerWork,
    db,
  }
}

/** The channels between the control thread and the writer thread of a host in a cluster. */
function openClusterPorts({ clusterUrl }: Config, host: string | undefined) {
  if (!clusterUrl || !host) return undefined
  const state = new MessageChannel()
  const applied = new MessageChannel()
  const ofWriter: ClusterSettings = {
    url: clusterUrl,
    host,
    state: state.port2,
    applied: applied.port2,
  }
  return { state: state.port1, applied: applied.port1, ofWriter }
}

interface Base extends Options {
  config: Config
  openWorker: OpenWorker
  db: Database
  journal: HitJournal
  hasher: SecretHasher
  writer: Writer<Writes>
  threads: Threads
}

/** What admits or refuses a request: accounts, limits, maintenance, memory in flight. */
function openGuards(base: Base) {
  const { config, clock, monotonic, random, log, db, hasher, writer, addressesMax } = base
  const timeoutMs = base.sharedLimitsTimeoutMs
  const { baseUrl, valkeyUrl: url } = config
  const plans = planLimits(config)
  const limiter = new RateLimiter(
    RateLimiter.allocate({
      plans,
      anonymous: anonymousBudgets(config),
      pagesPerMinute: config.dashboardRequestsPerMinute,
      addressesMax,
    }),
    { clock, monotonic },
  )
  const valkey = url === undefined ? undefined : new Valkey({ url, log, timeoutMs })
  const shared = valkey && new SharedStore({ valkey, hasher, baseUrl })
  return {
    plans,
    accounts: new AccountStore(db),
    keyUses: new KeyUses(writer),
    limiter,
    valkey,
    shared,
    limits: new ApiLimits({ limiter, shared, clock, monotonic }),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    address: new ClientAddress(config.trustedProxies),
    requestIds: new RequestIds(random),
    bodies: new RequestBodies(),
    unsent: new UnsentResponses(),
  }
}

interface LinkOptions extends Base {
  blocklist: Blocklist
  unsent: UnsentResponses
  limiter: RateLimiter
}

/** Links, their images and their hits. */
function openLinks(options: LinkOptions) {
  const { config, clock, monotonic, random, log, db, journal, writer, threads } = options
  const { blocklist, unsent } = options
  const addresses = new PublicUrls(config)
  const reads = new LinkReads(db)
  const versions = CodeVersions.allocate(random)
  const codes: KnownCodes = new KnownCodes({
    reads,
    reader: threads.reader,
    onComplete: (memory) => redirects.setCodes(memory),
  })
  const redirects: RedirectThreads = openRedirects(options, { versions, codes })
  const qrStore = new QrStore(db)
  const images = new QrImages({
    renderer: threads.qr,
    dir: imageFolder(config.dataDir),
    addresses,
    reads,
    store: qrStore,
    log,
  })
  const indexer = new SearchIndexer(writer)
  const hits = new HitCounts(new HitReads(db), journal)
  const properties = new PropertyReads(db)
  const rules = new RuleCache({ properties, hits, blocklist })
  const effects = new LinkEffects({ versions, codes, rules, images, indexer })
  const moderationReads = new ModerationReads(db)
  const requireRoom = (account: number) => unsent.requireRoom(account)
  return {
    addresses,
    reads,
    properties,
    rules,
    destinations: new DestinationReads(db, blocklist),
    codes,
    redirects,
    effects,
    images,
    qrStore,
    qrTrials: new QrTrials({ command: OWN_COMMAND, text: addresses.short(LONGEST_CODE) }),
    indexer,
    hits,
    links: new LinkWriter({ writer, effects }),
    pages: new LinkPages(threads.reader, { requireRoom }),
    pace: new Pace({ bytesPerSecond: BULK_BYTES_PER_SECOND, monotonic }),
    moderation: new Moderation({
      reads: moderationReads,
      writer,
      effects,
      blocklist,
      publishLists: () => redirects.setLists(),
      clock,
    }),
  }
}

/** The redirect threads, which start when the port is opened. */
function openRedirects(
  options: LinkOptions,
  { versions, codes }: { versions: CodeVersions; codes: KnownCodes },
): RedirectThreads {
  const { config, log, journal, limiter, blocklist, openWorker, answer, time } = options
  return new RedirectThreads({
    count: config.redirectThreads,
    openWorker: () => openWorker(new URL('./threads/redirect.ts', import.meta.url)),
    log,
    settings: {
      databaseFile: databaseFile(config.dataDir),
      cacheMax: config.linkCacheMax,
      trustedProxies: config.trustedProxies,
      notFoundUrl: config.notFoundUrl,
      logsRequests: config.logRequests === 'all',
      versions: versions.memory,
      time,
    },
    limiter,
    journal,
    blocklist,
    codes,
    answer,
  })
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

/**
 * Stops background work, counts the last hits and closes the database. Images and password checks
 * in progress may then take `graceMs` more. Throws if the disk refuses.
 */
export async function closeService(service: Service, graceMs?: number): Promise<void> {
  const { timers, keyUses, dashboard, blocklist, images, remake, flusher } = service
  const { threads, db, writer, lock, log, qrTrials, redirects, valkey } = service
  const { cluster, otherChanges } = service
  for (const timer of timers) timer.close()
  qrTrials.close()
  valkey?.close()
  await Promise.all([keyUses.close(), dashboard.deletion.close(), blocklist.close()])
  // These threads have the lowest priority: on a busy machine the data would wait for seconds.
  const background = Promise.all([images.close(), dashboard.passwords.close()])
  try {
    await redirects.close()
    await Promise.all([remake?.close(), flusher.close()])
  } finally {
    await threads.reader.close()
    db.close()
    // Last, because only a writing connection can merge the write-ahead log when it closes.
    await writer.close({ drop: ['indexLinks', 'pruneBuckets'] })
    cluster?.close()
    otherChanges?.close()
    await (graceMs === undefined ? background : Promise.race([background, Bun.sleep(graceMs)]))
    lock.release()
    log.close()
  }
}
