import { LRUCache } from 'lru-cache'
import type { CodeVersions } from '../hot/code-versions.ts'
import { type Destination, DestinationCache } from '../hot/destination-cache.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Code } from '../lib/code.ts'
import type { DestinationReads } from './destination.ts'

/** Few unknown codes are requested repeatedly: typing errors and deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  counters: Pick<RedirectCounters, 'add' | 'set'>
  reads: Pick<DestinationReads, 'find'>
  versions: CodeVersions
  /** Maximum number of links in memory. */
  max: number
}

/**
 * HOT PATH. The destination of each code, in one redirect thread. Known and unknown codes are kept
 * apart, and both are bounded, so that guessed codes evict no link. An entry that was read before a
 * change is ignored after it. The database is read once per code: whether a link is disabled or its
 * host is blocked is decided then, so that a redirect from memory checks neither.
 */
export class LinkCache {
  readonly #reads: Pick<DestinationReads, 'find'>
  readonly #counters: LinkCacheOptions['counters']
  readonly #known: DestinationCache
  /** Unknown codes with their version. */
  readonly #unknown = new LRUCache<Code, number>({ max: UNKNOWN_MAX })

  constructor({ reads, versions, counters, max }: LinkCacheOptions) {
    this.#counters = counters
    this.#reads = reads
    this.#known = new DestinationCache({ max, versions })
  }

  /** Null if the code is unknown; undefined if only the database can tell. */
  findInMemory(code: Code): Destination | null | undefined {
    const known = this.#known.find(code)
    if (known !== undefined) return known
    const version = this.#unknown.get(code)
    return version !== undefined && version === this.#known.versionOf(code) ? null : undefined
  }

  /** Reads the database. Undefined if the code is unknown. */
  lookUp(code: Code): Destination | undefined {
    const version = this.#known.versionOf(code)
    const found = this.#reads.find(code)
    if (found) this.#known.set(code, found, version)
    else this.#unknown.set(code, version)
    this.#counters.add(found ? 'foundInDatabase' : 'notInDatabase')
    this.#counters.set('known', this.#known.size)
    this.#counters.set('unknown', this.#unknown.size)
    return found
  }
}
