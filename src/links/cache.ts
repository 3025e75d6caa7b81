import { LRUCache } from 'lru-cache'
import type { Code } from './code.ts'
import { type Destination, DestinationRing } from './destination-ring.ts'
import type { KnownCodes } from './known-codes.ts'
import type { LinkReads } from './store.ts'
import { locationOf } from './url.ts'

const UNKNOWN = 'unknown'
/** Few are ever looked up: those of before all codes are known, and of deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  reads: Pick<LinkReads, 'findDestination'>
  codes: KnownCodes
  /** Links held. */
  max: number
}

/**
 * HOT PATH. Where each code leads, by its own text: known codes and unknown ones, each bounded, so
 * that a scanner's guesses push no real link out. A change enters in the same turn in which its
 * write is acknowledged.
 */
export class LinkCache {
  readonly #reads: Pick<LinkReads, 'findDestination'>
  readonly #codes: KnownCodes
  readonly #known: DestinationRing
  readonly #unknown = new LRUCache<Code, typeof UNKNOWN>({ max: UNKNOWN_MAX })

  constructor({ reads, codes, max }: LinkCacheOptions) {
    this.#reads = reads
    this.#codes = codes
    this.#known = new DestinationRing({ max })
  }

  /** Entries held, of codes that somebody holds and of those that nobody does. */
  get sizes(): { known: number; unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }

  /**
   * Without the database. Null when nobody holds the code; undefined when only a look-up can tell.
   */
  findInMemory(code: Code): Destination | null | undefined {
    const known = this.#known.find(code)
    if (known !== undefined) return known
    if (!this.#codes.mayHold(code)) return null
    return this.#unknown.get(code) === undefined ? undefined : null
  }

  /** One look-up in the database at most; undefined when nobody holds the code. */
  find(code: Code): Destination | undefined {
    const inMemory = this.findInMemory(code)
    return inMemory === undefined ? this.lookUp(code) : (inMemory ?? undefined)
  }

  /** For a code that memory cannot tell of. Undefined when nobody holds it. */
  lookUp(code: Code): Destination | undefined {
    const row = this.#reads.findDestination(code)
    if (row) return this.#keep(code, row.id, row.url)
    this.#unknown.set(code, UNKNOWN)
    return undefined
  }

  /**
   * Somebody holds the code from now on. Where it leads is read when it is asked for: a bulk of new
   * links would push out those that visitors follow.
   */
  add(code: Code): void {
    this.#codes.add(code)
    this.#unknown.delete(code)
  }

  set(code: Code, id: number, url: string | null): void {
    this.add(code)
    this.#keep(code, id, url)
  }

  delete(code: Code): void {
    this.#known.delete(code)
    this.#unknown.set(code, UNKNOWN)
  }

  #keep(code: Code, id: number, url: string | null): Destination {
    const destination = { id, location: url === null ? null : locationOf(url) }
    this.#known.set(code, destination)
    return destination
  }
}
