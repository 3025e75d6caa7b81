import { setImmediate } from 'node:timers/promises'

/**
 * `map` over all items, in order, letting other work of this thread run after every `most` of them.
 */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  most: number,
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % most === 0) await setImmediate()
    results.push(map(item, index))
  }
  return results
}
