import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { NO_LINK } from '../hot/destination-cache.ts'
import { type Code, newCode } from '../lib/code.ts'
import { type RandomBytes, secureRandom } from '../lib/random.ts'
import { type Creation, type LinkParcel, packReceipt, type Receipt, unpackLinks } from './parcel.ts'
import { exceededQuota, type QuotaName, type Stored } from './quota.ts'
import {
  type Author,
  type CreatedLink,
  type CreateLinks,
  LINK_COLUMNS,
  type LinkRow,
  type NewLink,
} from './row.ts'
import { indexKeeper } from './search-index.ts'

/** What is asked of a link before its passcode changes it. */
export interface SecretLinkRow {
  id: number
  code: Code
  accountId: AccountId
  passcodeHash: Uint8Array
}

/** `isDisabled`: 1 if the operator has disabled the code, or all links of its account. */
export interface DestinationRow {
  id: number
  url: string | null
  isDisabled: number
}

export interface ReserveCode {
  accountId: AccountId
  /** As in `Author`; `createdAt` is its `now`. */
  keyId?: number | undefined
  code: Code
  passcodeHash: Uint8Array
  createdAt: number
  quota: Quota
}

export interface ChangeUrl {
  id: number
  url: string
  urlKey: Uint8Array
  /** Absent: no limit. */
  quota?: Quota
  /** Absent: nobody is judged. */
  author?: Author
}

/** 0 means no limit. */
const NO_QUOTA: Quota = { linksMax: 0, urlBytesMax: 0 }

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
     SELECT ?1, ?2, ?3, ?4, ?5, ?6
     WHERE NOT EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1)
     ON CONFLICT (code) DO NOTHING`,
  )
  const index = indexKeeper(db)
  const setUrl = db.prepare<LinkRow, [string, Uint8Array, number]>(
    `UPDATE links SET url = ?, url_key = ? WHERE id = ? RETURNING ${LINK_COLUMNS}`,
  )
  const owner = `account_id AS accountId, coalesce(octet_length(url), 0) AS urlBytes`
  const ownerOf = db.prepare<{ accountId: AccountId; urlBytes: number }, [number]>(
    `SELECT ${owner} FROM links WHERE id = ?`,
  )
  const remove = db.prepare<{ accountId: AccountId; urlBytes: number }, [number]>(
    `DELETE FROM links WHERE id = ? RETURNING ${owner}`,
  )
  const removeHits = db.prepare<null, [number]>('DELETE FROM hits WHERE link_id = ?')
  const storedBy = db.prepare<Stored, [AccountId]>(
    'SELECT link_count AS links, url_bytes AS urlBytes FROM accounts WHERE id = ?',
  )
  const count = db.prepare<null, [number, number, AccountId]>(
    'UPDATE accounts SET link_count = link_count + ?, url_bytes = url_bytes + ? WHERE id = ?',
  )

  const holdsCode = db.prepare<{ code: Code }, [Code]>(
    `SELECT code FROM links WHERE code = ?1
     UNION ALL SELECT code FROM disabled_codes WHERE code = ?1`,
  )

  const activeAuthor = db.prepare<{ id: AccountId }, [AccountId, number | null, number]>(
    `SELECT id FROM accounts WHERE id = ?1 AND disabled_at IS NULL
     AND (?2 IS NULL OR EXISTS (SELECT 1 FROM api_keys
       WHERE id = ?2 AND account_id = ?1 AND (ends_at IS NULL OR ends_at > ?3)))`,
  )
  const isActive = ({ accountId, keyId, now }: Author) =>
    activeAuthor.get(accountId, keyId ?? null, now) !== null

  /** Undefined when the code is held or disabled. RETURNING would take 3 µs more. */
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

  const createWithin = (order: CreateLinks): Creation[] => {
    const { accountId, createdAt, items, quota = NO_QUOTA } = order
    const before = storedBy.get(accountId) ?? { links: 0, urlBytes: 0 }
    let stored = before
    const links = items.map((item): Creation => {
      const existing = byUrl.get(accountId, item.urlKey)
      if (existing) return { ...existing, reused: true }
      const next = {
        links: stored.links + 1,
        urlBytes: stored.urlBytes + Buffer.byteLength(item.url),
      }
      const exceeded = exceededQuota(next, quota)
      if (exceeded) return exceeded
      stored = next
      return { ...insertNew(item, accountId, createdAt), reused: false }
    })
    count.run(stored.links - before.links, stored.urlBytes - before.urlBytes, accountId)
    return links
  }

  return {
    /**
     * One link an item, in order: a new one, or the one that the account has for the URL. All or
     * none, without a quota.
     */
    createLinks: (order: Omit<CreateLinks, 'quota'>): CreatedLink[] =>
      createWithin(order).filter((link) => typeof link !== 'string'),

    /** `createLinks` for another thread. Undefined when the account or the key is not active. */
    createParcel(parcel: LinkParcel): Receipt | undefined {
      const order = unpackLinks(parcel)
      if (!isActive({ ...order, now: order.createdAt })) return undefined
      return packReceipt(order, createWithin(order))
    },

    /** Undefined when any account holds the code, or it is disabled. */
    reserveCode(order: ReserveCode): LinkRow | 'not_active' | QuotaName | undefined {
      const { accountId, code, passcodeHash, createdAt, quota } = order
      if (!isActive({ ...order, now: createdAt })) return 'not_active'
      const stored = storedBy.get(accountId) ?? { links: 0, urlBytes: 0 }
      const next = { links: stored.links + 1, urlBytes: 0 }
      const exceeded = exceededQuota(next, quota)
      if (exceeded) return holdsCode.get(code) ? undefined : exceeded
      const link = insert({ code, accountId, url: null, createdAt }, null, passcodeHash)
      if (!link) return undefined
      count.run(1, 0, accountId)
      return link
    },

    /** Undefined when the link is gone. A shorter URL always fits. */
    changeUrl(change: ChangeUrl): LinkRow | 'not_active' | QuotaName | undefined {
      const { id, url, urlKey, quota = NO_QUOTA, author } = change
      if (author && !isActive(author)) return 'not_active'
      const old = ownerOf.get(id)
      if (!old) return undefined
      const added = Buffer.byteLength(url) - old.urlBytes
      const stored = storedBy.get(old.accountId) ?? { links: 0, urlBytes: 0 }
      const next = { links: 0, urlBytes: stored.urlBytes + added }
      const exceeded = added > 0 ? exceededQuota(next, quota) : undefined
      if (exceeded) return exceeded
      const link = setUrl.get(url, urlKey, id)
      if (!link) return undefined
      count.run(0, added, old.accountId)
      index.update(link.accountId, link.id, link.code, link.url)
      return link
    },

    /** False when the link is gone already. Its count goes with it. Without an author, as above. */
    deleteLink({ id, author }: { id: number; author?: Author }): boolean | 'not_active' {
      if (author && !isActive(author)) return 'not_active'
      const link = remove.get(id)
      if (!link) return false
      index.remove(link.accountId, id)
      removeHits.run(id)
      count.run(-1, -link.urlBytes, link.accountId)
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
  readonly #disabledCode

  constructor(db: Database) {
    this.#byCode = db.prepare<LinkRow, [Code]>(`SELECT ${LINK_COLUMNS} FROM links WHERE code = ?`)
    this.#nearest = db.prepare<SecretLinkRow, [string]>(
      `SELECT id, code, account_id AS accountId, passcode_hash AS passcodeHash
       FROM links WHERE code > ? ORDER BY code LIMIT 1`,
    )
    this.#destination = db.prepare<DestinationRow, [Code]>(
      `SELECT id, url,
         EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1)
         OR EXISTS (SELECT 1 FROM accounts
                    WHERE id = links.account_id AND links_disabled_at IS NOT NULL) AS isDisabled
       FROM links WHERE code = ?1`,
    )
    this.#disabledCode = db.prepare<DestinationRow, [Code]>(
      `SELECT ${NO_LINK} AS id, NULL AS url, 1 AS isDisabled FROM disabled_codes WHERE code = ?`,
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

  /** What a redirect needs. A disabled code stays so after its link was deleted. */
  findDestination(code: Code): DestinationRow | undefined {
    return this.#destination.get(code) ?? this.#disabledCode.get(code) ?? undefined
  }
}

/**
 * A text between a code and all those before it, and none itself: SQLite ends its search early
 * where it meets what it looks for, which would tell by a few nanoseconds that it is there.
 */
const justBefore = (code: Code): string =>
  `${code.slice(0, -1)}${String.fromCharCode(code.charCodeAt(code.length - 1) - 1)}~`
