import type { Operations } from '../db/subject.ts'
import type { HitJournal } from '../hot/journal.ts'
import type { Clock } from '../lib/clock.ts'
import { Histogram, LATENCY_BOUNDS } from '../lib/histogram.ts'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { hits } from './subject.ts'

/** Maximum interval of collecting hits of other threads while the journal is full. */
const COLLECT_MS = 250
/** Hits per commit. The number of their links is bounded, too, because a link takes longer. */
const RANGE_MAX = 65_536
/**
 * With many hits, flushes are rarer: then more of them are of the same link, which takes one row
 * for all of its hits. Such a flush is followed by a pause of this many times its own time.
 */
const MANY_HITS = 2000
const PAUSE_TIMES = 100
const PAUSE_MAX_MS = 2000

/** Milliseconds from a flush to the next one. */
export const pauseAfter = (
  { hits, elapsedMs }: { hits: number; elapsedMs: number },
  flushMs: number,
): number => {
  const busyMs = hits < MANY_HITS ? 0 : Math.min(PAUSE_TIMES * elapsedMs, PAUSE_MAX_MS)
  return Math.max(flushMs, busyMs)
}

interface FlusherOptions {
  journal: HitJournal
  data: { hits: Pick<Operations<typeof hits>, 'count'> }
  /** Hits belong to the hour of their flush. */
  clock: Clock
  flushMs: number
  log: Log
}

/**
 * Moves hits from the journal to the database every `flushMs`, or up to two seconds after a large
 * flush. Each range of the journal is
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
  /** Time from the end of the last flush to the next one. */
  #pauseMs: number
  /** The last flush failed, and the log reports it. */
  #failing = false

  constructor(options: FlusherOptions) {
    this.#options = options
    this.#pauseMs = options.flushMs
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
    const { journal, data, clock, log, flushMs } = this.#options
    this.#pauseMs = flushMs
    // Redirects continue meanwhile: the next flush counts what they append after this line.
    let rest = journal.pending
    if (rest === 0) return
    const hits = rest
    const start = performance.now()
    while (rest > 0) {
      const length = Math.min(rest, journal.head - journal.tail, RANGE_MAX)
      // The next entry is incomplete: the next flush counts the hits after it.
      if (length === 0) break
      const { tail } = journal
      const { end, lost } = await data.hits.count({ end: tail + length, now: clock() })
      if (lost > 0) log.error('hits.lost', { hits: lost, reason: 'the journal was cut short' })
      journal.release(end)
      rest -= end - tail
    }
    const elapsedMs = performance.now() - start
    this.seconds.observe(elapsedMs / 1000)
    this.#pauseMs = pauseAfter({ hits, elapsedMs }, flushMs)
  }

  #schedule(): void {
    this.#timer = setTimeout(
      () => void this.#flushAndLog().then(() => this.#timer && this.#schedule()),
      this.#pauseMs,
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
