import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { assert } from '../lib/assert.ts'
import type { Code } from './code.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'
import { type Counted, ID_MAX, type MatchSource, type Span } from './stretches.ts'

/**
 * Substring search over code and URL. The index costs ten times what storing a link does, so links
 * enter it behind their creation, in the order of their ids: those up to
 * `search_progress.indexed_to` are looked up in it, the few after that are read. A search sees
 * every link either way.
 */

/** The index knows three characters and more; a shorter text is looked for row by row. */
const TRIGRAM = 3
/** Of account ?1 and link ?2: see drizzle/0001_search.sql. */
const ROWID = '(?1 << 32 | ?2)'

/** The link of account ?1 that comes ?3 links after the next one after the id ?2. */
export const NTH_LINK_AFTER =
  'SELECT id FROM links WHERE account_id = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3'

/**
 * Pieces of the index that are merged into one. With SQLite's own 4 every link is written again
 * more often: taking one in costs twice as much. From 16 on a merge comes all at once.
 */
const MERGED_TOGETHER = 8

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
  const merged = db.prepare<{ v: number }, []>(
    `SELECT v FROM links_search_config WHERE k = 'automerge'`,
  )
  const setMerged = db.prepare<null, [number]>(
    `INSERT INTO links_search (links_search, rank) VALUES ('automerge', ?)`,
  )
  return {
    /** Takes the next links into the index, at most `most`. Returns whether others may wait. */
    indexLinks({ most }: { most: number }): boolean {
      if (merged.get()?.v !== MERGED_TOGETHER) setMerged.run(MERGED_TOGETHER)
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

/** One search over one account: most of its matches by id, and the newest links one by one. */
export interface Search {
  source: MatchSource
  /** Matches among the links that are not in the index yet, newest first: none is in `source`. */
  unindexed(): LinkRow[]
}

/** `text` is not empty. */
export type Searcher = (accountId: AccountId, text: string) => Search

/** Makes the searches of one connection. `stretch`: how many matches or links a stretch has. */
export function searcher(db: Database, { stretch }: { stretch: number }): Searcher {
  const byIndex = indexSearch(db, stretch)
  const byRow = rowSearch(db, stretch)
  return (accountId, text) => {
    const search = [...text].length >= TRIGRAM ? byIndex : byRow
    return search(accountId, text)
  }
}

/** Whether any stored text can hold it: none holds a NUL, where SQLite would end a search term. */
export const isSearchable = (text: string): boolean => !text.includes('\0')

/** A stretch has `stretch` matches, however many links lie between them. */
function indexSearch(db: Database, stretch: number): Searcher {
  const unindexed = db.prepare<LinkRow, [AccountId]>(
    `SELECT ${LINK_COLUMNS} FROM links
     WHERE account_id = ?1 AND id > (SELECT indexed_to FROM search_progress) ORDER BY id DESC`,
  )
  const matches = `FROM links_search WHERE links_search MATCH ?2
    AND rowid BETWEEN (?1 << 32 | ?3) + 1 AND (?1 << 32 | ?4)`
  const count = db.prepare<{ count: number }, [AccountId, string, number, number]>(
    `SELECT count(*) AS count ${matches}`,
  )
  const next = db.prepare<
    { count: number; end: number },
    [AccountId, string, number, number, number]
  >(
    `SELECT count(*) AS count, max(rowid) & ${ID_MAX} AS end
     FROM (SELECT rowid ${matches} ORDER BY rowid LIMIT ?5)`,
  )
  const page = db.prepare<{ id: number }, [AccountId, string, number, number, number, number]>(
    `SELECT rowid & ${ID_MAX} AS id ${matches} ORDER BY rowid DESC LIMIT ?5 OFFSET ?6`,
  )
  return (accountId, text) => {
    const lowerCase = text.toLowerCase()
    const term = `"${text.replaceAll('"', '""')}"`
    return {
      source: {
        stretchesPerSlice: 6,
        next(after) {
          const found = next.get(accountId, term, after, ID_MAX, stretch)
          if (found?.count === stretch) return found
          return { count: found?.count ?? 0, end: undefined }
        },
        count: ({ after, upTo }) => count.get(accountId, term, after, upTo) ?? { count: 0 },
        page: ({ after, upTo }, limit, offset) =>
          page.all(accountId, term, after, upTo, limit, offset).map(({ id }) => id),
      },
      unindexed: () =>
        unindexed
          .all(accountId)
          .filter(
            ({ code, url }) => holds(code, lowerCase) || (url !== null && holds(url, lowerCase)),
          ),
    }
  }
}

const holds = (text: string, lowerCase: string) => text.toLowerCase().includes(lowerCase)

/** Matches of a stretch that are remembered one by one: its rows need not be read for a page. */
const FEW = 16

/** A stretch has `stretch` links, however few of them match: no count reads more rows. */
function rowSearch(db: Database, stretch: number): Searcher {
  const end = db.prepare<{ id: number }, [AccountId, number, number]>(NTH_LINK_AFTER)
  const statements = Array.from({ length: SPELLINGS_MAX }, (_, index) => {
    const likes = Array.from({ length: index + 1 }, (_, n) => {
      return `url LIKE ?${n + 4} ESCAPE '\\' OR code LIKE ?${n + 4} ESCAPE '\\'`
    })
    const matches = `FROM links
      WHERE account_id = ?1 AND id > ?2 AND id <= ?3 AND (${likes.join(' OR ')})`
    return {
      page: db.prepare<{ id: number }, (number | string)[]>(
        `SELECT id ${matches} ORDER BY id DESC LIMIT ? OFFSET ?`,
      ),
      count: db.prepare<{ count: number }, (number | string)[]>(
        `SELECT count(*) AS count ${matches}`,
      ),
    }
  })
  return (accountId, text) => {
    const terms = spellings(text).map((spelling) => `%${spelling.replace(/[\\%_]/g, '\\$&')}%`)
    const statement = statements[terms.length - 1]
    assert(statement !== undefined, 'a short text has few spellings')
    const page = ({ after, upTo }: Span, limit: number, offset: number) =>
      statement.page.all(accountId, after, upTo, ...terms, limit, offset).map(({ id }) => id)
    const count = (span: Span): Counted => {
      const ids = page(span, FEW + 1, 0)
      if (ids.length <= FEW) return { count: ids.length, ids }
      return statement.count.get(accountId, span.after, span.upTo, ...terms) ?? { count: 0 }
    }
    return {
      source: {
        stretchesPerSlice: 12,
        next(after) {
          const last = end.get(accountId, after, stretch - 1)?.id
          return { ...count({ after, upTo: last ?? ID_MAX }), end: last }
        },
        count,
        page,
      },
      unindexed: () => [],
    }
  }
}

/** Of one or two letters, each in two cases. */
const SPELLINGS_MAX = 4

/**
 * The ways to write a short text that SQLite's LIKE leaves apart: it knows ASCII's letters alone,
 * in either case. A letter whose other case is in ASCII is not taken for it.
 */
function spellings(text: string): string[] {
  const lettersOf = (letter: string) => {
    const [lower, upper] = [letter.toLowerCase(), letter.toUpperCase()]
    return letter < '\x80' || upper === lower || /[A-Z]/.test(upper) ? [lower] : [lower, upper]
  }
  return [...text].reduce(
    (starts, letter) => starts.flatMap((start) => lettersOf(letter).map((end) => start + end)),
    [''],
  )
}
