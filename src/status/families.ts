import type { Totals } from '../accounts/totals.ts'
import type { Blocklist } from '../blocklist/watch.ts'
import type { CertificateSource } from '../certificates/status.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Operations } from '../db/subject.ts'
import type { HitFlusher } from '../hits/flush.ts'
import type { HitJournal } from '../hot/journal.ts'
import type { RequestTally } from '../http/requests.ts'
import type { Histogram } from '../lib/histogram.ts'
import { VERSION } from '../lib/version.ts'
import type { LimiterWindow, RateLimiter } from '../limits/budgets.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import { SAMPLED_ONE_IN } from '../redirect/observe.ts'
import type { RedirectThreads } from '../redirect/threads.ts'
import type { VisitFlusher } from '../visits/flush.ts'
import type { Webhooks } from '../webhooks/control.ts'
import type { webhooks } from '../webhooks/store.ts'
import { familiesOf, type Sample, samples } from './exposition.ts'
import type { Health } from './health.ts'
import type { ThreadWatch } from './thread-watch.ts'
import type { readDisk, readProcess } from './vitals.ts'

/** Objects of the service that a scrape reads. */
export interface MetricsSources {
  health: Pick<Health, 'isReady'>
  writer: { readonly failing: boolean }
  bodies: { readonly bytesInFlight: number }
  unsent: { readonly bytes: number }
  maintenance: Pick<MaintenanceMode, 'until'>
  logLinesDropped: () => number
  tally: Pick<RequestTally, 'counts' | 'times'>
  redirects: Pick<RedirectThreads, 'totals'>
  limiter: Pick<RateLimiter, 'windows'>
  journal: Pick<HitJournal, 'head' | 'tail' | 'pending' | 'overflow' | 'entries'>
  flusher: Pick<HitFlusher, 'seconds' | 'failures'>
  /** Undefined with VISIT_DETAILS=off. */
  visits: Pick<VisitFlusher, 'state'> | undefined
  threads: Readonly<Record<string, { readonly pending: number; readonly isDead: boolean }>>
  watch: Pick<ThreadWatch, 'isHanging'>
  writerWork: { readonly batchSize: Histogram; readonly seconds: Histogram }
  blocklist: Pick<Blocklist, 'state'>
  webhooks: Pick<Webhooks, 'attempts'>
  data: { webhooks: Pick<Operations<typeof webhooks>, 'totals'> }
  /** Absent without https. */
  certificates?: Pick<CertificateSource, 'status'> | undefined
  /** Absent where this host is alone. */
  cluster?: Pick<Cluster, 'state' | 'late' | 'contactMs' | 'problem'> | undefined
}

export interface Scrape extends Omit<MetricsSources, 'redirects'> {
  redirects: RedirectThreads['totals']
  /** Values in seconds. */
  eventLoopDelay: Histogram
  /** Since the start of the process. */
  hits: { appended: number; flushed: number }
  disk: ReturnType<typeof readDisk>
  process: ReturnType<typeof readProcess>
  /** Undefined until the reader thread has answered, after the first scrape. */
  totals: Totals | undefined
}

const { counter, gauge, histogram } = familiesOf<Scrape>()

/** Every metric family of /-/metrics. docs/operations/monitoring.md explains each. */
export const FAMILIES = {
  hopcode_build_info: gauge('Always 1; the labels say what runs.', () => [
    { labels: { version: VERSION, bun: Bun.version }, value: 1 },
  ]),
  hopcode_ready: gauge('1 while /-/ready answers 200.', ({ health }) => health.isReady()),
  hopcode_writes_failing: gauge(
    '1 while writes are refused or hang: the last one was refused, or the writer thread has ' +
      'ended or has not answered for 5 seconds.',
    ({ writer }) => writer.failing,
  ),
  hopcode_request_body_bytes: gauge(
    'Request bodies in memory, received and being received.',
    ({ bodies }) => bodies.bytesInFlight,
  ),
  hopcode_unsent_response_bytes: gauge(
    'Responses over 64 KiB that are not sent yet, and memory of the redirect threads for ' +
      'responses that clients do not read and requests that wait.',
    ({ unsent, redirects }) => unsent.bytes + redirects.bytesHeld,
  ),
  hopcode_maintenance: gauge('1 during planned maintenance.', ({ maintenance }) =>
    isOn(maintenance),
  ),
  hopcode_log_lines_dropped_total: counter(
    'Log lines that standard error did not accept.',
    ({ logLinesDropped }) => logLinesDropped(),
  ),
  hopcode_event_loop_delay_seconds: histogram(
    'How late a timer of the control thread fires, every 20 ms.',
    ({ eventLoopDelay }) => eventLoopDelay,
  ),

  hopcode_http_requests_total: counter(
    'Responses by route pattern. Refusals of short links (/:code) count under GET.',
    (scrape) => [...countRequests(scrape), ...countRedirects(scrape)],
  ),
  hopcode_http_request_duration_seconds: histogram(
    'From arrival to response, of every request except short links.',
    ({ tally }) =>
      [...tally.times()].map(({ route, method, seconds }) => ({
        labels: { route, method },
        value: seconds,
      })),
  ),
  hopcode_redirects_total: counter('Requests for short links, by outcome.', ({ redirects, hits }) =>
    samples('outcome', {
      found: hits.appended + redirects.foundByHead,
      not_found: redirects.notFound,
      disabled: redirects.disabled,
      expired: redirects.expired,
      protected: redirects.protected,
      limited: redirects.limited,
      prefetch: redirects.prefetch,
      preview: redirects.preview,
      failed: redirects.failed,
    }),
  ),
  hopcode_redirect_duration_seconds: histogram(
    `Time in the handler of a short link. Sampled: one request in ${SAMPLED_ONE_IN}.`,
    ({ redirects }) => redirects.seconds,
  ),
  hopcode_link_cache_entries: gauge(
    'Codes in the memory of the redirect threads: known ones and unknown ones.',
    ({ redirects: { known, unknown } }) => samples('kind', { known, unknown }),
  ),
  hopcode_link_cache_misses_total: counter(
    'Codes not in memory, looked up in the database, by result.',
    ({ redirects: { foundInDatabase: known, notInDatabase: unknown } }) =>
      samples('kind', { known, unknown }),
  ),
  hopcode_limiter_callers: gauge('Callers with a request in the last minute.', eachWindow('size')),
  hopcode_limiter_memory_bytes: gauge(
    'Memory of the windows, at its highest.',
    eachWindow('bytes'),
  ),
  hopcode_limiter_refusals_total: counter(
    'Requests over the budget of their caller.',
    eachWindow('refused'),
  ),
  hopcode_limiter_overflow_total: counter(
    'Requests of callers for whom no window was left because there are too many callers.',
    eachWindow('overflowed'),
  ),
  hopcode_limiter_uncounted_total: counter(
    'Requests that passed without being counted because the windows are full.',
    eachWindow('uncounted'),
  ),
  hopcode_limiter_memory_refusals_total: counter(
    'Requests under the budget for which the memory of the windows was full.',
    eachWindow('arenaRefused'),
  ),
  hopcode_limiter_resets_total: counter(
    'Parts of windows that were emptied because a thread ended while it changed them.',
    eachWindow('resets'),
  ),

  hopcode_hits_appended_total: counter(
    'Hits recorded: one per redirect.',
    ({ hits }) => hits.appended,
  ),
  hopcode_hits_flushed_total: counter(
    'Hits that are counted in the database.',
    ({ hits }) => hits.flushed,
  ),
  hopcode_hits_pending: gauge('Hits that wait to be counted.', ({ journal }) => journal.pending),
  hopcode_hits_overflow: gauge(
    'Hits beyond a full journal: in memory only, lost if the process is killed.',
    ({ journal }) => journal.overflow,
  ),
  hopcode_hits_journal_fill_ratio: gauge(
    'How full the journal is, 0 to 1.',
    ({ journal: { head, tail, entries } }) => (head - tail) / entries,
  ),
  hopcode_hits_flush_duration_seconds: histogram(
    'Time to move the pending hits of the journal to the database.',
    ({ flusher }) => flusher.seconds,
  ),
  hopcode_hits_flush_failures_total: counter(
    'Flushes that the disk refused; the hits stay in the journal.',
    ({ flusher }) => flusher.failures,
  ),

  hopcode_visit_details_total: counter(
    'Hits by what is known of their visitors; observed: how many were read for that.',
    ({ visits }) => {
      if (!visits?.state) return undefined
      const { recorded, observed, skipped, declined } = visits.state
      return samples('result', { recorded, observed, skipped, declined })
    },
  ),
  hopcode_visit_details_lag_seconds: gauge(
    'The longest time between two readings of details since the last second.',
    ({ visits }) => visits?.state?.lagSeconds,
  ),

  hopcode_thread_running: gauge(
    '1 while the thread runs. A writer that has ended needs a restart of the service.',
    eachThread(({ isDead }) => !isDead),
  ),
  hopcode_thread_hanging: gauge(
    '1 while a call to the thread takes more than 5 seconds.',
    eachThread((_, isHanging) => isHanging),
  ),
  hopcode_thread_calls_pending: gauge(
    'Calls to a thread that are not answered yet.',
    eachThread(({ pending }) => pending),
  ),
  hopcode_writer_batch_calls: histogram(
    'Writes committed together; the count is of batches.',
    ({ writerWork }) => writerWork.batchSize,
  ),
  hopcode_writer_commit_duration_seconds: histogram(
    'From sending a batch to the writer thread until its answer.',
    ({ writerWork }) => writerWork.seconds,
  ),

  hopcode_database_size_bytes: gauge('Size of the database file.', ({ disk }) => disk.database),
  hopcode_wal_size_bytes: gauge(
    'Size of the write-ahead log beside the database.',
    ({ disk }) => disk.log,
  ),
  hopcode_disk_size_bytes: gauge('Size of the disk under DATA_DIR.', ({ disk }) => disk.size),
  hopcode_disk_available_bytes: gauge(
    'Room left for this process on the disk under DATA_DIR.',
    ({ disk }) => disk.free,
  ),
  hopcode_qr_images_on_demand: gauge(
    '1 while less than 10 % of the blocks or inodes of the disk are free: new QR images are ' +
      'rendered on demand instead of stored.',
    ({ disk }) => !disk.hasImageRoom,
  ),

  hopcode_accounts: gauge('Accounts by plan, as of the previous scrape.', ({ totals }) =>
    totals?.plans.map(({ plan, accounts }) => ({ labels: { plan }, value: accounts })),
  ),
  hopcode_links: gauge(
    'Codes held by accounts of a plan, as of the previous scrape.',
    ({ totals }) => totals?.plans.map(({ plan, links }) => ({ labels: { plan }, value: links })),
  ),
  hopcode_schema_version: gauge(
    'Migrations applied to the database.',
    ({ totals }) => totals?.schemaVersion,
  ),

  hopcode_blocklist_hosts: gauge(
    'Active hosts of all lists.',
    ({ blocklist }) => blocklist.state().entries,
  ),
  hopcode_blocklist_files: gauge(
    'Lists in BLOCKLIST_FILES.',
    ({ blocklist }) => blocklist.state().files.length,
  ),
  hopcode_blocklist_files_failing: gauge(
    'Lists of which an older copy, or none, is active.',
    ({ blocklist }) => blocklist.state().files.filter(({ error }) => error !== null).length,
  ),
  hopcode_blocklist_loaded_timestamp_seconds: gauge(
    'When a list was last loaded, as Unix time; 0 for never.',
    ({ blocklist }) => (blocklist.state().loadedAt ?? 0) / 1000,
  ),

  hopcode_cluster_following: gauge(
    '1 while this host follows the log of its cluster: /-/ready needs it.',
    ({ cluster }) => cluster && cluster.problem === undefined,
  ),
  hopcode_cluster_contact_age_seconds: gauge(
    'Time since PostgreSQL answered; more than 2 means not ready.',
    ({ cluster }) => cluster && cluster.contactMs / 1000,
  ),
  hopcode_cluster_applied_entry: gauge(
    'The last entry of the log that this host has applied.',
    ({ cluster }) => cluster?.state?.applied,
  ),
  hopcode_cluster_lag_entries: gauge(
    'Entries of the log that this host has not applied yet.',
    ({ cluster }) => cluster?.state && cluster.state.head - cluster.state.applied,
  ),
  hopcode_cluster_other_hosts: gauge(
    'Other hosts of the cluster, live or not.',
    ({ cluster }) => cluster?.state && countHosts(cluster.state.hosts),
  ),
  hopcode_cluster_late_total: counter(
    'Changes that were answered before all live hosts had applied them, after 250 ms.',
    ({ cluster }) => cluster?.late,
  ),
  hopcode_cluster_comparisons_total: counter(
    'Comparisons of all rows with those of the other hosts that have ended.',
    ({ cluster }) => cluster?.state?.comparisons,
  ),
  hopcode_cluster_log_entries: gauge(
    'Entries that PostgreSQL keeps.',
    ({ cluster }) => cluster?.state?.log?.entries,
  ),
  hopcode_cluster_log_bytes: gauge(
    'Size of the log on the disk of PostgreSQL.',
    ({ cluster }) => cluster?.state?.log?.bytes,
  ),

  hopcode_process_resident_memory_bytes: gauge(
    'Resident memory of all threads.',
    ({ process: { memory } }) => memory?.rss,
  ),
  hopcode_process_heap_bytes: gauge(
    'JavaScript heap of the control thread, without large arrays, buffers and texts.',
    // Not `heapUsed`: that also counts memory outside the heap, resident or not.
    ({ process: { memory } }) => memory?.heapTotal,
  ),
  hopcode_process_cpu_seconds_total: counter(
    'Processor time of all threads, by mode.',
    ({ process: { cpu } }) => samples('mode', { user: cpu.user / 1e6, system: cpu.system / 1e6 }),
  ),
  hopcode_process_start_time_seconds: gauge(
    'When the process began, as Unix time.',
    () => Math.round(performance.timeOrigin) / 1000,
  ),
  hopcode_process_open_fds: gauge(
    'File descriptors open: connections and files.',
    ({ process }) => process.descriptorsOpen,
  ),
  hopcode_process_max_fds: gauge(
    'Maximum number of file descriptors.',
    ({ process }) => process.descriptorsMax,
  ),
  hopcode_descriptors_exhausted: gauge(
    '1 while connections have used up their file descriptors, or had within the last minute.',
    ({ redirects }) => redirects.areDescriptorsExhausted,
  ),
  hopcode_tls_handshakes_total: counter(
    'Handshakes of connections for https, by result; timeout: not complete after 10 s.',
    ({ redirects, certificates }) =>
      certificates &&
      samples('result', {
        ok: redirects.handshakes,
        failed: redirects.handshakesFailed,
        timeout: redirects.handshakesLate,
      }),
  ),
  hopcode_certificate_expires_timestamp_seconds: gauge(
    'When the certificate expires, as Unix time; 0 without one.',
    ({ certificates }) => certificates && (certificates.status().until ?? 0) / 1000,
  ),
  hopcode_certificate_lifetime_seconds: gauge(
    'How long the certificate is valid, from its first to its last second.',
    ({ certificates }) => {
      const { from, until } = certificates?.status() ?? {}
      return from !== undefined && until !== undefined ? (until - from) / 1000 : undefined
    },
  ),
  hopcode_certificate_names: gauge(
    'Hosts of the service that the certificate has, and hosts that wait for one.',
    ({ certificates }) => {
      if (!certificates) return undefined
      const { names } = certificates.status()
      const active = names.filter(({ isActive }) => isActive).length
      return samples('state', { active, waiting: names.length - active })
    },
  ),
  hopcode_certificate_orders_total: counter(
    'Orders at the certificate authority, by result.',
    ({ certificates }) =>
      certificates?.status().source === 'acme'
        ? samples('result', certificates.status().orders)
        : undefined,
  ),
  hopcode_webhooks: gauge('Webhooks of all accounts, by state.', ({ data }) => {
    const { active, failing, disabled } = data.webhooks.totals()
    return samples('state', { active, failing, disabled })
  }),
  hopcode_webhook_deliveries_queued: gauge(
    'Deliveries that wait, those of disabled webhooks included.',
    ({ data }) => data.webhooks.totals().queued,
  ),
  hopcode_webhook_attempts_total: counter(
    'Requests to webhooks that this host has sent, by result.',
    ({ webhooks }) => samples('result', webhooks.attempts),
  ),
  hopcode_connections_ended_total: counter(
    'Connections that were closed because there were too many, or too much memory was in use.',
    ({ redirects }) => redirects.closed,
  ),
} as const

function countRequests({ tally }: Scrape): Sample[] {
  return [...tally.counts()].map(({ route, method, status, count }) => ({
    labels: { route, method, status },
    value: count,
  }))
}

function countRedirects({ redirects, hits }: Scrape): Sample[] {
  const answers = [
    ['GET', 302, hits.appended],
    ['HEAD', 302, redirects.foundByHead],
    ['GET', 200, redirects.preview],
    ['GET', 404, redirects.notFound],
    ['GET', 410, redirects.disabled + redirects.expired],
    ['GET', 429, redirects.limited],
    ['GET', 500, redirects.failed],
    ['GET', 503, redirects.prefetch],
  ] as const
  return answers.map(([method, status, value]) => ({
    labels: { route: '/:code', method, status },
    value,
  }))
}

function countHosts(hosts: readonly { isLive: boolean }[]): Sample[] {
  const live = hosts.filter(({ isLive }) => isLive).length
  return samples('state', { live, away: hosts.length - live })
}

function eachWindow(figure: keyof LimiterWindow['window']) {
  return ({ limiter }: Scrape): Sample[] =>
    limiter.windows().map(({ callers, budget, window }) => ({
      labels: { callers, budget },
      value: window[figure],
    }))
}

function eachThread(
  read: (thread: { isDead: boolean; pending: number }, isHanging: boolean) => number | boolean,
) {
  return ({ threads, watch }: Scrape): Sample[] =>
    Object.entries(threads).map(([thread, state]) => ({
      labels: { thread },
      value: read(state, watch.isHanging(thread)),
    }))
}

function isOn(maintenance: MetricsSources['maintenance']): boolean {
  try {
    return maintenance.until() !== undefined
  } catch {
    return false
  }
}
