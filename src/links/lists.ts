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

/** Links of a chunk, where all links are counted: takes about 0.1 ms. */
const CHUNK_LINKS = 4096
/** Pages so near the newest link are found without counting: some 2 ms at most. */
const WALK_MAX = 20 * CHUNK_LINKS
/** How long a call works. Calls of other accounts wait for at most one slice. */
const SLICE_MS = 3
/** Lists whose counts are kept, and their numbers together: some 20 MB. */
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
export function linkLists(
  db: Database,
  { chunkLinks = CHUNK_LINKS, walkMax = WALK_MAX, sliceMs = SLICE_MS, ...sizes }: ListOptions = {},
) {
  const linkCount = db.prepare<{ total: number }, [AccountId]>(
    'SELECT link_count AS total FROM accounts WHERE id = ?',
  )
  const walk = db.prepare<Link, [AccountId, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? ORDER BY id DESC LIMIT ? OFFSET ?`,
  )
  const byIds = db.prepare<Link, [string]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))
     ORDER BY id DESC`,
  )
  const codes = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  const newest = db.prepare<{ id: number | null }, [AccountId]>(
    'SELECT max(id) AS id FROM links WHERE account_id = ?',
  )
  const allLinks = accountLinks(db, chunkLinks)
  const search = searches(db, sizes.search)
  const changesSince = changeFollower(db)
  const lists = new LRUCache<string, CountedList>({
    max: LISTS_MAX,
    maxSize: NUMBERS_MAX,
    sizeCalculation: ({ index }) => index.size + 1,
  })

  /** Invalidates kept counts that changes since the last read have made stale. */
  function catchUp(): void {
    const changes = changesSince()
    if (changes === undefined) lists.clear()
    if (!changes?.length) return
    for (const list of lists.values()) {
      for (const change of changes) if (change.accountId === list.accountId) apply(list, change)
    }
  }

  /** Counts on in the account's list. Undefined when the slice was over first. */
  function count(accountId: AccountId, text: string, isOver: IsOver) {
    const key = `${accountId} ${text}`
    const list = lists.get(key) ?? {
      accountId,
      isSearch: text !== '',
      index: new CountIndex(
        text === '' ? allLinks(accountId) : search(accountId, text),
        sizes.chunk,
      ),
    }
    const total = list.index.count(newest.get(accountId)?.id ?? 0, isOver)
    // Set anew, because its size is taken only then.
    lists.delete(key)
    lists.set(key, list)
    return total === undefined ? undefined : { total, index: list.index }
  }

  const rows = (ids: readonly number[]): Link[] =>
    ids.length > 0 ? byIds.all(JSON.stringify(ids)) : []

  function listAll({ accountId, limit, offset }: ListQuery, isOver: IsOver): Matches | undefined {
    const total = linkCount.get(accountId)?.total ?? 0
    if (offset >= total) return { total, links: [] }
    if (offset <= walkMax) return { total, links: walk.all(accountId, limit, offset) }
    return find({ accountId, limit, offset }, '', isOver)
  }

  function find(query: ListQuery, text: string, isOver: IsOver): Matches | undefined {
    const counted = count(query.accountId, text, isOver)
    if (!counted) return undefined
    const { total, index } = counted
    return { total, links: rows(index.page(query.limit, query.offset)) }
  }

  function list(query: ListQuery, isOver: IsOver): Matches | undefined {
    return db.transaction(() => {
      catchUp()
      const { search: text = '' } = query
      if (text === '') return listAll(query, isOver)
      return isSearchable(text) ? find(query, text, isOver) : { total: 0, links: [] }
    })()
  }

  return {
    /**
     * One page, newest first, and how many there are in all; both of one snapshot. Undefined when
     * there is more to count than fits a time slice: the next call goes on from there.
     */
    listLinksSlice(query: ListQuery): Matches | undefined {
      const endsAt = performance.now() + sliceMs
      return list(query, () => performance.now() >= endsAt)
    },

    /** The same, however long it takes. */
    listLinks(query: ListQuery): Matches {
      const matches = list(query, () => false)
      assert(matches !== undefined, 'a count without a bound comes to its end')
      return matches
    },

    /** Every account's codes in the order of their ids: the next `limit` after `id`. */
    codesAfter({ id, limit }: { id: number; limit: number }): { id: number; code: Code }[] {
      return codes.all(id, limit)
    },
  }
}

export type LinkLists = ReturnType<typeof linkLists>

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

/** Of the index that is read, so that a chunk holds some thousand links. */
const LINK_BYTES = 64

/** A link's URL was changed or the link deleted; see drizzle/0004_link_changes.sql. */
interface LinkChange {
  accountId: AccountId
  id: number
  isDeleted: boolean
}

/**
 * Gives, at every call, what happened to links that were there before, since the call before; or
 * undefined when so much happened that the log holds the newest part alone. Call it inside the
 * transaction whose reads its answer is about.
 */
function changeFollower(db: Database): () => LinkChange[] | undefined {
  const after = db.prepare<
    { seq: number; accountId: AccountId; id: number; isDeleted: number },
    [number]
  >(
    `SELECT seq, account_id AS accountId, link_id AS id, is_deleted AS isDeleted
     FROM link_changes WHERE seq > ? ORDER BY seq`,
  )
  let known = 0
  return () => {
    const changes = after.all(known)
    const [first] = changes
    const isWhole = first === undefined || first.seq === known + 1
    known = changes.at(-1)?.seq ?? known
    if (!isWhole) return undefined
    return changes.map(({ accountId, id, isDeleted }) => ({
      ...{ accountId, id, isDeleted: isDeleted === 1 },
    }))
  }
}

/** Enough for some million links; what was counted is kept, so that the next try goes on. */
const DEADLINE_MS = 10_000

interface LinkPagesOptions {
  deadlineMs?: number
  /** Throws when the account has so many long responses unsent that it gets no further page. */
  requireRoom?: (accountId: AccountId) => void
}

/** Finds pages of links on the reader thread, in slices that let other calls in between. */
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
   * One page and its total, exact. An account has one at a time on the thread, so that its share
   * does not grow with its requests. Throws `search_timeout`, also when `signal` is aborted.
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
    // A list without a search is found at once, nearly always: it goes before every search.
    let background = Boolean(query.search)
    while (!isOver()) {
      const matches = await this.#reader.call('listLinksSlice', query, { background })
      if (matches) return matches
      background = true
    }
    throw new AppError('search_timeout', '', { headers: { 'Retry-After': '1' } })
  }
}
