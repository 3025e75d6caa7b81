import { LRUCache } from 'lru-cache'
import type { HitCounts } from '../hits/hits.ts'
import type { Code } from '../lib/code.ts'
import { locationOf, parseKnownUrl, type UrlFilter } from './location.ts'
import type { LinkProperties } from './property-model.ts'

/** The properties of a link that affect its redirects. */
export interface LinkRules {
  /** Paused, or its deletion is scheduled. */
  readonly isOff: boolean
  readonly startsAt: number | null
  readonly expiresAt: number | null
  readonly maxHits: number | null
  /** `Location` after the end; null for 410. */
  readonly expiredLocation: string | null
  readonly forwardQuery: boolean
  /** Redirects so far, counted only with `maxHits`. */
  hits: number
}

interface KeptRules {
  rules: LinkRules
  /** The number of calls of `dropCounts` before `rules.hits` was read. */
  drops: number
}

/** Few links have rules and visitors. An entry takes about 300 bytes. */
const RULES_MAX = 20_000

interface RuleCacheOptions {
  properties: { propertiesOf(id: number): LinkProperties }
  hits: Pick<HitCounts, 'ofLink'>
  blocklist: UrlFilter
}

/**
 * The rules of links that have any. A change to a link removes its code in the tick in which the
 * write is acknowledged.
 */
export class RuleCache {
  readonly #options: RuleCacheOptions
  readonly #rules = new LRUCache<Code, KeptRules>({ max: RULES_MAX })
  #drops = 0

  constructor(options: RuleCacheOptions) {
    this.#options = options
  }

  /**
   * Reads the database if the rules are not in memory. The control thread alone answers for links
   * with rules, so the number of hits stays exact while each redirect adds to it. In a cluster it
   * lags behind by what the other hosts have not flushed.
   */
  find(code: Code, id: number): LinkRules {
    const kept = this.#rules.get(code)
    if (kept && (kept.rules.maxHits === null || kept.drops === this.#drops)) return kept.rules
    const rules = this.#read(id)
    this.#rules.set(code, { rules, drops: this.#drops })
    return rules
  }

  drop(code: Code): void {
    this.#rules.delete(code)
  }

  /** Other hosts have counted hits. */
  dropCounts(): void {
    this.#drops++
  }

  clear(): void {
    this.#rules.clear()
  }

  #read(id: number): LinkRules {
    const { properties, hits, blocklist } = this.#options
    const found = properties.propertiesOf(id)
    const expired = found.expiredUrl === null ? undefined : parseKnownUrl(found.expiredUrl)
    return {
      isOff: found.isPaused || found.deleteAt !== null,
      startsAt: found.startsAt,
      expiresAt: found.expiresAt,
      maxHits: found.maxHits,
      expiredLocation: expired && !blocklist.isBlocked(expired) ? locationOf(expired) : null,
      forwardQuery: found.forwardQuery,
      hits: found.maxHits === null ? 0 : hits.ofLink(id),
    }
  }
}
