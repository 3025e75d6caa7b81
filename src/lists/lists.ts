import type { Database } from 'bun:sqlite'
import { LRUCache } from 'lru-cache'
import type { AccountId } from '../accounts/store.ts'
import { prepareAddressed } from '../addresses/names.ts'
import { perConnection, type ScanCalls, scan } from '../db/subject.ts'
import { AppError, retryAfter } from '../errors.ts'
import { type MonotonicClock, monotonicClock } from '../lib/clock.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import { LINK_COLUMNS, type Link } from '../links/link.ts'
import { type CHUNK_SIZES, CountIndex, type IsOver } from './count-index.ts'
import {
  type AccountFilter,
  CHUNK_LINKS,
  isFiltered,
  keyOf,
  type LinkFilter,
  linkSources,
} from './link-sources.ts'
import { type Ranked, Ranking, rankParts, TOP_MAX } from './ranking.ts'
import { isSearchable, type SEARCH_SIZES } from './search.ts'

export interface ListQuery extends AccountFilter {
  limit: number
  offset: number
  /** The page begins below this id, in place of the offset. `total` counts all matches. */
  below?: number | undefined
  /** Most hits first, then newest first, up to the rank `TOP_MAX`. Not together with `below`. */
  byHits?: boolean | undefined
}

export interface RankQuery {
  accountId: AccountId
  /** At most `TOP_MAX`. */
  limit: number
}

export interface Matches {
  total: number
  links: Link[]
}

/** Pages up to this offset are found without counting, in about 2 ms at most. */
const WALK_MAX = 20 * CHUNK_LINKS
/** Time slice of a call. Calls of other accounts wait for at most one. */
const SLICE_MS = 3
/** A ranking that took more than one slice is used again for this long. */
const RANKING_KEPT_MS = 10_000
/** Maximum of rankings in memory, of at most 10,000 links each. */
const RANKINGS_MAX = 64
/** Maximum number of lists in memory, and of numbers in all of them: about 20 MB. */
const LISTS_MAX = 256
const NUMBERS_MAX = 2_500_000

/** Tests pass small sizes. */
interface ListOptions {
  chunkLinks?: number
  walkMax?: number
  sliceMs?: number
  search?: typeof SEARCH_SIZES
  chunk?: typeof CHUNK_SIZES
  rankAtOnce?: number
  monotonic?: MonotonicClock
}

interface CountedList {
  accountId: AccountId
  index: CountIndex
}

/** Runs on the reader thread: a list may have to count many rows. */
export function linkLists(db: Database, options: ListOptions = {}) {
  const { sliceMs = SLICE_MS } = options
  const reader = new ListReader(db, options)
  const endOfSlice = (): IsOver => {
    const endsAt = performance.now() + sliceMs
    return () => performance.now() >= endsAt
  }
  return {
    /**
     * One page, newest first, and the total, both of one snapshot. Undefined if there is more to
     * count than fits a time slice: the next call continues from there.
     */
    listLinksSlice: (query: ListQuery): Matches | undefined => reader.list(query, endOfSlice()),

    /** The first links of an account by their hits. Undefined as above. */
    rankedLinksSlice: ({ accountId, limit }: RankQuery): Ranked[] | undefined =>
      reader.rank(accountId, endOfSlice())?.slice(0, limit),
  }
}

const listsOf = perConnection((db) => linkLists(db))

export const listScans = {
  /** See `LinkPages`, which calls it until a slice has completed the page. */
  pageSlice: scan((db) => listsOf(db).listLinksSlice),
  rankingSlice: scan((db) => listsOf(db).rankedLinksSlice),
}

type ListCalls = ScanCalls<typeof listScans>

class ListReader {
  readonly #db: Database
  readonly #statements
  readonly #options: ListOptions
  readonly #sources
  /** The last change that was read of `link_changes`. */
  #lastChange = 0
  readonly #lists = new LRUCache<string, CountedList>({
    max: LISTS_MAX,
    maxSize: NUMBERS_MAX,
    sizeCalculation: ({ index }) => index.size + 1,
  })

  /** Rankings that took more than one slice. */
  readonly #rankings = new LRUCache<string, Ranking>({ max: RANKINGS_MAX })
  readonly #rankParts

  constructor(db: Database, options: ListOptions) {
    this.#db = db
    this.#options = options
    this.#rankParts = rankParts(db, options.rankAtOnce)
    this.#statements = prepare(db)
    this.#sources = linkSources(db, options)
  }

  list(query: ListQuery, isOver: IsOver): Matches | undefined {
    return this.#db.transaction(() => {
      this.#invalidateChanged()
      if (!canMatch(query)) return { total: 0, links: [] }
      if (query.byHits) return this.#listByHits(query, isOver)
      return isFiltered(query) ? this.#find(query, isOver) : this.#listAll(query, isOver)
    })()
  }

  /** All links of an account, up to the rank `TOP_MAX`. */
  rank(accountId: AccountId, isOver: IsOver): readonly Ranked[] | undefined {
    return this.#db.transaction(() => this.#rank({ accountId }, undefined, isOver))()
  }

  #listByHits(query: ListQuery, isOver: IsOver): Matches | undefined {
    const { accountId, limit, offset } = query
    const { index, total } = isFiltered(query)
      ? this.#count(query, isOver)
      : { index: undefined, total: this.#linkCount(accountId) }
    if (total === undefined) return undefined
    const end = Math.min(offset + limit, TOP_MAX)
    if (offset >= Math.min(end, total)) return { total, links: [] }
    const ids = this.#rank(query, index, isOver)
      ?.slice(offset, end)
      .map(({ id }) => id)
    if (!ids) return undefined
    const found = this.#statements.byIds.all(JSON.stringify(ids), accountId)
    // A link was deleted or moved after the ranking: the next call ranks the others again.
    if (found.length < ids.length && this.#rankings.delete(keyOf(query))) return undefined
    const links = new Map(found.map((link) => [link.id, link]))
    return { total, links: ids.flatMap((id) => links.get(id) ?? []) }
  }

  /** `index`: that of a filter, which has counted its matches; undefined for all links. */
  #rank(
    filter: AccountFilter,
    index: CountIndex | undefined,
    isOver: IsOver,
  ): readonly Ranked[] | undefined {
    const { accountId } = filter
    const key = keyOf(filter)
    const { monotonic = monotonicClock } = this.#options
    const now = monotonic()
    const cached = this.#rankings.get(key)
    const ranking = cached && now - cached.readAt < RANKING_KEPT_MS ? cached : new Ranking()
    const ranked = ranking.findRanked(
      (below, floor) =>
        index
          ? this.#rankParts.ofIds(index, below, floor)
          : this.#rankParts.ofAccount(accountId, below, floor),
      now,
      isOver,
    )
    if (!ranked) this.#rankings.set(key, ranking)
    return ranked
  }

  #linkCount(accountId: AccountId): number {
    return this.#statements.linkCount.get(accountId)?.total ?? 0
  }

  #listAll(query: ListQuery, isOver: IsOver): Matches | undefined {
    const { accountId, limit, offset } = query
    const { walkMax = WALK_MAX } = this.#options
    const total = this.#linkCount(accountId)
    if (offset >= total) return { total, links: [] }
    if (query.below === undefined && offset <= walkMax)
      return { total, links: this.#statements.walk.all(accountId, limit, offset) }
    return this.#find(query, isOver)
  }

  #find(query: ListQuery, isOver: IsOver): Matches | undefined {
    const { accountId, limit, offset, below } = query
    const { index, total } = this.#count(query, isOver)
    if (total === undefined) return undefined
    const ids = below === undefined ? index.page(limit, offset) : index.pageBelow(below, limit)
    if (ids.length === 0) return { total, links: [] }
    return { total, links: this.#statements.byIds.all(JSON.stringify(ids), accountId) }
  }

  #count(filter: AccountFilter, isOver: IsOver): { index: CountIndex; total: number | undefined } {
    const { accountId } = filter
    const key = keyOf(filter)
    const index =
      this.#lists.get(key)?.index ?? new CountIndex(this.#sources(filter), this.#options.chunk)
    const total = index.count(this.#statements.newest.get(accountId)?.id ?? 0, isOver)
    // Set again, because the LRU cache takes its size only then.
    this.#lists.delete(key)
    this.#lists.set(key, { accountId, index })
    return { index, total }
  }

  /** Invalidates cached counts that changes since the last read have made stale. */
  #invalidateChanged(): void {
    const changes = this.#statements.changes.all(this.#lastChange)
    const [first] = changes
    // The log has only the newest of the changes.
    if (first && first.seq !== this.#lastChange + 1) this.#lists.clear()
    this.#lastChange = changes.at(-1)?.seq ?? this.#lastChange
    for (const { accountId, index } of this.#lists.values()) {
      for (const change of changes) if (change.accountId === accountId) index.invalidate(change.id)
    }
  }
}

const canMatch = ({ search = '', orCode, inProperties = false }: LinkFilter): boolean =>
  search === '' || orCode !== undefined || isSearchable(search, inProperties)

/** A link was changed or deleted: see the triggers in drizzle/, and `listChangeNoter`. */
interface LinkChange {
  seq: number
  accountId: AccountId
  id: number
}

function prepare(db: Database) {
  return {
    linkCount: db.prepare<{ total: number }, [AccountId]>(
      'SELECT link_count AS total FROM accounts WHERE id = ?',
    ),
    walk: prepareAddressed<Link, [AccountId, number, number]>(
      db,
      `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? ORDER BY id DESC LIMIT ? OFFSET ?`,
    ),
    byIds: prepareAddressed<Link, [string, AccountId]>(
      db,
      `SELECT ${LINK_COLUMNS} FROM links
       WHERE id IN (SELECT value FROM json_each(?1)) AND account_id = ?2 ORDER BY id DESC`,
    ),
    newest: db.prepare<{ id: number | null }, [AccountId]>(
      'SELECT max(id) AS id FROM links WHERE account_id = ?',
    ),
    changes: db.prepare<LinkChange, [number]>(
      `SELECT seq, account_id AS accountId, link_id AS id FROM link_changes
       WHERE seq > ? ORDER BY seq`,
    ),
  }
}

/** Enough for some million links. Counts are cached, so that the next request continues. */
const SEARCH_DEADLINE_MS = 10_000

/** Finds pages of links on the reader thread, in time slices between which other calls run. */
export class LinkPages {
  readonly #lists: ListCalls
  readonly #deadlineMs: number
  readonly #pages = new FairQueue({ atOnce: 'keys' })

  constructor(data: { lists: ListCalls }, { deadlineMs = SEARCH_DEADLINE_MS } = {}) {
    this.#lists = data.lists
    this.#deadlineMs = deadlineMs
  }

  /**
   * One page and its exact total. The thread works on one page per account at a time, so that the
   * share of an account does not grow with its requests. Throws `search_timeout`, also when
   * `signal` is aborted.
   */
  findPage(query: ListQuery, signal?: AbortSignal): Promise<Matches> {
    // A list without a filter takes one slice, nearly always: it runs before every search.
    const background = isFiltered(query) || query.byHits === true
    return this.#inOrder(query.accountId, { background, signal }, (options) =>
      this.#lists.pageSlice(query, options),
    )
  }

  /** The first links of an account by their hits. Throws as `findPage`. */
  rank(query: RankQuery): Promise<Ranked[]> {
    return this.#inOrder(query.accountId, { background: true }, (options) =>
      this.#lists.rankingSlice(query, options),
    )
  }

  #inOrder<T>(
    accountId: AccountId,
    { background, signal }: PageOptions,
    slice: (options: { background: boolean }) => Promise<T | undefined>,
  ): Promise<T> {
    const endsAt = performance.now() + this.#deadlineMs
    return this.#pages.run(accountId, async () => {
      for (let isFirst = true; performance.now() < endsAt && !signal?.aborted; isFirst = false) {
        // Undefined if the slice was over first.
        const found = await slice({ background: background || !isFirst })
        if (found) return found
      }
      throw new AppError('search_timeout', '', retryAfter(1))
    })
  }
}

interface PageOptions {
  background: boolean
  signal?: AbortSignal | undefined
}
