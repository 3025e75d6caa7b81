import type { Database } from 'bun:sqlite'
import { LRUCache } from 'lru-cache'
import type { AccountId } from '../accounts/store.ts'
import { assert } from '../lib/assert.ts'
import { changeFollower, type LinkChange } from './changes.ts'
import type { Code } from './code.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'
import { isSearchable, NTH_LINK_AFTER, type Search, searcher } from './search.ts'
import { ID_MAX, type MatchSource, Stretches } from './stretches.ts'

export interface ListQuery {
  accountId: AccountId
  limit: number
  offset: number
  search?: string | undefined
}

export interface Matches {
  total: number
  links: LinkRow[]
}

/** Links or matches of a stretch: counting it takes about half a millisecond. */
const STRETCH = 4096
/** Pages so near the newest link are reached by walking: some 2 ms at most. */
const WALK_MAX = 20 * STRETCH
/** Lists whose stretches are remembered, and their stretches together: some 20 MB. */
const LISTS_MAX = 256
const STRETCHES_MAX = 65_536

/** A list whose stretches are counted. `search` is absent where it is of all links. */
interface CountedList {
  accountId: AccountId
  search: Search | undefined
  source: MatchSource
  stretches: Stretches
}

/** Runs on the reader thread: a list may have to count many rows. Tests pass a small `stretch`. */
export function linkLists(db: Database, { stretch = STRETCH, walkMax = WALK_MAX } = {}) {
  const linkCount = db.prepare<{ total: number }, [AccountId]>(
    'SELECT link_count AS total FROM accounts WHERE id = ?',
  )
  const walk = db.prepare<LinkRow, [AccountId, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? ORDER BY id DESC LIMIT ? OFFSET ?`,
  )
  const byIds = db.prepare<LinkRow, [string]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))
     ORDER BY id DESC`,
  )
  const codes = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  const allLinks = accountLinks(db, stretch)
  const searches = searcher(db, { stretch })
  const changesSince = changeFollower(db)
  const lists = new LRUCache<string, CountedList>({
    ...{ max: LISTS_MAX, maxSize: STRETCHES_MAX },
    sizeCalculation: ({ stretches }) => stretches.length,
  })

  /** Everything that is remembered comes to speak of the snapshot that is read from now on. */
  function catchUp(): void {
    const changes = changesSince()
    if (changes === undefined) lists.clear()
    if (!changes?.length) return
    for (const list of lists.values()) {
      for (const change of changes) if (change.accountId === list.accountId) tell(list, change)
    }
  }

  function open(accountId: AccountId, text: string): CountedList {
    const search = text === '' ? undefined : searches(accountId, text)
    const source = search?.source ?? allLinks(accountId)
    return {
      accountId,
      search,
      source,
      stretches: new Stretches(source, { matchesMax: 2 * stretch }),
    }
  }

  /** Works with what is remembered of a list, and remembers what comes to be counted. */
  function withList<Result>(accountId: AccountId, text: string, work: (of: CountedList) => Result) {
    const key = `${accountId} ${text}`
    const list = lists.get(key) ?? open(accountId, text)
    const result = work(list)
    // Set anew, because its size is taken only then. A list of a single stretch is soon counted.
    lists.delete(key)
    if (list.stretches.length > 0) lists.set(key, list)
    return result
  }

  const rows = (ids: readonly number[]): LinkRow[] =>
    ids.length > 0 ? byIds.all(JSON.stringify(ids)) : []

  function listAll({ accountId, limit, offset }: ListQuery, isSlice: boolean): Matches | undefined {
    const total = linkCount.get(accountId)?.total ?? 0
    if (offset >= total) return { total, links: [] }
    if (offset <= walkMax) return { total, links: walk.all(accountId, limit, offset) }
    return withList(accountId, '', ({ source, stretches }) => {
      const isCounted = stretches.countTo(offset, total, mostOf(source, isSlice))
      return isCounted ? { total, links: rows(stretches.page(limit, offset)) } : undefined
    })
  }

  function find(query: ListQuery, text: string, isSlice: boolean): Matches | undefined {
    const { accountId, limit, offset } = query
    return withList(accountId, text, ({ source, search, stretches }) => {
      const indexed = stretches.count(mostOf(source, isSlice))
      if (indexed === undefined) return undefined
      const unindexed = search?.unindexed() ?? []
      const head = unindexed.slice(offset, offset + limit)
      const behind = Math.max(0, offset - unindexed.length)
      const links = [...head, ...rows(stretches.page(limit - head.length, behind))]
      return { total: unindexed.length + indexed, links }
    })
  }

  function list(query: ListQuery, { isSlice }: { isSlice: boolean }): Matches | undefined {
    return db.transaction(() => {
      catchUp()
      const { search = '' } = query
      if (search === '') return listAll(query, isSlice)
      return isSearchable(search) ? find(query, search, isSlice) : { total: 0, links: [] }
    })()
  }

  return {
    /**
     * One page, newest first, and how many there are in all; both of one snapshot. Undefined when
     * there is more to count than some milliseconds' worth: the next call goes on from there.
     */
    listLinksSlice: (query: ListQuery) => list(query, { isSlice: true }),

    /** The same, however long it takes. */
    listLinks(query: ListQuery): Matches {
      const matches = list(query, { isSlice: false })
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

const mostOf = ({ stretchesPerSlice }: MatchSource, isSlice: boolean) => ({
  stretchesMax: isSlice ? stretchesPerSlice : Number.POSITIVE_INFINITY,
})

function tell({ search, stretches }: CountedList, { id, isDeleted }: LinkChange): void {
  if (search) stretches.doubt(id)
  else if (isDeleted) stretches.remove(id)
}

/** All links of an account, without a search. */
function accountLinks(db: Database, stretch: number): (accountId: AccountId) => MatchSource {
  const end = db.prepare<{ id: number }, [AccountId, number, number]>(NTH_LINK_AFTER)
  const span = 'FROM links WHERE account_id = ?1 AND id > ?2 AND id <= ?3'
  const spanCount = db.prepare<{ count: number }, [AccountId, number, number]>(
    `SELECT count(*) AS count ${span}`,
  )
  const page = db.prepare<{ id: number }, [AccountId, number, number, number, number]>(
    `SELECT id ${span} ORDER BY id DESC LIMIT ?4 OFFSET ?5`,
  )
  return (accountId) => ({
    stretchesPerSlice: 60,
    next(after) {
      const last = end.get(accountId, after, stretch - 1)?.id
      if (last !== undefined) return { count: stretch, end: last }
      return { ...this.count({ after, upTo: ID_MAX }), end: undefined }
    },
    count: ({ after, upTo }) => spanCount.get(accountId, after, upTo) ?? { count: 0 },
    page: ({ after, upTo }, limit, offset) =>
      page.all(accountId, after, upTo, limit, offset).map(({ id }) => id),
  })
}
