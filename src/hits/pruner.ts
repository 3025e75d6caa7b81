import type { WriteCalls } from '../db/subject.ts'
import { type Clock, MINUTE } from '../lib/clock.ts'
import type { CallOptions } from '../lib/thread.ts'
import { dayOf, hourOf, type seriesWrites } from './series.ts'

const PRUNE_INTERVAL_MS = 10 * MINUTE
/** Links and accounts per transaction: another write waits about 10 ms at most. */
const PRUNED_MAX = 1000

interface PrunerOptions {
  data: {
    hits: WriteCalls<typeof seriesWrites>
    /** Events of links. */
    history: { prune(age: { now: number }, options: CallOptions): Promise<number> }
  }
  clock: Clock
}

/**
 * Removes expired days, hours and events while no other write waits, with one sweep for each UTC
 * day.
 */
export class BucketPruner {
  readonly #options: PrunerOptions
  #timer: Timer | undefined
  #isClosed = false
  /** The UTC day of the last complete sweep. */
  #sweptDay: number | undefined

  constructor(options: PrunerOptions) {
    this.#options = options
    void this.#pruneRepeatedly()
  }

  /** Removes everything that has expired by now. Throws if the disk refuses. */
  async prune(): Promise<void> {
    const { data, clock } = this.#options
    const now = clock()
    let after: Awaited<ReturnType<typeof data.hits.prune>>
    do {
      after = await data.hits.prune({ now, max: PRUNED_MAX, after }, { background: true })
    } while (after && !this.#isClosed)
    while (!this.#isClosed && (await data.history.prune({ now }, { background: true })) > 0);
    if (!after) this.#sweptDay = dayOf(hourOf(now))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #pruneRepeatedly(): Promise<void> {
    // After an error the next interval retries: expired days do no harm.
    const today = dayOf(hourOf(this.#options.clock()))
    if (today !== this.#sweptDay) await this.prune().catch(() => {})
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#pruneRepeatedly(), PRUNE_INTERVAL_MS)
  }
}
