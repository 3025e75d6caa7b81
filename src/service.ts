import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { KeyUses } from './accounts/keys.ts'
import type { SecretHasher } from './accounts/secrets.ts'
import { AccountStore } from './accounts/store.ts'
import { TopLinks } from './analytics/top.ts'
import { VisitDetails } from './analytics/visits.ts'
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
import { RequestBodies } from './http/body.ts'
import { RequestIds } from './http/context.ts'
import { RequestTally } from './http/requests.ts'
import { UnsentResponses } from './http/unsent.ts'
import type { Code } from './lib/code.ts'
import { Pace } from './limits/pace.ts'
import { AliasReads, AliasRules } from './links/aliases.ts'
import { BULK_BYTES_PER_SECOND } from './links/create.ts'
import { DelayedDeletion } from './links/delayed-deletion.ts'
import { DestinationReads } from './links/destination.ts'
import { LinkEffects } from './links/effects.ts'
import { KnownCodes } from './links/known-codes.ts'
import { PublicUrls } from './links/link.ts'
import { LinkPages } from './links/lists.ts'
import { PropertyReads } from './links/properties.ts'
import { LinkReads } from './links/read.ts'
import { HitLimits } from './links/rules.ts'
import { SearchIndexer } from './links/search-index.ts'
import { SharedPageReads } from './links/shared-pages.ts'
import { LinkWriter } from './links/writer.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { Moderation, ModerationReads } from './moderation/moderation.ts'
import { imageFolder } from './qr/files.ts'
import { QrImages } from './qr/images.ts'
import { Remake } from './qr/remake.ts'
import { QrStore } from './qr/store.ts'
import { QrTrials } from './qr/trials.ts'
import type { Redirecting } from './start-redirects.ts'
import { startPasswords, startThreads, startVisits, type Threads } from './start-threads.ts'
import { DataWatch } from './status/data-watch.ts'
import { Health } from './status/health.ts'
import { Metrics, WriterWork } from './status/metrics.ts'
import { ThreadWatch } from './status/thread-watch.ts'
import { readVitals } from './status/vitals.ts'
import type { ClusterSettings, Writes } from './threads/writer.ts'
import { VisitFlusher } from './visits/flush.ts'

export type Service = Awaited<ReturnType<typeof openService>>

/** Opens everything that exists once per process, except what redirects need. Throws DataError. */
export async function openService(redirecting: Redirecting) {
  const { clock, config, log, prepared, redirects } = redirecting
  const data = await openData(redirecting)
  const { threads, watch, dataWatch, cluster, writer, db } = data
  const { lock, hasher, fresh, setupLink } = prepared
  const base = { ...redirecting, db, hasher, writer, threads }
  const guards = openGuards(base)
  const links = openLinks({ ...base, ...guards })
  const { hits, images, reads, effects } = links
  const flusher = new HitFlusher({ ...base, flushMs: config.hitFlushMs })
  const visits = await openVisits(base)
  const allThreads = { ...threads, redirect: redirects, ...(visits && { visits: visits.thread }) }
  const health = new Health({ hits, writer, threads: allThreads, watch, cluster })
  const series = new HitSeries({ reader: threads.reader, counts: hits, clock })
  const visitDetails = new VisitDetails({
    reader: threads.reader,
    series,
    isOn: config.visitDetails,
    hasCountries: config.countryFile !== undefined || config.countryHeader !== undefined,
  })
  const tally = new RequestTally()
  const deps = { ...base, ...guards, ...links, health, series, visitDetails, tally, cluster }
  const dashboard = openDashboard({
    config,
    db,
    writer,
    shared: {
      ...deps,
      reader: threads.reader,
      top: new TopLinks({ reader: threads.reader, pages: links.pages }),
      vitals: () => readVitals({ ...deps, databaseFile: databaseFile(config.dataDir) }),
    },
    startPasswords: () => startPasswords(base),
  })
  const metrics = new Metrics({
    ...deps,
    lists: threads.reader,
    threads: allThreads,
    flusher,
    visits: visits?.flusher,
    writerWork: data.writerWork,
    watch,
    databaseFile: databaseFile(config.dataDir),
    logLinesDropped: redirecting.logLinesDropped ?? (() => 0),
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
    flusher,
    visits,
    remake,
    timers: [dataWatch, metrics, watch, links.indexer, pruner, delayedDeletion],
    otherChanges: data.ports && new OtherChanges({ port: data.ports.applied, effects }),
  }
}

/** The other threads on the data folder, and a connection to read it. */
async function openData(redirecting: Redirecting) {
  const { config, log, prepared } = redirecting
  const writerWork = new WriterWork()
  const ports = openClusterPorts(config, prepared.hostId)
  const threads = await startThreads({
    config,
    host: redirecting,
    writerWork,
    cluster: ports?.ofWriter,
  })
  // The writer thread has the database open by now. Closing its last connection would merge the
  // whole write-ahead log that a crash left.
  prepared.db.close()
  const watch = new ThreadWatch({ threads, log })
  const dataWatch = new DataWatch({ dataDir: config.dataDir, journal: prepared.journal, log })
  const isHanging = () => watch.isHanging('writer')
  const cluster = ports && new Cluster({ port: ports.state, log })
  const writer = new Writer<Writes>(threads.writer, { data: dataWatch, isHanging }, cluster)
  const db = openReadonly(databaseFile(config.dataDir), { cacheKiB: 8192 })
  return { ports, threads, watch, dataWatch, cluster, writer, writerWork, db }
}

/** The channels between the control thread and the writer thread of a host in a cluster. */
function openClusterPorts({ clusterUrl, hostName }: Config, host: string | undefined) {
  if (!clusterUrl || !host) return undefined
  const state = new MessageChannel()
  const applied = new MessageChannel()
  const ofWriter: ClusterSettings = {
    url: clusterUrl,
    host,
    name: hostName,
    state: state.port2,
    applied: applied.port2,
  }
  return { state: state.port1, applied: applied.port1, ofWriter }
}

/** The thread that counts details of redirects; undefined with VISIT_DETAILS=off. */
async function openVisits(base: Base) {
  const { config, redirects, time, prepared, writer, log, openWorker, visitFlushMs } = base
  const rings = redirects.visitRings
  if (!rings) return undefined
  const { countryFile, countryHeader } = config
  const settings = { rings, countryFile, countryHeader, time }
  const thread = await startVisits({ log, openWorker }, settings)
  const host = prepared.hostId ?? ''
  const flushMs = visitFlushMs
  return { thread, flusher: new VisitFlusher({ collector: thread, writer, host, log, flushMs }) }
}

interface Base extends Redirecting {
  db: Database
  hasher: SecretHasher
  writer: Writer<Writes>
  threads: Threads
}

/** Admission of requests: accounts, limits, maintenance, memory in flight. */
function openGuards(base: Base) {
  const { config, clock, random, db, writer } = base
  return {
    accounts: new AccountStore(db),
    keyUses: new KeyUses(writer),
    maintenance: new MaintenanceMode(new SettingStore(db), clock),
    address: new ClientAddress(config.trustedProxies),
    requestIds: new RequestIds(random),
    bodies: new RequestBodies(),
    unsent: new UnsentResponses(),
  }
}

interface LinkOptions extends Base {
  accounts: AccountStore
  unsent: UnsentResponses
}

/** Links, their images and their hits. */
function openLinks(options: LinkOptions) {
  const { config, clock, monotonic, log, db, journal, writer, threads } = options
  const { versions, redirects, blocklist, unsent, accounts } = options
  const addresses = new PublicUrls(config)
  const reads = new LinkReads(db)
  const codes = new KnownCodes({
    reads,
    reader: threads.reader,
    onComplete: (memory) => redirects.setCodes(memory),
  })
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
  const hitLimits = new HitLimits(hits)
  const effects = new LinkEffects({ versions, codes, hitLimits, images, indexer })
  const requireRoom = (account: number) => unsent.requireRoom(account)
  return {
    addresses,
    reads,
    properties,
    aliases: new AliasReads(db),
    aliasRules: new AliasRules({ ...config, accounts }),
    hitLimits,
    destinations: new DestinationReads(db, blocklist),
    codes,
    effects,
    images,
    qrStore,
    sharedPages: new SharedPageReads(db),
    qrTrials: new QrTrials({ command: OWN_COMMAND, text: addresses.short(LONGEST_CODE) }),
    indexer,
    hits,
    links: new LinkWriter({ writer, effects }),
    pages: new LinkPages(threads.reader, { requireRoom }),
    pace: new Pace({ bytesPerSecond: BULK_BYTES_PER_SECOND, monotonic }),
    moderation: new Moderation({ reads: new ModerationReads(db), writer, effects, clock }),
  }
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
  const { threads, db, writer, lock, log, qrTrials, redirects } = service
  const { cluster, otherChanges, journal, visits } = service
  for (const timer of timers) timer.close()
  qrTrials.close()
  await Promise.all([keyUses.close(), dashboard.deletion.close(), blocklist.close()])
  const unlessHitsCanWait = (error: unknown) => {
    const reason = cluster?.problem
    if (!reason) throw error
    log.warn('hits.waiting', { hits: journal.pending, reason })
  }
  // These threads have the lowest priority: on a busy machine the data would wait for seconds.
  const background = Promise.all([images.close(), dashboard.passwords.close()])
  try {
    await redirects.close()
    await Promise.all([
      remake?.close(),
      flusher.close().catch(unlessHitsCanWait),
      visits?.flusher.close(),
    ])
  } finally {
    await Promise.all([threads.reader.close(), visits?.thread.close()])
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
