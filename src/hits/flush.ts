import type { HitJournal } from '../hot/journal.ts'
import type { Clock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { type Caller, messageOf } from '../lib/thread.ts'
import type { HitWrites } from './store.ts'

/** Hits in one commit: bounds how long other writes wait behind them. */
const STRETCH_MAX = 8192

interface FlusherOptions {
  journal: HitJournal
  writer: Caller<Pick<HitWrites, 'countHits'>>
  /** Tells the hour that hits count for: that of their flush. */
  clock: Clock
  flushMs: number
  log: Log
}

/**
 * Moves hits from the journal to the database, every `flushMs`. A disk that refuses leaves them in
 * the journal.
 */
export class HitFlusher {
  /** How long each flush took that had hits to count. */
  readonly seconds = new Histogram(LATENCY_BOUNDS)
  /** Flushes that the disk refused. */
  failures = 0
  readonly #options: FlusherOptions
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  /** The last attempt was refused, and the log says so: the hits wait in the journal. */
  #failing = false

  constructor(options: FlusherOptions) {
    this.#options = options
    this.#schedule()
  }

  /** Commits everything appended before this call. Throws if the disk refuses. */
  async flush(): Promise<void> {
    while (this.#running) await this.#running
    this.#running = this.#drain()
    try {
      await this.#running
    } finally {
      this.#running = undefined
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.flush()
  }

  async #drain(): Promise<void> {
    const { journal, writer, clock, log } = this.#options
    // Redirects go on meanwhile: what they append after this line is the next flush's.
    let rest = journal.pending
    if (rest === 0) return
    const start = performance.now()
    while (rest > 0) {
      const length = Math.min(rest, journal.head - journal.tail, STRETCH_MAX)
      const end = journal.tail + length
      const lost = await writer.call('countHits', { end, now: clock() })
      if (lost > 0) log.error('hits.lost', { hits: lost, reason: 'the journal was cut short' })
      journal.release(end)
      rest -= length
    }
    this.seconds.observe((performance.now() - start) / 1000)
  }

  #schedule(): void {
    const { flushMs } = this.#options
    this.#timer = setTimeout(
      () => void this.#tick().then(() => this.#timer && this.#schedule()),
      flushMs,
    )
  }

  async #tick(): Promise<void> {
    const { log, journal } = this.#options
    try {
      await this.flush()
      if (this.#failing) log.info('hits.flush_recovered')
      this.#failing = false
    } catch (error) {
      this.failures++
      if (!this.#failing) {
        log.error('hits.flush_failed', { pending: journal.pending }, messageOf(error))
      }
      this.#failing = true
    }
  }
}
