import type { WriteCalls } from '../db/subject.ts'
import { type Clock, MINUTE } from '../lib/clock.ts'
import type { seriesWrites } from './series.ts'

const PRUNE_INTERVAL_MS = 10 * MINUTE
/** Rows of each table per transaction: another write waits about 10 ms at most. */
const PRUNED_MAX = 4000

interface PrunerOptions {
  data: { hits: WriteCalls<typeof seriesWrites> }
  clock: Clock
}

/** Removes expired buckets while no other write waits. */
export class BucketPruner {
  readonly #options: PrunerOptions
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: PrunerOptions) {
    this.#options = options
    void this.#pruneRepeatedly()
  }

  /** Removes everything that has expired by now. Throws if the disk refuses. */
  async prune(): Promise<void> {
    const { data, clock } = this.#options
    const command = { now: clock(), max: PRUNED_MAX }
    let isMoreLeft = true
    while (isMoreLeft && !this.#isClosed) {
      isMoreLeft = await data.hits.prune(command, { background: true })
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #pruneRepeatedly(): Promise<void> {
    // After an error the next interval retries: expired buckets do no harm.
    await this.prune().catch(() => {})
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#pruneRepeatedly(), PRUNE_INTERVAL_MS)
  }
}
