import type { Database } from 'bun:sqlite'
import { prepareAddressed } from '../addresses/names.ts'
import { hostOf } from '../blocklist/match.ts'
import { type ScanCalls, scan } from '../db/subject.ts'
import { AppError, retryAfter } from '../errors.ts'
import { LINK_COLUMNS, type Link } from '../links/link.ts'
import { PROPERTY_TEXT } from '../links/search-index.ts'
import { ID_MAX } from './count-index.ts'
import { comparison, isSearchable, type Row } from './search.ts'

/** A search over the links of all accounts, for the owner of the service. */

/** Where a search continues: before this row of the index, or before this id of the others. */
type Cursor = { id: number } | { rowid: number }

interface SliceQuery {
  text: string
  /** Absent for the beginning. */
  from?: Cursor | undefined
  limit: number
}

interface Slice {
  links: Link[]
  /** Undefined: nothing is left to compare. */
  next: Cursor | undefined
}

const ROWS_AT_ONCE = 64
const CANDIDATES_AT_ONCE = 512
/** Rows of the index have the account in the upper bits: see drizzle/0000_tables.sql. */
const ID_SPAN = ID_MAX + 1
/** Time after which a call ends, so that lists of other accounts do not wait. */
const SLICE_MS = 3

/** Whether the index can find it: it has at least one word of three characters. */
export const isSearchableInAll = (text: string): boolean =>
  isSearchable(text, true) && comparison(text, true).query !== undefined

export const searchAllScans = {
  /** See `findInAll`, which calls it until it has enough. The text is searchable. */
  allSlice: scan((db: Database) => {
    const rows = `SELECT id, code, url, ${PROPERTY_TEXT} AS text FROM links`
    const indexedTo = db.prepare<{ id: number }, []>('SELECT indexed_to AS id FROM search_progress')
    const notIndexed = db.prepare<Row, [number, number]>(
      `${rows} WHERE id > ?1 AND id < ?2 ORDER BY id DESC LIMIT ${ROWS_AT_ONCE}`,
    )
    const candidates = db.prepare<{ rowid: number }, [string, number]>(
      `SELECT rowid FROM links_search WHERE links_search MATCH ?1 AND rowid < ?2
       ORDER BY rowid DESC LIMIT ${CANDIDATES_AT_ONCE}`,
    )
    const byIds = db.prepare<Row, [string]>(
      `${rows} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id`,
    )
    const linksOf = prepareAddressed<Link, [string]>(
      db,
      `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (SELECT value FROM json_each(?))`,
    )
    return ({ text, from = { id: ID_MAX }, limit }: SliceQuery): Slice => {
      const { query = '', compare } = comparison(text, true)
      const endsAt = performance.now() + SLICE_MS
      const ids: number[] = []
      let cursor: Cursor | undefined = from
      while (cursor && ids.length < limit && performance.now() < endsAt) {
        if ('id' in cursor) {
          const found: Row[] = notIndexed.all(indexedTo.get()?.id ?? 0, cursor.id)
          ids.push(...compare(found).ids)
          const last = found.length < ROWS_AT_ONCE ? undefined : found.at(-1)
          cursor = last ? { id: last.id } : { rowid: Number.MAX_SAFE_INTEGER }
        } else {
          const found: { rowid: number }[] = candidates.all(query, cursor.rowid)
          let at = 0
          // Rows of any length may be among them.
          do {
            const some = found.slice(at, at + ROWS_AT_ONCE).map(({ rowid }) => rowid % ID_SPAN)
            ids.push(...compare(byIds.all(JSON.stringify(some))).ids)
            at += ROWS_AT_ONCE
          } while (at < found.length && performance.now() < endsAt)
          const isLast = at >= found.length && found.length < CANDIDATES_AT_ONCE
          cursor = isLast ? undefined : found[Math.min(at, found.length) - 1]
        }
      }
      return { links: linksOf.all(JSON.stringify(ids)), next: cursor }
    }
  }),
}

const DEADLINE_MS = 10_000

export interface FoundLinks {
  /** Newest first, at most `limit`. */
  links: Link[]
  /** There are others. */
  hasMore: boolean
}

/** Links of all accounts whose texts have all words. Throws `search_timeout`. */
export async function findInAll(
  { lists }: { lists: ScanCalls<typeof searchAllScans> },
  { text, limit }: { text: string; limit: number },
): Promise<FoundLinks> {
  const endsAt = performance.now() + DEADLINE_MS
  const found = new Map<number, Link>()
  let from: Cursor | undefined
  do {
    if (performance.now() > endsAt) throw new AppError('search_timeout', '', retryAfter(1))
    const slice: Slice = await lists.allSlice(
      { text, from, limit: limit + 1 },
      { background: true },
    )
    for (const link of slice.links) found.set(link.id, link)
    from = slice.next
  } while (from && found.size <= limit)
  const links = [...found.values()].sort((a, b) => b.id - a.id)
  return { links: links.slice(0, limit), hasMore: links.length > limit }
}

const COUNTED_MAX = 10_000
const COUNT_DEADLINE_MS = 3000

export interface LinksToHost {
  links: number
  accounts: number
  /** There may be others. */
  hasMore: boolean
}

/** How many links lead to the host, in the form of `hostOf`, or to a name below it. */
export async function countLinksTo(
  { lists }: { lists: ScanCalls<typeof searchAllScans> },
  host: string,
): Promise<LinksToHost> {
  const endsAt = performance.now() + COUNT_DEADLINE_MS
  const leadsThere = ({ url }: Link): boolean => {
    const found = url === null ? '' : hostOf(url)
    return found === host || found.endsWith(`.${host}`)
  }
  const ids = new Set<number>()
  const accounts = new Set<number>()
  let from: Cursor | undefined
  do {
    const query = { text: host, from, limit: 500 }
    const slice: Slice = await lists.allSlice(query, { background: true })
    for (const { id, accountId } of slice.links.filter(leadsThere)) {
      ids.add(id)
      accounts.add(accountId)
    }
    from = slice.next
  } while (from && ids.size < COUNTED_MAX && performance.now() < endsAt)
  return { links: ids.size, accounts: accounts.size, hasMore: from !== undefined }
}
