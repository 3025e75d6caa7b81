import { setImmediate } from 'node:timers/promises'

let lastTurn: Promise<void> = Promise.resolve()

/**
 * Lets other work of this thread run: requests that have arrived, and one other caller's next part.
 * However many callers there are, one part of one of them runs in a round of the event loop.
 */
export function nextTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}

/** `map` over all items, in order; a turn lies between every `most` of them. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  most: number,
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % most === 0) await nextTurn()
    results.push(map(item, index))
  }
  return results
}
