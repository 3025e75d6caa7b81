import { LRUCache } from 'lru-cache'
import { type Destination, DestinationCache } from '../hot/destination-cache.ts'
import type { Code } from '../lib/code.ts'
import type { DestinationRow, LinkReads } from './read.ts'
import { locationOf, type ParsedUrl, parseKnownUrl } from './url.ts'

const UNKNOWN = 'unknown'
/** Unknown codes that are asked for repeatedly are few: typing errors and deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  reads: Pick<LinkReads, 'findDestination'>
  blocklist: { isBlocked(url: Pick<ParsedUrl, 'href' | 'host'>): boolean }
  /** The most links in memory. */
  max: number
}

/**
 * HOT PATH. The destination of each code. Known and unknown codes are kept apart, and both are
 * bounded, so that a scanner's guesses evict no link. A change to a link removes its code in the
 * tick in which the write is acknowledged. The database is read once per code: whether a link is
 * disabled or its host is blocked is decided then, so that a redirect from memory checks neither.
 */
export class LinkCache {
  readonly #reads: Pick<LinkReads, 'findDestination'>
  readonly #blocklist: { isBlocked(url: Pick<ParsedUrl, 'href' | 'host'>): boolean }
  readonly #known: DestinationCache
  readonly #unknown = new LRUCache<Code, typeof UNKNOWN>({ max: UNKNOWN_MAX })

  constructor({ reads, blocklist, max }: LinkCacheOptions) {
    this.#reads = reads
    this.#blocklist = blocklist
    this.#known = new DestinationCache({ max })
  }

  /** Entries in memory: codes of links, and codes that no link has. */
  get sizes(): { known: number; unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }

  /** Null if the code is unknown; undefined if only the database can tell. */
  findInMemory(code: Code): Destination | null | undefined {
    const known = this.#known.find(code)
    if (known !== undefined) return known
    return this.#unknown.get(code) === undefined ? undefined : null
  }

  /** Reads the database if memory cannot tell. Undefined if the code is unknown. */
  find(code: Code): Destination | undefined {
    const inMemory = this.findInMemory(code)
    return inMemory === undefined ? this.lookUp(code) : (inMemory ?? undefined)
  }

  /** Reads the database. Undefined if the code is unknown. */
  lookUp(code: Code): Destination | undefined {
    const row = this.#reads.findDestination(code)
    if (row) return this.#keep(code, row)
    this.#unknown.set(code, UNKNOWN)
    return undefined
  }

  /**
   * The code has a link now. Its destination is read on the first redirect: a batch of new links
   * would evict those that visitors follow.
   */
  add(code: Code): void {
    this.#unknown.delete(code)
  }

  /** The code's link was changed or deleted: the next request reads the database. */
  drop(code: Code): void {
    this.#known.delete(code)
    this.#unknown.delete(code)
  }

  /** Removes every code: what is disabled or blocked has changed. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  #keep(code: Code, { id, url, isDisabled, hasRules }: DestinationRow): Destination {
    const parsed = url === null ? undefined : parseKnownUrl(url)
    const isOff = isDisabled === 1 || (parsed !== undefined && this.#blocklist.isBlocked(parsed))
    const location = parsed === undefined || isOff ? null : locationOf(parsed)
    const destination = {
      id,
      location,
      isDisabled: isOff,
      hasRules: location !== null && hasRules === 1,
    }
    this.#known.set(code, destination)
    return destination
  }
}

type Finds = Pick<LinkReads, 'findDestination'>

/** Counts the misses of the link cache, by what the database had. */
export class CountingReads implements Finds {
  readonly #reads: Finds
  known = 0
  unknown = 0

  constructor(reads: Finds) {
    this.#reads = reads
  }

  findDestination(code: Code): ReturnType<Finds['findDestination']> {
    const row = this.#reads.findDestination(code)
    if (row) this.known++
    else this.unknown++
    return row
  }
}
