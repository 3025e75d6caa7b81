import type { Database } from 'bun:sqlite'
import { LRUCache } from 'lru-cache'
import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import { type CHUNK_SIZES, CountIndex, type IsOver, type LinkSource } from './count-index.ts'
import { LINK_COLUMNS, type Link } from './link.ts'
import { isSearchable, NTH_LINK_AFTER, type SEARCH_SIZES, searches } from './search.ts'

export interface ListQuery {
  accountId: AccountId
  limit: number
  offset: number
  search?: string | undefined
}

export interface Matches {
  total: number
  links: Link[]
}

/** Links of a chunk in a list without a search: counting one takes about 0.1 ms. */
const CHUNK_LINKS = 4096
/** Pages up to this offset are found without counting: some 2 ms at most. */
const WALK_MAX = 20 * CHUNK_LINKS
/** Time slice of a call. Calls of other accounts wait for at most one. */
const SLICE_MS = 3
/** Lists whose counts are kept, and the numbers in them all: some 20 MB. */
const LISTS_MAX = 256
const NUMBERS_MAX = 2_500_000

/** Tests pass small sizes. */
interface ListOptions {
  chunkLinks?: number
  walkMax?: number
  sliceMs?: number
  search?: typeof SEARCH_SIZES
  chunk?: typeof CHUNK_SIZES
}

interface CountedList {
  accountId: AccountId
  isSearch: boolean
  index: CountIndex
}

/** Runs on the reader thread: a list may have to count many rows. */
export function linkLists(db: Database, options: ListOptions = {}) {
  const { sliceMs = SLICE_MS } = options
  const reader = new ListReader(db, options)
  const codes = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  return {
    /**
     * One page, newest first, and the total, both of one snapshot. Undefined if there is more to
     * count than fits a time slice: the next call continues from there.
     */
    listLinksSlice(query: ListQuery): Matches | undefined {
      const endsAt = performance.now() + sliceMs
      return reader.list(query, () => performance.now() >= endsAt)
    },

    /** The same without a time slice. */
    listLinks(query: ListQuery): Matches {
      const matches = reader.list(query, () => false)
      assert(matches !== undefined, 'a count without a time slice is finished')
      return matches
    },

    /** The codes of all accounts in the order of their ids: the next `limit` after `id`. */
    codesAfter({ id, limit }: { id: number; limit: number }): { id: number; code: Code }[] {
      return codes.all(id, limit)
    },
  }
}

export type LinkLists = ReturnType<typeof linkLists>

class ListReader {
  readonly #db: Database
  readonly #statements
  readonly #walkMax: number
  readonly #indexSizes: typeof CHUNK_SIZES | undefined
  readonly #allLinks: (accountId: AccountId) => LinkSource
  readonly #search: (accountId: AccountId, text: string) => LinkSource
  readonly #changes: ChangeLog
  readonly #lists = new LRUCache<string, CountedList>({
    max: LISTS_MAX,
    maxSize: NUMBERS_MAX,
    sizeCalculation: ({ index }) => index.size + 1,
  })

  constructor(db: Database, options: ListOptions) {
    this.#db = db
    this.#statements = prepare(db)
    this.#walkMax = options.walkMax ?? WALK_MAX
    this.#indexSizes = options.chunk
    this.#allLinks = accountLinks(db, options.chunkLinks ?? CHUNK_LINKS)
    this.#search = searches(db, options.search)
    this.#changes = new ChangeLog(db)
  }

  list(query: ListQuery, isOver: IsOver): Matches | undefined {
    return this.#db.transaction(() => {
      this.#invalidateChanged()
      const { search: text = '' } = query
      if (text === '') return this.#listAll(query, isOver)
      return isSearchable(text) ? this.#find(query, text, isOver) : { total: 0, links: [] }
    })()
  }

  #listAll(query: ListQuery, isOver: IsOver): Matches | undefined {
    const { accountId, limit, offset } = query
    const { linkCount, walk } = this.#statements
    const total = linkCount.get(accountId)?.total ?? 0
    if (offset >= total) return { total, links: [] }
    if (offset <= this.#walkMax) return { total, links: walk.all(accountId, limit, offset) }
    return this.#find(query, '', isOver)
  }

  #find(query: ListQuery, text: string, isOver: IsOver): Matches | undefined {
    const { accountId, limit, offset } = query
    const { newest, byIds } = this.#statements
    const index = this.#indexOf(accountId, text)
    const total = index.count(newest.get(accountId)?.id ?? 0, isOver)
    this.#keep(accountId, text, index)
    if (total === undefined) return undefined
    const ids = index.page(limit, offset)
    return { total, links: ids.length > 0 ? byIds.all(JSON.stringify(ids)) : [] }
  }

  #indexOf(accountId: AccountId, text: string): CountIndex {
    const kept = this.#lists.get(keyOf(accountId, text))
    if (kept) return kept.index
    const source = text === '' ? this.#allLinks(accountId) : this.#search(accountId, text)
    return new CountIndex(source, this.#indexSizes)
  }

  /** Sets the entry again, because the LRU cache takes its size only then. */
  #keep(accountId: AccountId, text: string, index: CountIndex): void {
    const key = keyOf(accountId, text)
    this.#lists.delete(key)
    this.#lists.set(key, { accountId, isSearch: text !== '', index })
  }

  /** Invalidates cached counts that changes since the last read have made stale. */
  #invalidateChanged(): void {
    const changes = this.#changes.read()
    if (changes === undefined) this.#lists.clear()
    if (!changes?.length) return
    for (const list of this.#lists.values()) {
      for (const change of changes) if (change.accountId === list.accountId) apply(list, change)
    }
  }
}

const keyOf = (accountId: AccountId, text: string): string => `${accountId} ${text}`

function prepare(db: Database) {
  return {
    linkCount: db.prepare<{ total: number }, [AccountId]>(
      'SELECT link_count AS total FROM accounts WHERE id = ?',
    ),
    walk: db.prepare<Link, [AccountId, number, number]>(
      `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? ORDER BY id DESC LIMIT ? OFFSET ?`,
    ),
    byIds: db.prepare<Link, [string]>(
      `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))
       ORDER BY id DESC`,
    ),
    newest: db.prepare<{ id: number | null }, [AccountId]>(
      'SELECT max(id) AS id FROM links WHERE account_id = ?',
    ),
  }
}

function apply({ isSearch, index }: CountedList, { id, isDeleted }: LinkChange): void {
  if (isSearch) index.invalidate(id)
  else if (isDeleted) index.remove(id)
}

/** All links of an account, without a search. */
function accountLinks(db: Database, chunkLinks: number): (accountId: AccountId) => LinkSource {
  const nth = db.prepare<{ id: number }, [AccountId, number, number]>(NTH_LINK_AFTER)
  const range = 'FROM links WHERE account_id = ?1 AND id > ?2 AND id <= ?3'
  const rangeCount = db.prepare<{ count: number }, [AccountId, number, number]>(
    `SELECT count(*) AS count ${range}`,
  )
  const rangeIds = db.prepare<{ id: number }, [AccountId, number, number]>(
    `SELECT id ${range} ORDER BY id`,
  )
  return (accountId) => ({
    count({ after, upTo }) {
      const last = nth.get(accountId, after, chunkLinks - 1)?.id
      const isWhole = last !== undefined && last <= upTo
      const end = isWhole ? last : upTo
      const count = isWhole ? chunkLinks : (rangeCount.get(accountId, after, end)?.count ?? 0)
      return { upTo: end, count, ids: undefined, bytes: count * LINK_BYTES }
    },
    ids: ({ after, upTo }) => rangeIds.all(accountId, after, upTo).map(({ id }) => id),
  })
}

/** Bytes of the index per link: a chunk has some thousand links. */
const LINK_BYTES = 64

/** A link's URL was changed or the link deleted; see drizzle/0004_link_changes.sql. */
interface LinkChange {
  accountId: AccountId
  id: number
  isDeleted: boolean
}

/** The log of changes to existing links, read from where the last read ended. */
class ChangeLog {
  readonly #after
  #lastSeq = 0

  constructor(db: Database) {
    this.#after = db.prepare<
      { seq: number; accountId: AccountId; id: number; isDeleted: number },
      [number]
    >(
      `SELECT seq, account_id AS accountId, link_id AS id, is_deleted AS isDeleted
       FROM link_changes WHERE seq > ? ORDER BY seq`,
    )
  }

  /**
   * The changes since the last read; undefined if there were so many that the log has only the
   * newest of them. Call it in the transaction whose reads depend on the changes.
   */
  read(): LinkChange[] | undefined {
    const changes = this.#after.all(this.#lastSeq)
    const [first] = changes
    const isComplete = first === undefined || first.seq === this.#lastSeq + 1
    this.#lastSeq = changes.at(-1)?.seq ?? this.#lastSeq
    if (!isComplete) return undefined
    return changes.map(({ accountId, id, isDeleted }) => ({
      accountId,
      id,
      isDeleted: isDeleted === 1,
    }))
  }
}

/** Enough for some million links. Counts are kept, so that the next request continues. */
const DEADLINE_MS = 10_000

interface LinkPagesOptions {
  deadlineMs?: number
  /** Throws if the account has too many long responses that were not sent yet. */
  requireRoom?: (accountId: AccountId) => void
}

/** Finds pages of links on the reader thread, in time slices between which other calls run. */
export class LinkPages {
  readonly #reader: Caller<LinkLists>
  readonly #deadlineMs: number
  readonly #requireRoom: (accountId: AccountId) => void
  /** The latest page of each account that has one running or waiting. */
  readonly #latest = new Map<AccountId, Promise<Matches>>()

  constructor(
    reader: Caller<LinkLists>,
    { deadlineMs = DEADLINE_MS, requireRoom = () => {} }: LinkPagesOptions = {},
  ) {
    this.#reader = reader
    this.#deadlineMs = deadlineMs
    this.#requireRoom = requireRoom
  }

  /**
   * One page and its exact total. The thread works on one page per account at a time, so that the
   * share of an account does not grow with its requests. Throws `search_timeout`, also when
   * `signal` is aborted.
   */
  async find(query: ListQuery, signal?: AbortSignal): Promise<Matches> {
    const { accountId } = query
    const own = this.#findAfter(this.#latest.get(accountId), query, signal)
    this.#latest.set(accountId, own)
    try {
      return await own
    } finally {
      if (this.#latest.get(accountId) === own) this.#latest.delete(accountId)
    }
  }

  async #findAfter(
    earlier: Promise<Matches> | undefined,
    query: ListQuery,
    signal: AbortSignal | undefined,
  ): Promise<Matches> {
    const endsAt = performance.now() + this.#deadlineMs
    await earlier?.catch(() => {})
    this.#requireRoom(query.accountId)
    return this.#find(query, () => performance.now() >= endsAt || signal?.aborted === true)
  }

  async #find(query: ListQuery, isOver: () => boolean): Promise<Matches> {
    // A list without a search takes one slice, nearly always: it runs before every search.
    let background = Boolean(query.search)
    while (!isOver()) {
      const matches = await this.#reader.call('listLinksSlice', query, { background })
      if (matches) return matches
      background = true
    }
    throw new AppError('search_timeout', '', { headers: { 'Retry-After': '1' } })
  }
}
