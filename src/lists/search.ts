import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Code } from '../lib/code.ts'
import type { Link } from '../links/link.ts'
import { fold, LONG, PROPERTY_TEXT } from '../links/search-index.ts'
import { type Counted, ID_MAX, type IdRange, type IsOver, type LinkSource } from './count-index.ts'
import { urlForms } from './url-forms.ts'

/**
 * Substring search over code and URL, and in the dashboard also title, tags, note, destinations by
 * rule and aliases, in two steps: a trigram index of them all names candidates, and each
 * candidate's row is compared with the whole text in the fields of the search. Links after
 * `search_progress.indexed_to` are not in the index yet: their rows are all compared.
 */

/** Removes letter case only. Greek has two small forms of sigma. */
const lower = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ')

/** Characters in one entry of the index. */
const TRIGRAM = 3
/** More trigrams exclude hardly any further link, and each takes time. */
const TRIGRAMS_MAX = 4

/**
 * Whether any link can contain it: no URL contains a space or a control character, and properties
 * contain no other control characters than spaces.
 */
export const isSearchable = (text: string, inProperties: boolean): boolean =>
  inProperties ? text.trim() !== '' && !/[^\P{Cc}\s]/u.test(text) : !/[\p{Cc}\p{Z}]/u.test(text)

/** The words of a search over properties: a link has all of them, in any field. */
const wordsOf = (text: string): string[] => [
  ...new Set(text.split(/\s+/u).filter((word) => word !== '')),
]

/** Words whose trigrams are looked up. */
const QUERIED_WORDS_MAX = 3

/**
 * An FTS5 query for the candidates; undefined where all words are too short for the index. Each
 * word has one or more forms, of which the candidates have one.
 */
function candidatesQuery(words: readonly (readonly string[])[]): string | undefined {
  const shortest = (forms: readonly string[]) => Math.min(...forms.map((one) => [...one].length))
  const long = words.filter((forms) => shortest(forms) >= TRIGRAM)
  if (long.length === 0) return undefined
  const queried = long.sort((a, b) => shortest(b) - shortest(a)).slice(0, QUERIED_WORDS_MAX)
  const queries = queried.map((forms) => `(${forms.map(trigramsOf).join(' OR ')})`)
  return `${quoted(LONG)} OR (${[...new Set(queries)].join(' AND ')})`
}

function trigramsOf(word: string): string {
  const characters = [...word]
  const last = characters.length - TRIGRAM
  const starts = Array.from({ length: TRIGRAMS_MAX }, (_, n) =>
    Math.round((n * last) / (TRIGRAMS_MAX - 1)),
  )
  const trigrams = starts.map((at) => quoted(characters.slice(at, at + TRIGRAM).join('')))
  return `(${[...new Set(trigrams)].join(' AND ')})`
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

/** Tests pass smaller ones. */
export const SEARCH_SIZES = {
  /** Rows that are read together: some milliseconds even where each is as long as can be. */
  rowsAtOnce: 128,
  /** Candidates of one statement. */
  candidatesMax: 1024,
  /** Rows that are read without the index after it excluded less than three quarters of them. */
  rowsBetween: 65_536,
  /** Ids that the first statement on the index covers; adapted, so that it takes 1 to 4 ms. */
  span: 65_536,
  spanMin: 8192,
  /** Bytes of rows after which a call ends, so that its range is cheap to count again. */
  countBytes: 128 * 1024,
  /** Bytes of rows after which the other candidates of a statement are left for the next one. */
  bytesMax: 512 * 1024,
}

const STATEMENT_FAST_MS = 1
const STATEMENT_SLOW_MS = 4
/** A row's own fields and its share of the pages. */
const ROW_BYTES = 128
/** The cost of a statement on the index, 1 to 4 ms, as bytes of rows that are read in this time. */
const STATEMENT_BYTES = 256 * 1024

interface SearchText {
  accountId: AccountId
  /** Searchable and not empty. */
  text: string
  orCode?: Code | undefined
  /** Whether title, tags, note and aliases are searched too. */
  inProperties: boolean
}

export function searches(db: Database, sizes = SEARCH_SIZES) {
  const ofUrls = prepare(db, sizes, 'NULL')
  const ofAll = prepare(db, sizes, PROPERTY_TEXT)
  return (search: SearchText): LinkSource =>
    new Search(search.inProperties ? ofAll : ofUrls, sizes, search)
}

type Statements = ReturnType<typeof prepare>

export interface Row extends Pick<Link, 'code' | 'url'> {
  id: number
  /** The properties that are searched too; null without any. */
  text: string | null
}

/** `text`: SQL of `Row.text`. */
function prepare(db: Database, { rowsAtOnce, candidatesMax }: typeof SEARCH_SIZES, text: string) {
  const rows = `SELECT id, code, url, ${text} AS text FROM links`
  return {
    indexedTo: db.prepare<{ id: number }, []>('SELECT indexed_to AS id FROM search_progress'),
    candidates: db.prepare<{ id: number }, [AccountId, string, number, number]>(
      `SELECT rowid & ${ID_MAX} AS id FROM links_search WHERE links_search MATCH ?2
         AND rowid BETWEEN (?1 << 32 | ?3) + 1 AND (?1 << 32 | ?4)
       ORDER BY rowid LIMIT ${candidatesMax}`,
    ),
    byIds: db.prepare<Row, [string]>(
      `${rows} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id`,
    ),
    next: db.prepare<Row, [AccountId, number, number]>(
      `${rows} WHERE account_id = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ${rowsAtOnce}`,
    ),
    /** Number ?3, counted from 0, of the links after the id ?2. */
    nth: db.prepare<{ id: number }, [AccountId, number, number]>(
      'SELECT id FROM links WHERE account_id = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3',
    ),
  }
}

class Search implements LinkSource {
  readonly #statements: Statements
  readonly #sizes: typeof SEARCH_SIZES
  readonly #accountId: AccountId
  readonly #compare: Compare
  readonly #query: string | undefined
  #span: number
  /** Rows to read before the index is used again. */
  #rowsLeft = 0

  constructor(
    statements: Statements,
    sizes: typeof SEARCH_SIZES,
    { accountId, text, orCode, inProperties }: SearchText,
  ) {
    const { query, compare } = comparison(text, inProperties, orCode)
    this.#statements = statements
    this.#sizes = sizes
    this.#span = sizes.span
    this.#accountId = accountId
    this.#compare = compare
    this.#query = query
  }

  count({ after, upTo }: IdRange, isOver: IsOver): Counted {
    const indexedTo = this.#statements.indexedTo.get()?.id ?? 0
    const ids: number[] = []
    let [at, bytes] = [after, 0]
    do {
      const isIndexed = this.#query !== undefined && this.#rowsLeft <= 0 && at < indexedTo
      const part = isIndexed
        ? this.#countByIndex({ after: at, upTo: Math.min(upTo, indexedTo) })
        : this.#countByRow({ after: at, upTo })
      for (const id of part.ids) ids.push(id)
      at = part.upTo
      bytes += part.bytes
    } while (at < upTo && bytes < this.#sizes.countBytes && !isOver())
    return { upTo: at, count: ids.length, ids, bytes }
  }

  ids({ after, upTo }: IdRange): number[] {
    const ids: number[] = []
    for (let at = after; at < upTo; ) {
      const part = this.count({ after: at, upTo }, () => false)
      for (const id of part.ids ?? []) ids.push(id)
      at = part.upTo
    }
    return ids
  }

  #countByRow({ after, upTo }: IdRange): Part {
    const rows = this.#statements.next.all(this.#accountId, after, upTo)
    const last = rows.length < this.#sizes.rowsAtOnce ? undefined : rows.at(-1)?.id
    this.#rowsLeft -= rows.length
    return { ...this.#compare(rows), upTo: last ?? upTo }
  }

  #countByIndex({ after, upTo }: IdRange): Part {
    const { candidatesMax, rowsAtOnce, rowsBetween } = this.#sizes
    const part: Part = { ids: [], bytes: STATEMENT_BYTES, upTo: Math.min(upTo, after + this.#span) }
    const candidates = this.#findCandidates({ after, upTo: part.upTo })
    if (candidates.length === candidatesMax) {
      part.upTo = candidates.at(-1) ?? part.upTo
      if (this.#isDense({ after, upTo: part.upTo })) this.#rowsLeft = rowsBetween
    }
    for (let at = 0; at < candidates.length; at += rowsAtOnce) {
      const some = candidates.slice(at, at + rowsAtOnce)
      const { ids, bytes } = this.#compare(this.#statements.byIds.all(JSON.stringify(some)))
      part.ids.push(...ids)
      part.bytes += bytes
      // Reached with long rows only: then the next statement continues after these candidates.
      if (part.bytes > this.#sizes.bytesMax && at + rowsAtOnce < candidates.length) {
        part.upTo = some.at(-1) ?? part.upTo
        break
      }
    }
    return part
  }

  #findCandidates({ after, upTo }: IdRange): number[] {
    const startedAt = performance.now()
    const found = this.#statements.candidates.all(this.#accountId, this.#query ?? '', after, upTo)
    const tookMs = performance.now() - startedAt
    if (tookMs < STATEMENT_FAST_MS) this.#span = Math.min(this.#span * 4, ID_MAX)
    else if (tookMs > STATEMENT_SLOW_MS)
      this.#span = Math.max(Math.ceil(this.#span / 2), this.#sizes.spanMin)
    return found.map(({ id }) => id)
  }

  /** Whether at least a quarter of the account's links in the range are candidates. */
  #isDense({ after, upTo }: IdRange): boolean {
    const links = 4 * this.#sizes.candidatesMax
    const beyond = this.#statements.nth.get(this.#accountId, after, links)?.id
    return beyond === undefined || beyond > upTo
  }
}

/** The matches among some rows. */
interface Compared {
  /** Ascending, as the rows. */
  ids: number[]
  bytes: number
}

type Compare = (rows: readonly Row[]) => Compared

/**
 * What a search looks up in the index, undefined where all words are too short for it, and how it
 * compares the rows of candidates. The contract has no accents folded.
 */
export function comparison(
  text: string,
  inProperties: boolean,
  orCode?: Code,
): { query: string | undefined; compare: Compare } {
  const normalize = inProperties ? fold : lower
  const sent = inProperties ? wordsOf(text).map(urlForms) : [[text]]
  // Codes are in upper case.
  const words = sent.map((forms) => ({
    forms: forms.map(normalize),
    code: normalize(forms[0] ?? '').replace(/[a-z]/g, (letter) => letter.toUpperCase()),
  }))
  const compare: Compare = (rows) => {
    const ids: number[] = []
    let bytes = 0
    for (const { id, code, url, text } of rows) {
      bytes += ROW_BYTES + (url?.length ?? 0) + (text?.length ?? 0)
      const address = url === null ? '' : normalize(url)
      const properties = text === null ? '' : normalize(text)
      const isFound = words.every(
        (word) =>
          code.includes(word.code) ||
          word.forms.some((form) => address.includes(form) || properties.includes(form)),
      )
      if (isFound || code === orCode) ids.push(id)
    }
    return { ids, bytes }
  }
  const query = candidatesQuery(sent.map((forms) => forms.map(fold)))
  return { query: query && orCode ? `${query} OR ${trigramsOf(fold(orCode))}` : query, compare }
}

interface Part extends Compared {
  upTo: number
}
