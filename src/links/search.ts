import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Code } from './code.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'

/**
 * Substring search over code and URL. The index costs ten times what storing a link does, so links
 * enter it behind their creation, in the order of their ids: those up to
 * `search_progress.indexed_to` are looked up in it, the few after that are read. A search sees
 * every link either way.
 */

/** The index knows three characters and more; a shorter text is looked for row by row. */
const TRIGRAM = 3
/** Of account ?1 and link ?2, or of all links of account ?1: see drizzle/0001_search.sql. */
const ROWID = '(?1 << 32 | ?2)'
const ROWIDS = 'rowid BETWEEN ?1 << 32 AND (?1 << 32 | 0xffffffff)'

/** Runs on the writer thread, inside the transaction of its batch. */
export function searchWrites(db: Database) {
  const progress = db.prepare<{ indexedTo: number }, []>(
    'SELECT indexed_to AS indexedTo FROM search_progress',
  )
  const waiting = db.prepare<LinkRow, [number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const advance = db.prepare<null, [number]>('UPDATE search_progress SET indexed_to = ?')
  const insert = db.prepare<null, [AccountId, number, Code, string]>(
    `INSERT INTO links_search (rowid, code, url) VALUES (${ROWID}, ?3, ?4)`,
  )
  return {
    /** Takes the next links into the index, at most `most`. Returns whether others may wait. */
    indexLinks({ most }: { most: number }): boolean {
      const links = waiting.all(progress.get()?.indexedTo ?? 0, most)
      for (const { id, accountId, code, url } of links) insert.run(accountId, id, code, url ?? '')
      const last = links.at(-1)
      if (last) advance.run(last.id)
      return links.length === most
    },
  }
}

export type SearchWrites = ReturnType<typeof searchWrites>

/** Keeps the index true to a link that changes or goes. One that is not in it yet costs nothing. */
export function indexKeeper(db: Database) {
  const update = db.prepare<null, [AccountId, number, Code, string]>(
    `UPDATE links_search SET code = ?3, url = ?4 WHERE rowid = ${ROWID}`,
  )
  const remove = db.prepare<null, [AccountId, number]>(
    `DELETE FROM links_search WHERE rowid = ${ROWID}`,
  )
  return {
    update: ({ accountId, id, code, url }: LinkRow) => update.run(accountId, id, code, url ?? ''),
    remove: (accountId: AccountId, id: number) => remove.run(accountId, id),
  }
}

export interface Matches {
  total: number
  links: LinkRow[]
}

export interface SearchQuery {
  accountId: AccountId
  search: string
  limit: number
  offset: number
}

/** Makes the search for one connection. Call it inside a transaction: it reads more than once. */
export function searcher(db: Database): (query: SearchQuery) => Matches {
  const byIndex = indexSearch(db)
  const byRow = rowSearch(db)
  return (query) => {
    // No stored text holds a NUL, and SQLite would end the search term there.
    if (query.search.includes('\0')) return { total: 0, links: [] }
    return [...query.search].length >= TRIGRAM ? byIndex(query) : byRow(query)
  }
}

function indexSearch(db: Database) {
  const unindexed = db.prepare<LinkRow, [AccountId]>(
    `SELECT ${LINK_COLUMNS} FROM links
     WHERE account_id = ?1 AND id > (SELECT indexed_to FROM search_progress) ORDER BY id DESC`,
  )
  const indexed = `FROM links_search WHERE links_search MATCH ?2 AND ${ROWIDS}`
  const count = db.prepare<{ total: number }, [AccountId, string]>(
    `SELECT count(*) AS total ${indexed}`,
  )
  const page = db.prepare<LinkRow, [AccountId, string, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE id IN (
       SELECT rowid & 0xffffffff ${indexed} ORDER BY rowid DESC LIMIT ?3 OFFSET ?4
     ) ORDER BY id DESC`,
  )
  return ({ accountId, search, limit, offset }: SearchQuery): Matches => {
    const text = search.toLowerCase()
    const newest = unindexed
      .all(accountId)
      .filter(({ code, url }) => holds(code, text) || (url !== null && holds(url, text)))
    const term = `"${search.replaceAll('"', '""')}"`
    const head = newest.slice(offset, offset + limit)
    const rest = limit - head.length
    const behind = Math.max(0, offset - newest.length)
    return {
      total: newest.length + (count.get(accountId, term)?.total ?? 0),
      links: rest > 0 ? [...head, ...page.all(accountId, term, rest, behind)] : head,
    }
  }
}

const holds = (text: string, lowerCase: string) => text.toLowerCase().includes(lowerCase)

function rowSearch(db: Database) {
  const matches = `FROM links WHERE account_id = ?1 AND EXISTS (
    SELECT 1 FROM json_each(?2) WHERE instr(lower(code), value) > 0 OR instr(lower(url), value) > 0
  )`
  const count = db.prepare<{ total: number }, [AccountId, string]>(
    `SELECT count(*) AS total ${matches}`,
  )
  const page = db.prepare<LinkRow, [AccountId, string, number, number]>(
    `SELECT ${LINK_COLUMNS} ${matches} ORDER BY id DESC LIMIT ?3 OFFSET ?4`,
  )
  return ({ accountId, search, limit, offset }: SearchQuery): Matches => {
    const term = JSON.stringify(spellings(search))
    return {
      total: count.get(accountId, term)?.total ?? 0,
      links: page.all(accountId, term, limit, offset),
    }
  }
}

/** The ways to write a short text that SQLite's lower() leaves apart: it knows ASCII alone. */
function spellings(search: string): string[] {
  const lettersOf = (letter: string) =>
    letter < '\x80' ? [letter.toLowerCase()] : [letter.toLowerCase(), letter.toUpperCase()]
  return [...search].reduce(
    (starts, letter) => starts.flatMap((start) => lettersOf(letter).map((end) => start + end)),
    [''],
  )
}
