import type { Operations } from '../db/subject.ts'
import type { HitJournal } from '../hot/journal.ts'
import type { Clock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { hits } from './subject.ts'

/** Maximum interval of collecting hits of other threads while the journal is full. */
const COLLECT_MS = 250
/** Hits per commit: bounds how long other writes wait behind it. */
const RANGE_MAX = 8192

interface FlusherOptions {
  journal: HitJournal
  data: { hits: Pick<Operations<typeof hits>, 'count'> }
  /** Hits belong to the hour of their flush. */
  clock: Clock
  flushMs: number
  log: Log
}

/**
 * Moves hits from the journal to the database every `flushMs`. Each range of the journal is
 * committed together with its end position, so that no hit is counted twice. While the disk
 * refuses, hits stay in the journal.
 */
export class HitFlusher {
  /** Duration of each flush with at least one hit. */
  readonly seconds = new Histogram(LATENCY_BOUNDS)
  /** Flushes that the disk refused. */
  failures = 0
  readonly #options: FlusherOptions
  readonly #collector: Timer
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  /** The last flush failed, and the log reports it. */
  #failing = false

  constructor(options: FlusherOptions) {
    this.#options = options
    this.#collector = setInterval(() => options.journal.collect(), COLLECT_MS)
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
    clearInterval(this.#collector)
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.flush()
  }

  async #drain(): Promise<void> {
    const { journal, data, clock, log } = this.#options
    // Redirects continue meanwhile: the next flush counts what they append after this line.
    let rest = journal.pending
    if (rest === 0) return
    const start = performance.now()
    while (rest > 0) {
      const length = Math.min(rest, journal.head - journal.tail, RANGE_MAX)
      // The next entry is incomplete: the next flush counts the hits after it.
      if (length === 0) break
      const end = journal.tail + length
      const lost = await data.hits.count({ end, now: clock() })
      if (lost > 0) log.error('hits.lost', { hits: lost, reason: 'the journal was cut short' })
      journal.release(end)
      rest -= length
    }
    this.seconds.observe((performance.now() - start) / 1000)
  }

  #schedule(): void {
    const { flushMs } = this.#options
    this.#timer = setTimeout(
      () => void this.#flushAndLog().then(() => this.#timer && this.#schedule()),
      flushMs,
    )
  }

  async #flushAndLog(): Promise<void> {
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
