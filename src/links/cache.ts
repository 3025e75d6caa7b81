import { LRUCache } from 'lru-cache'
import type { Code } from './code.ts'
import type { LinkReads } from './store.ts'
import { locationOf } from './url.ts'

/** What a redirect needs of a link. `location` is null while the code is reserved. */
export interface Destination {
  readonly id: number
  readonly location: string | null
}

const UNKNOWN = 'unknown'

/**
 * HOT PATH. Where each code leads, by its own text: known codes and unknown ones, each bounded, so
 * that a scanner's guesses push no real link out. A change enters in the same turn in which its
 * write is acknowledged.
 */
export class LinkCache {
  readonly #reads: LinkReads
  readonly #known: LRUCache<Code, Destination>
  readonly #unknown: LRUCache<Code, typeof UNKNOWN>

  /** `max`: entries of either kind. */
  constructor(reads: LinkReads, { max }: { max: number }) {
    this.#reads = reads
    // Told a size instead of a count, it grows with use: tables made for the most would be walked
    // through by every garbage collection.
    const bound = { maxSize: max, sizeCalculation: () => 1 }
    this.#known = new LRUCache(bound)
    this.#unknown = new LRUCache(bound)
  }

  /** One look-up in the database at most; undefined when nobody holds the code. */
  find(code: Code): Destination | undefined {
    const known = this.#known.get(code)
    if (known !== undefined) return known
    if (this.#unknown.get(code) !== undefined) return undefined
    const row = this.#reads.findDestination(code)
    if (row) return this.set(code, row.id, row.url)
    this.#unknown.set(code, UNKNOWN)
    return undefined
  }

  set(code: Code, id: number, url: string | null): Destination {
    const destination = { id, location: url === null ? null : locationOf(url) }
    this.#unknown.delete(code)
    this.#known.set(code, destination)
    return destination
  }

  delete(code: Code): void {
    this.#known.delete(code)
    this.#unknown.set(code, UNKNOWN)
  }
}
