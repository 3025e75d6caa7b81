import type { Clock } from '../lib/clock.ts'
import { MINUTE } from '../lib/clock.ts'
import type { Caller } from '../lib/thread.ts'
import type { BucketWrites } from './buckets.ts'

const PAUSE_MS = 10 * MINUTE
/** Rows of each table in one transaction: bounds how long another write waits, to some 10 ms. */
const MOST = 4000

interface PrunerOptions {
  writer: Caller<BucketWrites>
  clock: Clock
}

/** Removes old buckets while no other write waits. */
export class BucketPruner {
  readonly #options: PrunerOptions
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: PrunerOptions) {
    this.#options = options
    void this.#tick()
  }

  /** Removes everything that is old by now. Throws if the disk refuses. */
  async prune(): Promise<void> {
    const { writer, clock } = this.#options
    const order = { now: clock(), most: MOST }
    let left = true
    while (left && !this.#isClosed) {
      left = await writer.call('pruneBuckets', order, { background: true })
    }
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #tick(): Promise<void> {
    // A disk that refuses is asked again next time: old buckets do no harm.
    await this.prune().catch(() => {})
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#tick(), PAUSE_MS)
  }
}
