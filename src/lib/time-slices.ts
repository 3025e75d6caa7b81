import { setImmediate } from 'node:timers/promises'
import { type MonotonicClock, monotonicClock } from './clock.ts'

/** A slice ends early after this time: some items take a hundred times as long as most. */
const SLICE_MS = 2

/**
 * Runs long work of one kind in time slices, with other work of the thread in between. However many
 * callers there are, one time slice of one caller runs per tick of the event loop.
 */
export class TimeSlices {
  readonly #monotonic: MonotonicClock
  #last: Promise<void> = Promise.resolve()

  constructor(monotonic: MonotonicClock = monotonicClock) {
    this.#monotonic = monotonic
  }

  /** Resolves in a later tick, after all earlier callers. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => setImmediate())
    return this.#last
  }

  /** `map` over all items, in order, with at most `most` items and about 2 ms per time slice. */
  async map<Item, Result>(
    items: readonly Item[],
    most: number,
    map: (item: Item, index: number) => Result,
  ): Promise<Result[]> {
    const results: Result[] = []
    let [count, startedAt] = [0, this.#monotonic()]
    for (const [index, item] of items.entries()) {
      if (count === most || this.#monotonic() - startedAt > SLICE_MS) {
        await this.next()
        count = 0
        startedAt = this.#monotonic()
      }
      results.push(map(item, index))
      count++
    }
    return results
  }
}

/** For batches of links: parsing, validation and responses. */
export const batchSlices = new TimeSlices()
/** For dashboard pages, so that a flood of page requests does not delay batches. */
export const pageSlices = new TimeSlices()
