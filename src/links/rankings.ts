import { LRUCache } from 'lru-cache'
import { MINUTE, type MonotonicClock, monotonicClock } from '../lib/clock.ts'
import type { Caller } from '../lib/thread.ts'
import { type AccountFilter, isFiltered, keyOf } from './link-sources.ts'
import { type LinkLists, type RankMatches, SEARCH_DEADLINE_MS, searchTimeout } from './lists.ts'
import { mostHitsFirst, type Ranked, type RankReads } from './ranked.ts'

/** The last rank: `offset` and `limit` together. Pages after it are empty. */
export const TOP_MAX = 10_000
/** Ranks that most requests need. They take half the time and a tenth of the memory. */
const TOP_USUAL = 1000

/** A ranking in fewer slices than this is not kept: those of up to 16,384 links. */
const SLICES_KEPT = { all: 2, filtered: 5 }
/** Links per call: a few milliseconds even if all URLs have the maximum length. */
const COMPARED_AT_ONCE = 128
/** After this age a ranking is renewed in the background, and the old one used until then. */
const FRESH_MS = 10_000
/** An older ranking is not used. */
const KEPT_MS = MINUTE
const RANKINGS_MAX = 100
/** Links in all kept rankings: about 10 MB. */
const LINKS_MAX = 250_000

interface RankingsOptions {
  reader: Caller<RankReads & Pick<LinkLists, 'rankMatchesSlice' | 'matchesAmong'>>
  monotonic?: MonotonicClock
  /** Tests pass a small one. */
  usualRanks?: number
}

interface Ranking {
  best: readonly Ranked[]
  /** When it began. */
  at: number
  /** The ranks that it has, if there are so many links. */
  ranks: number
}

/**
 * The links of an account, or those that match, with the most hits. Rankings of many links are
 * kept: their order is that of the counts of the last minute at most.
 */
export class Rankings {
  readonly #reader: RankingsOptions['reader']
  readonly #monotonic: MonotonicClock
  readonly #usualRanks: number
  readonly #kept = new LRUCache<string, Ranking>({
    max: RANKINGS_MAX,
    maxSize: LINKS_MAX,
    sizeCalculation: ({ best }) => best.length + 1,
  })
  /** Rankings of all links, which requests share. */
  readonly #running = new Map<string, Promise<Ranking>>()
  /** Keys of rankings that are being renewed. */
  readonly #renewing = new Set<string>()

  constructor(options: RankingsOptions) {
    const { reader, monotonic = monotonicClock, usualRanks = TOP_USUAL } = options
    this.#reader = reader
    this.#monotonic = monotonic
    this.#usualRanks = usualRanks
  }

  /**
   * Most hits first, then newest first: the first `ranks`, or more. Throws `search_timeout`, also
   * when `signal` is aborted.
   */
  async find(query: AccountFilter, ranks: number, signal?: AbortSignal) {
    return (await this.#find(query, ranks, signal)).best
  }

  /** A link of a ranking was deleted: the next request reads it again. */
  drop(query: AccountFilter): void {
    for (const keep of [this.#usualRanks, TOP_MAX]) this.#kept.delete(rankingKey(query, keep))
  }

  async #find(query: AccountFilter, ranks: number, signal?: AbortSignal): Promise<Ranking> {
    const keep = ranks <= this.#usualRanks ? this.#usualRanks : TOP_MAX
    const key = rankingKey(query, keep)
    const kept = this.#kept.get(key)
    const age = kept ? this.#monotonic() - kept.at : KEPT_MS
    if (!kept || age >= KEPT_MS || kept.ranks < ranks) {
      return this.#shared(key, { query, ranks, keep, signal })
    }
    if (age >= FRESH_MS) void this.#renew(key, { query, ranks: kept.ranks, keep, background: true })
    return kept
  }

  /** Those of a search stop with their own request, so they are not shared. */
  async #shared(key: string, options: RankOptions): Promise<Ranking> {
    if (isFiltered(options.query)) return this.#rank(key, options)
    const running = this.#running.get(key)
    if (running) return running
    const ranking = this.#rank(key, options).finally(() => this.#running.delete(key))
    this.#running.set(key, ranking)
    return ranking
  }

  async #renew(key: string, options: RankOptions): Promise<void> {
    if (this.#renewing.has(key)) return
    this.#renewing.add(key)
    // After an error the old one is used until it is too old; then a request reports the error.
    await this.#rank(key, options).catch(() => {})
    this.#renewing.delete(key)
  }

  async #rank(key: string, options: RankOptions): Promise<Ranking> {
    const { query, keep, signal, background = false } = options
    const slicesKept = isFiltered(query) ? SLICES_KEPT.filtered : SLICES_KEPT.all
    const at = this.#monotonic()
    let best: Ranked[] = []
    let below: number | undefined
    let slices = 0
    do {
      const floor = best.length === keep ? best.at(-1)?.count : undefined
      const part = { ...query, below, floor, keep }
      const slice = isFiltered(query)
        ? await this.#rankMatches(part, signal)
        : await this.#reader.call('rankSlice', part, { background })
      best = [...best, ...slice.best].sort(mostHitsFirst).slice(0, keep)
      below = slice.next
      slices++
      if (isFiltered(query) && slices === slicesKept - 1 && below !== undefined) {
        const first =
          (await this.#rankAmong(this.#usualRanks, options)) ??
          (await this.#rankAmong(TOP_MAX, options))
        if (first) {
          this.#kept.set(key, first)
          return first
        }
      }
    } while (below !== undefined)
    const ranking = { best, at, ranks: keep }
    if (slices >= slicesKept) this.#kept.set(key, ranking)
    return ranking
  }

  /**
   * The first matches of a common search or tag: most of its links need not be read. Undefined if
   * there are fewer than `ranks` among the first `allRanks` of all links.
   */
  async #rankAmong(
    allRanks: number,
    { query, ranks, signal }: RankOptions,
  ): Promise<Ranking | undefined> {
    const { best: all, at: readAt } = await this.#find({ accountId: query.accountId }, allRanks)
    const best: Ranked[] = []
    for (let at = 0; at < all.length && best.length < ranks; at += COMPARED_AT_ONCE) {
      if (signal?.aborted) throw searchTimeout()
      const some = all.slice(at, at + COMPARED_AT_ONCE)
      const part = { ...query, ids: some.map(({ id }) => id) }
      const ids = await this.#reader.call('matchesAmong', part, { background: true })
      const found = new Set(ids)
      best.push(...some.filter(({ id }) => found.has(id)))
    }
    return best.length >= ranks ? { best, at: readAt, ranks } : undefined
  }

  async #rankMatches(part: RankMatches, signal: AbortSignal | undefined) {
    const endsAt = performance.now() + SEARCH_DEADLINE_MS
    while (performance.now() < endsAt && !signal?.aborted) {
      const slice = await this.#reader.call('rankMatchesSlice', part, { background: true })
      if (slice) return slice
    }
    throw searchTimeout()
  }
}

interface RankOptions {
  query: AccountFilter
  /** The ranks that are wanted. */
  ranks: number
  /** The ranks that are read otherwise. */
  keep: number
  signal?: AbortSignal | undefined
  background?: boolean
}

const rankingKey = (query: AccountFilter, keep: number): string => `${keep} ${keyOf(query)}`
