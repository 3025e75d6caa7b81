import { LRUCache } from 'lru-cache'
import { type Destination, DestinationRing } from '../hot/destination-cache.ts'
import type { Code } from '../lib/code.ts'
import type { KnownCodes } from './known-codes.ts'
import type { DestinationRow, LinkReads } from './store.ts'
import { locationOf } from './url.ts'

const UNKNOWN = 'unknown'
/** Few are ever looked up: those of before all codes are known, and of deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  reads: Pick<LinkReads, 'findDestination'>
  codes: KnownCodes
  blocklist: { isBlocked(url: string): boolean }
  /** Links held. */
  max: number
}

/**
 * HOT PATH. Where each code leads, by its own text: known codes and unknown ones, each bounded, so
 * that a scanner's guesses push no real link out. A change to a link drops its code in the same
 * tick in which the write is acknowledged. Whether a link is disabled or its host blocked is judged
 * as it enters: a link that redirects costs nothing more.
 */
export class LinkCache {
  readonly #reads: Pick<LinkReads, 'findDestination'>
  readonly #codes: KnownCodes
  readonly #blocklist: { isBlocked(url: string): boolean }
  readonly #known: DestinationRing
  readonly #unknown = new LRUCache<Code, typeof UNKNOWN>({ max: UNKNOWN_MAX })

  constructor({ reads, codes, blocklist, max }: LinkCacheOptions) {
    this.#reads = reads
    this.#codes = codes
    this.#blocklist = blocklist
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
    if (row) return this.#keep(code, row)
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

  /** The code's link was changed or deleted: the next visit reads what the code means now. */
  drop(code: Code): void {
    this.#known.delete(code)
    this.#unknown.delete(code)
  }

  /** Forgets every code: what is disabled or blocked has changed. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  #keep(code: Code, { id, url, isDisabled }: DestinationRow): Destination {
    const isOff = isDisabled === 1 || (url !== null && this.#blocklist.isBlocked(url))
    const location = url === null || isOff ? null : locationOf(url)
    const destination = { id, location, isDisabled: isOff }
    this.#known.set(code, destination)
    return destination
  }
}
