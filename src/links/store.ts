import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type RandomBytes, secureRandom } from '../lib/random.ts'
import { type Code, newCode } from './code.ts'
import { LINK_COLUMNS, type LinkRow } from './row.ts'
import { indexKeeper, type Matches, searcher } from './search.ts'

export interface SecretLinkRow extends LinkRow {
  passcodeHash: Uint8Array
}

export interface NewLink {
  url: string
  urlKey: Uint8Array
  code: Code
  passcodeHash: Uint8Array
}

export interface CreateLinks {
  accountId: AccountId
  createdAt: number
  items: readonly NewLink[]
}

/** `reused`: the account had this URL already, and this is the link it had. */
export type CreatedLink = LinkRow & { reused: boolean }

export interface ReserveCode {
  accountId: AccountId
  code: Code
  passcodeHash: Uint8Array
  createdAt: number
}

const DRAWS_MAX = 100

/**
 * Runs on the writer thread, inside the transaction of its batch. Raw SQL: this is where every link
 * is written.
 */
export function linkWrites(db: Database, random: RandomBytes = secureRandom) {
  const byUrl = db.prepare<LinkRow, [AccountId, Uint8Array]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? AND url_key = ? ORDER BY id LIMIT 1`,
  )
  const insert = db.prepare<
    LinkRow,
    [Code, AccountId, string | null, Uint8Array | null, Uint8Array, number]
  >(
    `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (code) DO NOTHING RETURNING ${LINK_COLUMNS}`,
  )
  const index = indexKeeper(db)
  const setUrl = db.prepare<LinkRow, [string, Uint8Array, number]>(
    `UPDATE links SET url = ?, url_key = ? WHERE id = ? RETURNING ${LINK_COLUMNS}`,
  )
  const remove = db.prepare<{ accountId: AccountId }, [number]>(
    'DELETE FROM links WHERE id = ? RETURNING account_id AS accountId',
  )
  const removeHits = db.prepare<null, [number]>('DELETE FROM hits WHERE link_id = ?')
  const count = db.prepare<null, [number, AccountId]>(
    'UPDATE accounts SET link_count = link_count + ? WHERE id = ?',
  )

  /**
   * A generated code that is taken is drawn again: with 1 million links, that is one in a million.
   */
  const insertNew = (item: NewLink, accountId: AccountId, createdAt: number): LinkRow => {
    const { url, urlKey, passcodeHash } = item
    let code = item.code
    for (let draw = 0; draw < DRAWS_MAX; draw++) {
      const link = insert.get(code, accountId, url, urlKey, passcodeHash, createdAt)
      if (link) return link
      code = newCode(random)
    }
    throw new Error(`${DRAWS_MAX} generated codes were taken`)
  }

  return {
    /**
     * One link an item, in order: a new one, or the one that the account has for the URL. All or
     * none.
     */
    createLinks({ accountId, createdAt, items }: CreateLinks): CreatedLink[] {
      let added = 0
      const links = items.map((item) => {
        const existing = byUrl.get(accountId, item.urlKey)
        if (existing) return { ...existing, reused: true }
        const link = insertNew(item, accountId, createdAt)
        added++
        return { ...link, reused: false }
      })
      count.run(added, accountId)
      return links
    },

    /** Undefined when any account holds the code. */
    reserveCode({ accountId, code, passcodeHash, createdAt }: ReserveCode): LinkRow | undefined {
      const link = insert.get(code, accountId, null, null, passcodeHash, createdAt)
      if (!link) return undefined
      count.run(1, accountId)
      return link
    },

    /** Undefined when the link is gone. */
    changeUrl(change: { id: number; url: string; urlKey: Uint8Array }): LinkRow | undefined {
      const link = setUrl.get(change.url, change.urlKey, change.id)
      if (!link) return undefined
      index.update(link)
      return link
    },

    /** False when the link is gone already. Its hits go with it. */
    deleteLink({ id }: { id: number }): boolean {
      const link = remove.get(id)
      if (!link) return false
      index.remove(link.accountId, id)
      removeHits.run(id)
      count.run(-1, link.accountId)
      return true
    },
  }
}

export type LinkWrites = ReturnType<typeof linkWrites>

/** One-row look-ups, on the HTTP thread's own connection. */
export class LinkReads {
  readonly #byCode
  readonly #destination

  constructor(db: Database) {
    this.#byCode = db.prepare<SecretLinkRow, [Code]>(
      `SELECT ${LINK_COLUMNS}, passcode_hash AS passcodeHash FROM links WHERE code = ?`,
    )
    this.#destination = db.prepare<{ id: number; url: string | null }, [Code]>(
      'SELECT id, url FROM links WHERE code = ?',
    )
  }

  findByCode(code: Code): SecretLinkRow | undefined {
    return this.#byCode.get(code) ?? undefined
  }

  /** What a redirect needs. */
  findDestination(code: Code): { id: number; url: string | null } | undefined {
    return this.#destination.get(code) ?? undefined
  }
}

export interface ListQuery {
  accountId: AccountId
  limit: number
  offset: number
  search?: string | undefined
}

/** Runs on the reader thread: a search may read many rows. */
export function linkLists(db: Database) {
  const total = db.prepare<{ total: number }, [AccountId]>(
    'SELECT link_count AS total FROM accounts WHERE id = ?',
  )
  const page = db.prepare<LinkRow, [AccountId, number, number]>(
    `SELECT ${LINK_COLUMNS} FROM links WHERE account_id = ? ORDER BY id DESC LIMIT ? OFFSET ?`,
  )
  const codes = db.prepare<{ id: number; code: Code }, [number, number]>(
    'SELECT id, code FROM links WHERE id > ? ORDER BY id LIMIT ?',
  )
  const find = searcher(db)

  return {
    /** One page, newest first, and how many there are in all; both of one snapshot. */
    listLinks({ accountId, limit, offset, search }: ListQuery): Matches {
      return db.transaction(() => {
        if (search === undefined || search === '') {
          return {
            total: total.get(accountId)?.total ?? 0,
            links: page.all(accountId, limit, offset),
          }
        }
        return find({ accountId, search, limit, offset })
      })()
    },

    /** Every account's codes in the order of their ids: the next `limit` after `id`. */
    codesAfter({ id, limit }: { id: number; limit: number }): { id: number; code: Code }[] {
      return codes.all(id, limit)
    },
  }
}

export type LinkLists = ReturnType<typeof linkLists>
