import type { Database } from 'bun:sqlite'
import { KeyUses } from './accounts/key-uses.ts'
import { type PasswordFunctions, Passwords } from './accounts/passwords.ts'
import { DomainMap } from './addresses/map.ts'
import { AliasRules } from './addresses/names.ts'
import { UnknownPaths } from './addresses/unknown-paths.ts'
import { PublicUrls } from './addresses/urls.ts'
import { TopLinks } from './analytics/top.ts'
import { VisitDetails } from './analytics/visits.ts'
import { OwnAddress } from './blocklist/own-address.ts'
import { StoredHosts } from './blocklist/stored-hosts.ts'
import { Blocklist } from './blocklist/watch.ts'
import type { Fetch } from './certificates/acme.ts'
import { Authority } from './certificates/authority.ts'
import { OwnFiles } from './certificates/own-files.ts'
import type { CertificateSource } from './certificates/status.ts'
import { applyOtherChanges, Cluster } from './cluster/cluster.ts'
import type { Config } from './config.ts'
import { ASSET_PATHS, LOGO_PATH } from './dashboard/assets.ts'
import { AccessTable } from './dashboard/auth/access.ts'
import { openDashboard } from './dashboard/deps.ts'
import { ROUTES } from './dashboard/route-list.ts'
import { type Data, subjects } from './data.ts'
import { openForService, type ServiceFolder } from './data-folder.ts'
import type { EventReader } from './db/events.ts'
import { databaseFile, openReadonly } from './db/open.ts'
import { eventsOfOthers, openSubjects } from './db/subject.ts'
import { Writer } from './db/writer.ts'
import { HitFlusher } from './hits/flush.ts'
import { HitCounts, journalFile } from './hits/hits.ts'
import { BucketPruner } from './hits/pruner.ts'
import { HitSeries } from './hits/series.ts'
import { ClientAddress } from './hot/client-address.ts'
import { CodeVersions } from './hot/code-versions.ts'
import { RequestBodies } from './http/body.ts'
import { RequestTally } from './http/requests.ts'
import { UnsentResponses } from './http/unsent.ts'
import type { Clock, MonotonicClock } from './lib/clock.ts'
import { hostAddress } from './lib/local-address.ts'
import type { Log } from './lib/log.ts'
import { limitLines } from './lib/log-limit.ts'
import type { RandomBytes } from './lib/random.ts'
import type { NamedFunctions } from './lib/thread.ts'
import { ThreadStarter } from './lib/thread-starter.ts'
import { RateLimiter } from './limits/budgets.ts'
import { DelayedDeletion } from './links/deletion.ts'
import { DestinationReads, HitLimits } from './links/destination.ts'
import { DestinationPolicy } from './links/destination-policy.ts'
import { cacheReader, indexReader } from './links/events.ts'
import { KnownCodes } from './links/known-codes.ts'
import { SearchIndexer } from './links/search-index.ts'
import { LinkWriter } from './links/writer.ts'
import { LinkPages } from './lists/lists.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { Outgoing } from './outgoing/thread.ts'
import { imageFolder } from './qr/files.ts'
import { imageReader, QrImages } from './qr/images.ts'
import type { ReadabilityChecks } from './qr/readability.ts'
import { Remake } from './qr/remake.ts'
import type { Renderer } from './qr/renderer.ts'
import { type Control, RedirectThreads } from './redirect/threads.ts'
import type { Brand } from './redirect/visitor-page.ts'
import { DataWatch } from './status/data-watch.ts'
import { Health } from './status/health.ts'
import { Metrics, WriterWork } from './status/metrics.ts'
import { ThreadWatch } from './status/thread-watch.ts'
import { readVitals } from './status/vitals.ts'
import type { ClusterSettings } from './threads/writer.ts'
import { visitHeaders } from './visits/classify.ts'
import type { CollectorFunctions, CollectorSettings } from './visits/collector.ts'
import { VisitFlusher } from './visits/flush.ts'
import { Webhooks } from './webhooks/control.ts'

/** Dependencies on the outside world: tests pass their own. */
export interface Outside {
  clock: Clock
  monotonic: MonotonicClock
  random: RandomBytes
  log: Log
  /** Entries of the hit journal if it is created. */
  journalEntries?: number
  /** Maximum number of addresses that the limiter counts at once. */
  addressesMax?: number
  /** `clock` and `monotonic` for other threads: see `clocksIn`. Default: the machine's. */
  time?: SharedArrayBuffer
  /** How often details of visits are written. */
  visitFlushMs?: number | undefined
  /** Starts a thread. Default: a new Worker. */
  openWorker?: (url: URL) => Worker
  /** Requests to a certificate authority. Default: that of the runtime. */
  fetch?: Fetch
  /** Lines that the log could not write. */
  logLinesDropped?: () => number
}

export type Service = Awaited<ReturnType<typeof openService>>

/**
 * Opens everything that exists once per process. Redirects are answered before the rest has
 * started; all other requests wait for `control`. Throws DataError, and ListenError if the port
 * cannot be opened.
 */
export async function openService(config: Config, outside: Outside, control: Promise<Control>) {
  const { clock, monotonic, random } = outside
  const log = limitLines(outside.log, monotonic)
  const openWorker = outside.openWorker ?? ((url: URL) => new Worker(url))
  const start = new ThreadStarter(log, (name) => openWorker(threadFile(name)))
  const folder = await openForService(config, { ...outside, log })
  const { journal, hasher, lock, setupLink } = folder
  const base: Base = { config, outside, log, start, folder }
  const front = await openFront(base, control).catch((error) => {
    folder.db.close()
    lock.release()
    throw error
  })
  const { redirects } = front
  const storage = await openStorage(base, front)
  const { data, writer, cluster, watch } = storage
  const guards = openGuards(base, storage)
  const links = openLinks(base, { front, storage })
  const visits = await openVisits(base, { redirects, data })
  const sending = openOutgoing(base, { redirects, storage, hits: links.hits })
  const threads = { ...storage.threads, redirect: redirects }
  const health = new Health({ hits: links.hits, writer, threads, watch, cluster })
  const series = new HitSeries({ data, counts: links.hits, clock })
  const own = { clock, monotonic, random, log, hasher, journal, series, health, visits }
  const parts = { config, ...own, ...sending }
  const visitDetails = new VisitDetails({
    data,
    series,
    isOn: config.visitDetails,
    hasCountries: config.countryFile !== undefined || config.countryHeader !== undefined,
  })
  const passwords = new Passwords({
    start: () => start.once<PasswordFunctions>('passwords', {}),
  })
  const service = { ...parts, ...front, ...storage, ...guards, ...links, visitDetails, passwords }
  const dashboard = openDashboard({
    config,
    access: new AccessTable(ROUTES),
    common: {
      ...service,
      top: new TopLinks({ data, pages: links.pages, clock }),
      vitals: () => readVitals({ ...service, databaseFile: databaseFile(config.dataDir) }),
    },
  })
  const flusher = new HitFlusher({ journal, data, clock, flushMs: config.hitFlushMs, log })
  const metrics = new Metrics({
    ...service,
    // The service is ready without details of visits.
    threads: { ...threads, ...(visits && { visits: visits.thread }) },
    flusher,
    visits: visits?.flusher,
    databaseFile: databaseFile(config.dataDir),
    logLinesDropped: outside.logLinesDropped ?? (() => 0),
  })
  const remake = folder.remakeImages
    ? new Remake({ ...links, data, baseUrl: config.baseUrl, log })
    : undefined
  const background = [
    metrics,
    watch,
    storage.dataWatch,
    links.indexer,
    new BucketPruner({ data, clock }),
    new DelayedDeletion({ db: front.db, links: links.links, clock, log }),
  ]
  const otherChanges = storage.ports?.applied
  if (otherChanges) applyOtherChanges(otherChanges, eventsOfOthers(subjects, storage.readers))
  return {
    ...service,
    lock,
    setupLink,
    dashboard,
    metrics,
    flusher,
    remake,
    background,
    otherChanges,
  }
}

/** What the pages of short links show of whoever runs the service. */
export const brandOf = ({ operatorName, operatorLogo }: Config): Brand => ({
  name: operatorName,
  logo: operatorLogo === undefined ? undefined : LOGO_PATH,
  font: ASSET_PATHS.font,
})

interface Base {
  config: Config
  outside: Outside
  log: Log
  start: ThreadStarter
  folder: ServiceFolder
}

/**
 * The public port, and the control thread's connection to the database: from now on redirects are
 * answered. Throws ListenError.
 */
async function openFront({ config, outside, log, start, folder }: Base, control: Promise<Control>) {
  const { clock, monotonic, random, time, addressesMax } = outside
  const { plans, anonymous } = config
  const limiter = new RateLimiter(
    RateLimiter.allocate({
      plans,
      anonymous,
      pagesPerMinute: config.dashboardRequestsPerMinute,
      addressesMax,
    }),
    { clock, monotonic },
  )
  const versions = CodeVersions.allocate(random)
  const db = openReadonly(databaseFile(config.dataDir), { cacheKiB: 8192 })
  const domains = new DomainMap(db, versions, config)
  const certificates = openCertificates(config, { domains, outside, log })
  const blocklist = await Blocklist.open({
    files: config.blocklistFiles,
    thread: threadFile('blocklist'),
    ownHosts: [config.baseUrl, config.cdnUrl],
    ownAddress: new OwnAddress({
      host: config.host,
      ports: () => [redirects.port, redirects.httpsPort],
    }),
    stored: new StoredHosts(db, versions),
    domains,
    // The cached destinations have passed the old lists.
    onChange: () => void redirects.setLists().then(() => versions.changeAll()),
    log,
  })
  const redirects: RedirectThreads = new RedirectThreads({
    count: config.redirectThreads,
    start,
    log,
    settings: {
      databaseFile: databaseFile(config.dataDir),
      cacheMax: config.linkCacheMax,
      trustedProxies: config.trustedProxies,
      baseUrl: config.baseUrl,
      rootUrl: config.rootUrl,
      notFoundUrl: config.notFoundUrl,
      countryHeader: config.countryHeader,
      hasCountryFile: config.countryFile !== undefined,
      brand: brandOf(config),
      logsRequests: config.logRequests === 'all',
      versions: versions.memory,
      time,
    },
    visitHeaders: config.visitDetails ? visitHeaders(config.countryHeader) : undefined,
    limiter,
    journal: folder.journal,
    blocklist,
    control,
    pair: certificates?.pair,
  })
  try {
    const { host: hostname, port, https } = config
    await redirects.listen({ hostname, port, httpsPort: https?.port })
  } catch (error) {
    await redirects.close()
    db.close()
    throw error
  }
  certificates?.start(redirects)
  return { db, plans, limiter, versions, domains, certificates, blocklist, redirects }
}

/** Undefined without https. Throws ConfigError. */
function openCertificates(
  { https, dataDir }: Config,
  { domains, outside, log }: { domains: DomainMap; outside: Outside; log: Log },
): CertificateSource | undefined {
  const hosts = () => domains.hosts
  if (https?.files) return new OwnFiles({ ...outside, log, hosts, files: https.files })
  const acme = https?.acme
  return acme && new Authority({ ...outside, log, hosts, acme, dataDir })
}

type Storage = Awaited<ReturnType<typeof openStorage>>

/** The threads on the data folder. */
async function openStorage({ config, log, start, folder }: Base, { db }: { db: Database }) {
  const { dataDir } = config
  const file = databaseFile(dataDir)
  const writerWork = new WriterWork()
  const ports = openClusterPorts(config, folder.host)
  const settings = { file, journal: journalFile(dataDir), cluster: ports?.ofWriter }
  const reader = start.lazily<NamedFunctions>('reader', {
    prepare: () => ({ settings: { file } }),
  })
  const qr = start.lazily<Renderer>('qr', {
    prepare: () => ({ settings: { dir: imageFolder(dataDir), fonts: config.captionFonts } }),
  })
  const ofWriter = await start.once<NamedFunctions>('writer', settings, {
    batchMax: 1000,
    observe: writerWork.observe,
    transfer: ports ? [ports.ofWriter.state, ports.ofWriter.applied] : [],
  })
  // The writer thread has the database open by now. Closing its last connection would merge the
  // whole write-ahead log that a crash left.
  folder.db.close()
  const threads = { writer: ofWriter, reader, qr }
  const watch = new ThreadWatch({ threads, log })
  const dataWatch = new DataWatch({ dataDir, journal: folder.journal, log })
  const isHanging = () => watch.isHanging('writer')
  const cluster = ports && new Cluster({ port: ports.state, log })
  const writer = new Writer(ofWriter, { data: dataWatch, isHanging }, cluster)
  const readers: EventReader[] = []
  const data = openSubjects(subjects, {
    db,
    callReader: (name, args, options) => reader.call(name, args as never, options),
    callWriter: (name, args, options) => writer.call(name, args, options),
    whenAllApplied: (name, options) => writer.whenAllApplied(name, options),
    readers,
  })
  const ofThreads = { threads, reader, qr, watch, dataWatch, cluster, writer, writerWork }
  return { data, readers, ports, ...ofThreads }
}

/** The channels between the control thread and the writer thread of a host in a cluster. */
function openClusterPorts(config: Config, host: { id: string; boot: string } | undefined) {
  const { clusterUrl, hostName } = config
  if (!clusterUrl || !host) return undefined
  const state = new MessageChannel()
  const applied = new MessageChannel()
  const ofWriter: ClusterSettings = {
    url: clusterUrl,
    host: host.id,
    boot: host.boot,
    name: hostName,
    address: hostAddress(config),
    state: state.port2,
    applied: applied.port2,
  }
  return { state: state.port1, applied: applied.port1, ofWriter }
}

/** The thread that counts details of redirects; undefined with VISIT_DETAILS=off. */
async function openVisits(
  { config, outside, log, start, folder }: Base,
  { redirects, data }: { redirects: RedirectThreads; data: Data },
) {
  const rings = redirects.visitRings
  if (!rings) return undefined
  const { countryFile, countryHeader } = config
  const settings: CollectorSettings = { rings, countryFile, countryHeader, time: outside.time }
  const thread = await start.again<CollectorFunctions>('visits', {
    prepare: () => ({ settings }),
  })
  const host = folder.host?.id ?? ''
  const flushMs = outside.visitFlushMs
  return { thread, flusher: new VisitFlusher({ collector: thread, data, host, log, flushMs }) }
}

interface OutgoingParts {
  redirects: RedirectThreads
  storage: Storage
  hits: HitCounts
}

/** The thread that sends requests to the outside. It starts with its first task. */
function openOutgoing(base: Base, { redirects, storage, hits }: OutgoingParts) {
  const { config, outside, log, start, folder } = base
  const { dataDir, baseUrl, outgoingHosts, host, checkDestinations } = config
  const { data, cluster, readers } = storage
  const id = folder.host?.id ?? ''
  const isFirst = () => cluster?.isFirst(id) ?? true
  const webhooks: Webhooks = new Webhooks({
    ...outside,
    data,
    hits,
    hasher: folder.hasher,
    log,
    outgoingHosts,
    wake: () => outgoing.wake('webhooks'),
    host: id,
    others: () => cluster?.state?.hosts.map((other) => other.id) ?? [],
    isFirst,
  })
  const background = { background: true }
  const outgoingCalls = {
    ...webhooks.calls,
    'checks.isMine': isFirst,
    'checks.schedule': (links: Parameters<typeof data.checks.schedule>[0]) =>
      data.checks.schedule(links, background),
    'checks.record': (results: Parameters<typeof data.checks.record>[0]) =>
      data.checks.record(results, background),
  }
  const outgoing: Outgoing = new Outgoing({
    start,
    log,
    calls: outgoingCalls,
    settings: () => ({
      file: databaseFile(dataDir),
      baseUrl,
      hosts: outgoingHosts,
      own: { host, ports: [redirects.port, redirects.httpsPort] },
      time: outside.time,
    }),
  })
  if (checkDestinations) outgoing.wake('checks')
  readers.push(webhooks.reader)
  if (data.webhooks.isAny()) webhooks.wake()
  return { outgoing, webhooks }
}

/** Admission of requests: accounts, maintenance, memory in flight, counters. */
const openGuards = ({ config, outside }: Base, { data }: Storage) => ({
  keyUses: new KeyUses(data),
  maintenance: new MaintenanceMode(data.settings, outside.clock),
  address: new ClientAddress(config.trustedProxies),
  bodies: new RequestBodies(),
  unsent: new UnsentResponses(),
  tally: new RequestTally(),
})

interface LinkParts {
  front: Awaited<ReturnType<typeof openFront>>
  storage: Storage
}

/** Links, their images and their hits. */
function openLinks({ config, outside, log, folder, start }: Base, { front, storage }: LinkParts) {
  const { data, readers, writer, qr } = storage
  const { db, versions, domains, redirects, blocklist } = front
  const addresses = new PublicUrls({ ...config, domains })
  const aliasRules = new AliasRules({ ...config, data })
  const codes = new KnownCodes({
    data,
    reserved: () => aliasRules.reserved,
    onComplete: (memory) => redirects.setCodes(memory),
  })
  const images = new QrImages({
    renderer: qr,
    startChecks: () => start.once<ReadabilityChecks>('logos', {}),
    dir: imageFolder(config.dataDir),
    addresses,
    data,
    log,
  })
  const indexer = new SearchIndexer({ data, writer })
  const hits = new HitCounts(data.hits, folder.journal)
  const hitLimits = new HitLimits(hits)
  readers.push(
    cacheReader({ versions, codes, hitLimits }),
    imageReader(images),
    indexReader(indexer),
  )
  return {
    addresses,
    aliasRules,
    unknownPaths: new UnknownPaths({
      data,
      clock: outside.clock,
      isOn: config.visitDetails,
      isReserved: aliasRules.isReserved,
      flushMs: outside.visitFlushMs,
    }),
    destinationPolicy: new DestinationPolicy({ ...config, data }),
    hitLimits,
    destinations: new DestinationReads(db, blocklist),
    codes,
    images,
    indexer,
    hits,
    links: new LinkWriter(data),
    pages: new LinkPages(data),
  }
}

/** The module of a thread. Threads of one kind have a number behind its name. */
const threadFile = (name: string): URL =>
  new URL(`./threads/${name.replace(/-\d+$/, '')}.ts`, import.meta.url)
