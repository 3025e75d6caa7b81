import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { localWrite, type WriteCalls } from '../db/subject.ts'
import type { Link } from './link.ts'

/**
 * The writer's side of the search index. Indexing a link costs several times as much as storing it,
 * so links are indexed after their creation, in the order of their ids, up to
 * `search_progress.indexed_to` (decision 006).
 */

const ASCII = /^[\0-\x7f]*$/
const MARKS = /\p{Mn}+/gu

/** Letters that have no decomposition. */
const PLAIN: Readonly<Record<string, string>> = { ς: 'σ', ß: 'ss', ø: 'o', ł: 'l', đ: 'd', æ: 'ae' }
const PLAINED = new RegExp(`[${Object.keys(PLAIN).join('')}]`, 'g')

/**
 * Removes letter case and accents for comparisons. Marks go before the decomposition too: its time
 * is quadratic in the length of a run of them.
 */
export function fold(text: string): string {
  const small = text.toLowerCase()
  if (ASCII.test(small)) return small
  const bare = small.replace(MARKS, '').normalize('NFD').replace(MARKS, '')
  return bare.replace(PLAINED, (letter) => PLAIN[letter] ?? letter)
}

/** The index has the first bytes of URL and properties: a link with more is always a candidate. */
const INDEXED_BYTES = 512
/** Marks such a link in the index. No other text there has so many spaces in a row. */
export const LONG = '   '

const ALIASES_OF_LINK = 'FROM aliases WHERE link_id = links.id'
const HAS_TEXT = `(coalesce(title, tags, note, destinations) IS NOT NULL
  OR EXISTS (SELECT 1 ${ALIASES_OF_LINK}))`
/** The searched properties and aliases of a link as one text; null if it has none. */
export const PROPERTY_TEXT = `CASE WHEN ${HAS_TEXT} THEN concat_ws(' ', title,
  (SELECT group_concat(value, ' ') FROM json_each(tags)), note,
  (SELECT group_concat(value ->> 'url', ' ') FROM json_each(destinations)),
  (SELECT group_concat('/' || path, ' ') ${ALIASES_OF_LINK})) END`

/** As `fold`, and each run of spaces is one: properties are texts of several words. */
const foldSpaced = (text: string): string => fold(text).replace(/\s+/gu, ' ')

/** The text of a link in the index. */
export function indexText({ code, url, text }: Pick<IndexedRow, 'code' | 'url' | 'text'>): string {
  const address = Buffer.from(fold(`${code} ${url ?? ''}`))
  const properties = Buffer.from(foldSpaced(text ?? '').trim())
  const isLong = address.length > INDEXED_BYTES || properties.length > INDEXED_BYTES
  const parts = [address, properties].map((bytes) => bytes.toString('utf8', 0, INDEXED_BYTES))
  return `${isLong ? LONG : ''}${parts.join(' ').trimEnd()}`
}

/** Row id of account ?1 and link ?2 in the index. */
const ROWID = '(?1 << 32 | ?2)'

/** Rows of one step. Random text of `STEP_CHARACTERS_MAX` takes about 5 ms. */
const STEP_ROWS_MAX = 200
const STEP_CHARACTERS_MAX = 12 * 1024

/**
 * Pieces of the index that are merged into one. With SQLite's default of 4 every link is written
 * again more often: indexing it costs twice as much. From 16 on a merge is done in one step.
 */
const AUTOMERGE = 8

type IndexedLink = Pick<Link, 'id' | 'accountId' | 'code' | 'url'>
/** `text`: `PROPERTY_TEXT`. */
type IndexedRow = IndexedLink & { text: string | null }
const INDEXED_COLUMNS = `id, account_id AS accountId, code, substr(url, 1, ${INDEXED_BYTES}) AS url,
  ${PROPERTY_TEXT} AS text`

const indexInserter = (db: Database) =>
  db.prepare<null, [AccountId, number, string]>(
    `INSERT INTO links_search (rowid, text) VALUES (${ROWID}, ?3)`,
  )

/** Runs on the writer thread, inside the transaction of its batch. */
export function searchWrites(db: Database) {
  const progress = db.prepare<{ indexedTo: number }, []>(
    'SELECT indexed_to AS indexedTo FROM search_progress',
  )
  const waiting = db.prepare<IndexedRow, [number, number]>(
    `SELECT ${INDEXED_COLUMNS} FROM links WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const advance = db.prepare<null, [number]>('UPDATE search_progress SET indexed_to = ?')
  const insert = indexInserter(db)
  const automerge = db.prepare<{ v: number }, []>(
    `SELECT v FROM links_search_config WHERE k = 'automerge'`,
  )
  const setAutomerge = db.prepare<null, [number]>(
    `INSERT INTO links_search (links_search, rank) VALUES ('automerge', ?)`,
  )
  return {
    /**
     * Adds the next links to the index: at most `rowsMax`, and as many as their text allows.
     * Returns whether others may wait.
     */
    indexLinks({ rowsMax = STEP_ROWS_MAX, charactersMax = STEP_CHARACTERS_MAX }): boolean {
      if (automerge.get()?.v !== AUTOMERGE) setAutomerge.run(AUTOMERGE)
      const links = waiting.all(progress.get()?.indexedTo ?? 0, rowsMax)
      let last: number | undefined
      let characters = 0
      for (const link of links) {
        if (characters >= charactersMax) break
        const text = indexText(link)
        insert.run(link.accountId, link.id, text)
        characters += text.length
        last = link.id
      }
      if (last !== undefined) advance.run(last)
      return links.length === rowsMax || last !== links.at(-1)?.id
    },
  }
}

export const indexWrites = {
  index: localWrite((db) => searchWrites(db).indexLinks),
}

/** Updates the index for a changed or deleted link. A link that is not indexed costs nothing. */
export function indexKeeper(db: Database) {
  const update = db.prepare<null, [AccountId, number, string]>(
    `UPDATE links_search SET text = ?3 WHERE rowid = ${ROWID}`,
  )
  const remove = db.prepare<null, [AccountId, number]>(
    `DELETE FROM links_search WHERE rowid = ${ROWID}`,
  )
  const propertyText = db.prepare<{ text: string | null }, [number]>(
    `SELECT ${PROPERTY_TEXT} AS text FROM links WHERE id = ?`,
  )
  const indexed = db.prepare<IndexedRow, [AccountId, number]>(
    `SELECT ${INDEXED_COLUMNS} FROM links
     WHERE links.id = ?2 AND EXISTS (SELECT 1 FROM links_search_docsize WHERE id = ${ROWID})`,
  )
  const insert = indexInserter(db)
  return {
    update({ id, accountId, code, url }: IndexedLink): void {
      const text = propertyText.get(id)?.text ?? null
      update.run(accountId, id, indexText({ code, url, text }))
    },
    remove(accountId: AccountId, id: number): void {
      remove.run(accountId, id)
    },

    /** The link gets another account. */
    move(id: number, { from, to }: { from: AccountId; to: AccountId }): void {
      const link = indexed.get(from, id)
      if (!link) return
      remove.run(from, id)
      insert.run(to, id, indexText(link))
    },
  }
}

interface IndexerOptions {
  data: { links: WriteCalls<typeof indexWrites> }
  writer: { readonly idleMs: number }
}

/** A step takes about 7 ms of the writer: it waits for a pause between writes, up to a limit. */
const PAUSE_MS = 20
const PAUSE_WAIT_MS = 200

/** Adds new links to the search index between other writes. */
export class SearchIndexer {
  readonly #options: IndexerOptions
  #isRunning = false
  #isClosed = false

  constructor(options: IndexerOptions) {
    this.#options = options
    this.wake()
  }

  /** There may be new links. After an error of the disk, the next call tries again. */
  wake(): void {
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    this.#run()
      .catch(() => {})
      .finally(() => {
        this.#isRunning = false
      })
  }

  close(): void {
    this.#isClosed = true
  }

  async #run(): Promise<void> {
    const { data } = this.#options
    for (;;) {
      await this.#pause()
      if (this.#isClosed) return
      if (!(await data.links.index({}, { background: true }))) return
    }
  }

  async #pause(): Promise<void> {
    const endsAt = performance.now() + PAUSE_WAIT_MS
    const { writer } = this.#options
    while (writer.idleMs < PAUSE_MS && performance.now() < endsAt) await Bun.sleep(PAUSE_MS)
  }
}
