import type { Totals, totals } from '../accounts/totals.ts'
import type { Operations } from '../db/subject.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import { expose } from './exposition.ts'
import { FAMILIES, type MetricsSources, type Scrape } from './families.ts'
import { readDisk, readProcess } from './vitals.ts'

/** Batches of the writer thread, observed by the calling side. */
export class WriterWork {
  readonly batchSize = new Histogram([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
  readonly seconds = new Histogram(LATENCY_BOUNDS)
  readonly observe = (calls: number, seconds: number): void => {
    this.batchSize.observe(calls)
    this.seconds.observe(seconds)
  }
}

interface MetricsDeps extends MetricsSources {
  databaseFile: string
  data: MetricsSources['data'] & { totals: Operations<typeof totals> }
}

/** The page /-/metrics. */
export class Metrics {
  readonly #deps: MetricsDeps
  readonly #delay = new EventLoopDelay()
  /** The position at the start: positions of a journal continue from one process to the next. */
  readonly #firstPosition: number
  #totals: Totals | undefined
  #isReadingTotals = false

  constructor(deps: MetricsDeps) {
    this.#deps = deps
    this.#firstPosition = deps.journal.head
  }

  close(): void {
    this.#delay.close()
  }

  /** The whole page, in Prometheus's text format. Waits for no thread and throws nothing. */
  text(): string {
    const page = expose(FAMILIES, this.#read())
    void this.#refreshTotals()
    return page
  }

  #read(): Scrape {
    const { journal, databaseFile } = this.#deps
    const flushed = journal.tail - this.#firstPosition
    return {
      ...this.#deps,
      redirects: this.#deps.redirects.totals,
      eventLoopDelay: this.#delay.seconds,
      hits: { appended: flushed + journal.pending, flushed },
      disk: readDisk(databaseFile),
      process: readProcess(),
      totals: this.#totals,
    }
  }

  /** Reads totals in the background: the page must not wait for a database that hangs. */
  async #refreshTotals(): Promise<void> {
    if (this.#isReadingTotals) return
    this.#isReadingTotals = true
    // If the thread fails, the page keeps the last totals.
    this.#totals = await this.#deps.data.totals.read().catch(() => this.#totals)
    this.#isReadingTotals = false
  }
}

const TIMER_MS = 20

/**
 * How late a timer of the control thread fires: for that long, it answered nothing. A stall appears
 * as one long delay.
 */
class EventLoopDelay {
  readonly seconds = new Histogram([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5])
  readonly #timer = setInterval(() => this.#observe(), TIMER_MS).unref()
  #expectedAt = performance.now() + TIMER_MS

  close(): void {
    clearInterval(this.#timer)
  }

  #observe(): void {
    const now = performance.now()
    this.seconds.observe(Math.max(0, now - this.#expectedAt) / 1000)
    this.#expectedAt = now + TIMER_MS
  }
}
