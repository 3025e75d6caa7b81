import type { Blocklist } from '../blocklist/watch.ts'
import type { HitFlusher } from '../hits/flush.ts'
import type { HitJournal } from '../hot/journal.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Caller } from '../lib/thread.ts'
import { VERSION } from '../lib/version.ts'
import type { MaintenanceMode } from '../maintenance/mode.ts'
import { EventLoopDelay } from './event-loop-delay.ts'
import { Exposition } from './exposition.ts'
import type { Health } from './health.ts'
import { writeDisk, writeProcess } from './process.ts'
import type { StatusReads, Totals } from './store.ts'
import { type TrafficDeps, writeTraffic } from './traffic.ts'

/** What the writer thread did, filled by its calling side. */
export class WriterWork {
  readonly batchSize = new Histogram([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
  readonly seconds = new Histogram(LATENCY_BOUNDS)
  readonly observe = (calls: number, seconds: number): void => {
    this.batchSize.observe(calls)
    this.seconds.observe(seconds)
  }
}

export interface MetricsDeps extends TrafficDeps {
  databaseFile: string
  journal: HitJournal
  flusher: HitFlusher
  writer: { readonly failing: boolean }
  writerWork: WriterWork
  threads: Readonly<Record<string, { readonly pending: number; readonly isDead: boolean }>>
  watch: { isHanging(thread: string): boolean }
  descriptors: { readonly areExhausted: boolean; readonly ended: number }
  lists: Caller<StatusReads>
  blocklist: Blocklist
  maintenance: MaintenanceMode
  health: Health
  bodies: { readonly bytesInFlight: number }
  unsent: { readonly bytes: number }
  logLinesDropped: () => number
}

/** Everything that the service tells of itself to those who run it. */
export class Metrics {
  readonly #deps: MetricsDeps
  readonly #delay = new EventLoopDelay()
  /** Where counting began: a journal's positions go on from one process to the next. */
  readonly #firstPosition: number
  #totals: Totals | undefined
  #isAsking = false

  constructor(deps: MetricsDeps) {
    this.#deps = deps
    this.#firstPosition = deps.journal.head
    this.#refreshTotals()
  }

  close(): void {
    this.#delay.close()
  }

  /** The whole page, in Prometheus's text format. Waits for nothing and throws nothing. */
  text(): string {
    const out = new Exposition()
    this.#writeService(out)
    writeTraffic(out, this.#deps, this.#hitsAppended())
    this.#writeHits(out)
    this.#writeThreads(out)
    writeDisk(out, this.#deps.databaseFile)
    this.#writeTotals(out)
    this.#writeBlocklist(out)
    writeProcess(out)
    this.#writeDescriptors(out)
    this.#refreshTotals()
    return out.toString()
  }

  #writeService(out: Exposition): void {
    const { health, writer, maintenance, logLinesDropped, bodies, unsent } = this.#deps
    out
      .gauge('hopcode_build_info', 'Always 1; the labels say what runs.', [
        { labels: { version: VERSION, bun: Bun.version }, value: 1 },
      ])
      .gauge('hopcode_ready', '1 while /-/ready says so.', Number(health.isReady()))
      .gauge(
        'hopcode_writes_failing',
        '1 while writes are refused or hang: the last one was refused, or the writer thread has ' +
          'ended or has not answered for 5 seconds.',
        Number(writer.failing),
      )
      .gauge(
        'hopcode_request_body_bytes',
        'Request bodies in memory, received and being received.',
        bodies.bytesInFlight,
      )
      .gauge(
        'hopcode_unsent_response_bytes',
        'Responses over 64 KiB in memory that are not sent yet.',
        unsent.bytes,
      )
      .gauge('hopcode_maintenance', '1 during planned maintenance.', Number(isOn(maintenance)))
      .counter(
        'hopcode_log_lines_dropped_total',
        'Log lines that standard error did not take.',
        logLinesDropped(),
      )
      .histogram(
        'hopcode_event_loop_delay_seconds',
        'How late a timer of the HTTP thread fires, every 20 ms.',
        this.#delay.seconds,
      )
  }

  #writeHits(out: Exposition): void {
    const { journal, flusher } = this.#deps
    const inRing = journal.head - journal.tail
    out
      .counter(
        'hopcode_hits_appended_total',
        'Hits recorded: one a redirect.',
        this.#hitsAppended(),
      )
      .counter(
        'hopcode_hits_flushed_total',
        'Hits that are counted in the database.',
        journal.tail - this.#firstPosition,
      )
      .gauge('hopcode_hits_pending', 'Hits that wait to be counted.', journal.pending)
      .gauge(
        'hopcode_hits_overflow',
        'Hits beyond a full journal: in memory alone, lost if the process is killed.',
        journal.pending - inRing,
      )
      .gauge(
        'hopcode_hits_journal_fill_ratio',
        'How full the journal is, 0 to 1.',
        inRing / journal.entries,
      )
      .histogram(
        'hopcode_hits_flush_duration_seconds',
        'Moving what waited in the journal to the database.',
        flusher.seconds,
      )
      .counter(
        'hopcode_hits_flush_failures_total',
        'Flushes that the disk refused; the hits stay in the journal.',
        flusher.failures,
      )
  }

  #writeThreads(out: Exposition): void {
    const { threads, writerWork, watch } = this.#deps
    const each = (value: (thread: (typeof threads)[string], name: string) => number) =>
      Object.entries(threads).map(([thread, its]) => ({
        labels: { thread },
        value: value(its, thread),
      }))
    out
      .gauge(
        'hopcode_thread_running',
        '1 while the thread runs. A writer that has ended comes back with a restart alone.',
        each(({ isDead }) => Number(!isDead)),
      )
      .gauge(
        'hopcode_thread_hanging',
        '1 while a call has been with the thread for more than 5 seconds.',
        each((_, name) => Number(watch.isHanging(name))),
      )
      .gauge(
        'hopcode_thread_calls_pending',
        'Calls that wait for a thread or are with it.',
        each(({ pending }) => pending),
      )
      .histogram(
        'hopcode_writer_batch_calls',
        'Writes committed together; the count is of batches.',
        writerWork.batchSize,
      )
      .histogram(
        'hopcode_writer_commit_duration_seconds',
        'A batch on its way to the writer thread, committed, and back.',
        writerWork.seconds,
      )
  }

  #writeTotals(out: Exposition): void {
    if (!this.#totals) return
    const { plans, schemaVersion } = this.#totals
    out
      .gauge(
        'hopcode_accounts',
        'Accounts by plan, as of the scrape before.',
        plans.map(({ plan, accounts }) => ({ labels: { plan }, value: accounts })),
      )
      .gauge(
        'hopcode_links',
        'Codes held by accounts of a plan, as of the scrape before.',
        plans.map(({ plan, links }) => ({ labels: { plan }, value: links })),
      )
      .gauge('hopcode_schema_version', 'Migrations that the database has had.', schemaVersion)
  }

  #writeBlocklist(out: Exposition): void {
    const { entries, loadedAt, files } = this.#deps.blocklist.state()
    out
      .gauge('hopcode_blocklist_hosts', 'Hosts in force, of all lists.', entries)
      .gauge('hopcode_blocklist_files', 'Lists in BLOCKLIST_FILES.', files.length)
      .gauge(
        'hopcode_blocklist_files_failing',
        'Lists of which an older copy, or none, is in force.',
        files.filter(({ error }) => error !== null).length,
      )
      .gauge(
        'hopcode_blocklist_loaded_timestamp_seconds',
        'When a list was last loaded, as Unix time; 0 for never.',
        (loadedAt ?? 0) / 1000,
      )
  }

  #writeDescriptors(out: Exposition): void {
    const { areExhausted, ended } = this.#deps.descriptors
    out
      .gauge(
        'hopcode_descriptors_exhausted',
        '1 while file descriptors are used up, or were within the last minute.',
        Number(areExhausted),
      )
      .counter(
        'hopcode_connections_ended_total',
        'Quiet connections that were ended to free their file descriptors.',
        ended,
      )
  }

  #hitsAppended(): number {
    const { journal } = this.#deps
    return journal.tail - this.#firstPosition + journal.pending
  }

  /** Never waited for: a page about a service in trouble must not hang on its database. */
  #refreshTotals(): void {
    if (this.#isAsking) return
    this.#isAsking = true
    this.#deps.lists
      .call('totals', null)
      .then((totals) => {
        this.#totals = totals
      })
      // The page goes on with the totals it has.
      .catch(() => {})
      .finally(() => {
        this.#isAsking = false
      })
  }
}

function isOn(maintenance: MaintenanceMode): boolean {
  try {
    return maintenance.until() !== undefined
  } catch {
    return false
  }
}
