import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { countRemover, LINK_COUNTS } from '../hits/marks.ts'
import { type RandomBytes, secureRandom } from '../lib/random.ts'
import { type Code, newCode } from './code.ts'
import { type LinkParcel, packReceipt, type Receipt, unpackLinks } from './parcel.ts'
import {
  type Author,
  type CreatedLink,
  type CreateLinks,
  LINK_COLUMNS,
  type LinkRow,
  type NewLink,
} from './row.ts'
import { indexKeeper } from './search.ts'

/** What is asked of a link before its passcode changes it. */
export interface SecretLinkRow {
  id: number
  code: Code
  accountId: AccountId
  passcodeHash: Uint8Array
}

export interface ReserveCode {
  accountId: AccountId
  /** As in `Author`; `createdAt` is its `now`. */
  keyId?: number | undefined
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
  const add = db.prepare<
    null,
    [Code, AccountId, string | null, Uint8Array | null, Uint8Array, number]
  >(
    `INSERT INTO links (code, account_id, url, url_key, passcode_hash, created_at)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (code) DO NOTHING`,
  )
  const index = indexKeeper(db)
  const setUrl = db.prepare<LinkRow, [string, Uint8Array, number]>(
    `UPDATE links SET url = ?, url_key = ? WHERE id = ? RETURNING ${LINK_COLUMNS}`,
  )
  const remove = db.prepare<{ accountId: AccountId }, [number]>(
    'DELETE FROM links WHERE id = ? RETURNING account_id AS accountId',
  )
  const removeHits = countRemover(db, LINK_COUNTS)
  const count = db.prepare<null, [number, AccountId]>(
    'UPDATE accounts SET link_count = link_count + ? WHERE id = ?',
  )

  const activeAuthor = db.prepare<{ id: AccountId }, [AccountId, number | null, number]>(
    `SELECT id FROM accounts WHERE id = ?1 AND disabled_at IS NULL
     AND (?2 IS NULL OR EXISTS (SELECT 1 FROM api_keys
       WHERE id = ?2 AND account_id = ?1 AND (ends_at IS NULL OR ends_at > ?3)))`,
  )
  const isActive = ({ accountId, keyId, now }: Author) =>
    activeAuthor.get(accountId, keyId ?? null, now) !== null

  /** Undefined when any account holds the code. RETURNING would take 3 µs more. */
  const insert = (
    link: Pick<LinkRow, 'code' | 'accountId' | 'url' | 'createdAt'>,
    urlKey: Uint8Array | null,
    passcodeHash: Uint8Array,
  ): LinkRow | undefined => {
    const { code, accountId, url, createdAt } = link
    const done = add.run(code, accountId, url, urlKey, passcodeHash, createdAt)
    if (done.changes === 0) return undefined
    return { id: Number(done.lastInsertRowid), code, accountId, url, createdAt }
  }

  /**
   * A generated code that is taken is drawn again: with 1 million links, that is one in a million.
   */
  const insertNew = (item: NewLink, accountId: AccountId, createdAt: number): LinkRow => {
    const { url, urlKey, passcodeHash } = item
    let code = item.code
    for (let draw = 0; draw < DRAWS_MAX; draw++) {
      const link = insert({ code, accountId, url, createdAt }, urlKey, passcodeHash)
      if (link) return link
      code = newCode(random)
    }
    throw new Error(`${DRAWS_MAX} generated codes were taken`)
  }

  const createLinks = ({ accountId, createdAt, items }: CreateLinks): CreatedLink[] => {
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
  }

  return {
    /**
     * One link an item, in order: a new one, or the one that the account has for the URL. All or
     * none.
     */
    createLinks,

    /** `createLinks` for another thread. Undefined when the account or the key is not active. */
    createParcel(parcel: LinkParcel): Receipt | undefined {
      const order = unpackLinks(parcel)
      if (!isActive({ ...order, now: order.createdAt })) return undefined
      return packReceipt(order, createLinks(order))
    },

    /** Undefined when any account holds the code. */
    reserveCode(order: ReserveCode): LinkRow | 'not_active' | undefined {
      const { accountId, code, passcodeHash, createdAt } = order
      if (!isActive({ ...order, now: createdAt })) return 'not_active'
      const link = insert({ code, accountId, url: null, createdAt }, null, passcodeHash)
      if (!link) return undefined
      count.run(1, accountId)
      return link
    },

    /** Undefined when the link is gone. Without an author, nobody is judged. */
    changeUrl(change: {
      id: number
      url: string
      urlKey: Uint8Array
      author?: Author
    }): LinkRow | 'not_active' | undefined {
      if (change.author && !isActive(change.author)) return 'not_active'
      const link = setUrl.get(change.url, change.urlKey, change.id)
      if (!link) return undefined
      index.update(link)
      return link
    },

    /** False when the link is gone already. Its hits go with it. Without an author, as above. */
    deleteLink({ id, author }: { id: number; author?: Author }): boolean | 'not_active' {
      if (author && !isActive(author)) return 'not_active'
      const link = remove.get(id)
      if (!link) return false
      index.remove(link.accountId, id)
      removeHits(id)
      count.run(-1, link.accountId)
      return true
    },
  }
}

export type LinkWrites = ReturnType<typeof linkWrites>

/** One-row look-ups, on the HTTP thread's own connection. */
export class LinkReads {
  readonly #byCode
  readonly #nearest
  readonly #destination

  constructor(db: Database) {
    this.#byCode = db.prepare<LinkRow, [Code]>(`SELECT ${LINK_COLUMNS} FROM links WHERE code = ?`)
    this.#nearest = db.prepare<SecretLinkRow, [string]>(
      `SELECT id, code, account_id AS accountId, passcode_hash AS passcodeHash
       FROM links WHERE code > ? ORDER BY code LIMIT 1`,
    )
    this.#destination = db.prepare<{ id: number; url: string | null }, [Code]>(
      'SELECT id, url FROM links WHERE code = ?',
    )
  }

  findByCode(code: Code): LinkRow | undefined {
    return this.#byCode.get(code) ?? undefined
  }

  /**
   * The link of the code, or of the next one that somebody holds: it takes as long to find another
   * link as the one that is meant. Undefined behind the last code of all.
   */
  findNearest(code: Code): SecretLinkRow | undefined {
    return this.#nearest.get(justBefore(code)) ?? undefined
  }

  /** What a redirect needs. */
  findDestination(code: Code): { id: number; url: string | null } | undefined {
    return this.#destination.get(code) ?? undefined
  }
}

/**
 * A text between a code and all those before it, and none itself: SQLite ends its search early
 * where it meets what it looks for, which would tell by a few nanoseconds that it is there.
 */
const justBefore = (code: Code): string =>
  `${code.slice(0, -1)}${String.fromCharCode(code.charCodeAt(code.length - 1) - 1)}~`
