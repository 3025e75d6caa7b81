import { setImmediate } from 'node:timers/promises'

/**
 * Long work of one kind, done in parts with other work of the thread in between. However many
 * callers there are, one part of one of them runs in a round of the event loop.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve()

  /** Resolves in a later round, after the callers that came before. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => setImmediate())
    return this.#last
  }

  /** `map` over all items, in order; a turn lies between every `most` of them. */
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
export const batchTurns = new Turns()
/** For dashboard pages, so that a crowd of page requests does not delay batches. */
export const pageTurns = new Turns()
