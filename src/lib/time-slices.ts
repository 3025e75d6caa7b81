import { setImmediate } from 'node:timers/promises'

/**
 * Runs long work of one kind in time slices, with other work of the thread in between. However many
 * callers there are, one time slice of one caller runs per tick of the event loop.
 */
export class TimeSlices {
  #last: Promise<void> = Promise.resolve()

  /** Resolves in a later tick, after all earlier callers. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => setImmediate())
    return this.#last
  }

  /** `map` over all items, in order, with at most `most` items per time slice. */
  async map<Item, Result>(
    items: readonly Item[],
    most: number,
    map: (item: Item, index: number) => Result,
  ): Promise<Result[]> {
    const results: Result[] = []
    for (const [index, item] of items.entries()) {
      if (index > 0 && index % most === 0) await this.next()
      results.push(map(item, index))
    }
    return results
  }
}

/** For batches of links: reading, checking and answering them. */
export const batchSlices = new TimeSlices()
/** For dashboard pages, so that a flood of page requests does not delay batches. */
export const pageSlices = new TimeSlices()
