import { LRUCache } from 'lru-cache'
import { type CodeVersions, encodeAlias, encodeCode } from '../hot/code-versions.ts'
import { type Destination, DestinationCache } from '../hot/destination-cache.ts'
import type { RedirectCounters } from '../hot/redirect-counters.ts'
import type { Code } from '../lib/code.ts'
import type { Alias, AliasReads } from './aliases.ts'
import type { DestinationReads } from './destination.ts'

/** Few unknown codes are requested repeatedly: typing errors and deleted links. */
const UNKNOWN_MAX = 10_000

interface LinkCacheOptions {
  counters: Pick<RedirectCounters, 'add' | 'set'>
  reads: Pick<DestinationReads, 'find'>
  aliases: Pick<AliasReads, 'find'>
  versions: CodeVersions
  /** Maximum number of links in memory, and of aliases. */
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
  readonly #aliasReads: Pick<AliasReads, 'find'>
  /** The code of each alias in the place of a location: no collection visits it. */
  readonly #aliases: DestinationCache<string>
  /** Unknown codes with their version. */
  readonly #unknown = new LRUCache<Code, number>({ max: UNKNOWN_MAX })

  constructor({ reads, aliases, versions, counters, max }: LinkCacheOptions) {
    this.#counters = counters
    this.#reads = reads
    this.#aliasReads = aliases
    this.#known = new DestinationCache({ max, versions, encode: encodeCode })
    this.#aliases = new DestinationCache({ max, versions, encode: encodeAlias })
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

  /** `path` matches `ALIAS_KEY`. The link may have been deleted since: compare its id. */
  findAliasInMemory(path: string): Alias | undefined {
    const found = this.#aliases.find(path)
    return found && { linkId: found.id, code: found.location as Code }
  }

  /** Reads the database. Undefined if there is no such alias. */
  lookUpAlias(path: string): Alias | undefined {
    const version = this.#aliases.versionOf(path)
    const found = this.#aliasReads.find(path)
    if (!found) return undefined
    const { linkId: id, code: location } = found
    this.#aliases.set(path, { id, location, isDisabled: false, rules: '' }, version)
    return found
  }
}
