import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type Address, domainCell } from '../addresses/address.ts'
import {
  type AliasChange,
  type AliasPatch,
  aliasPatcher,
  aliasRows,
  closedCodes,
  codesInUse,
  prepareAddressed,
} from '../addresses/names.ts'
import { domainUses } from '../addresses/use.ts'
import type { Quota } from '../config.ts'
import { perConnection } from '../db/subject.ts'
import { type Code, newCode, toCode } from '../lib/code.ts'
import { visitRemover } from '../visits/store.ts'
import { handOverWrite } from './hand-over.ts'
import {
  type Author,
  type CreatedLink,
  type CreateLinks,
  type CreateMessage,
  decodeCreate,
  LINK_COLUMNS,
  type Link,
  NAMED_LINK,
  type NamedLink,
  type NewLink,
} from './link.ts'
import {
  findProblem,
  type PatchRefusal,
  patchProperties,
  propertySetter,
  propertyWrites,
} from './property-store.ts'
import {
  bytesOfProperties,
  NO_PROPERTIES,
  type PropertiesPatch,
  storedBytes,
} from './property-table.ts'
import { publicPageRemover } from './public-pages.ts'
import { accountCounts, exceededQuota, type QuotaName } from './quota.ts'
import { indexKeeper } from './search-index.ts'

/** A link, or the quota that it exceeds. */
export type Creation = CreatedLink | QuotaName

export interface CreateLink extends Omit<CreateLinks, 'items'> {
  /** The link to create. Its code is reserved if it has no URL. */
  item: NewLink
  /** Another code may replace that of the item. */
  isGenerated: boolean
  /** False: a further link to a URL that the account has. */
  reuse?: boolean | undefined
  patch: PropertiesPatch
  aliases: AliasPatch
}

export interface CreatedOne {
  link: CreatedLink
  aliases?: AliasChange
}

type CreateRefusal = 'code_in_use' | PatchRefusal

export interface ChangeUrl {
  id: number
  url: string
  urlKey: Uint8Array
  quota: Quota
  author: Author
}

export interface ChangedUrl {
  link: Link
  before: string | null
}

/** Links of other accounts, and those that were deleted, are skipped. */
export interface ScheduleDeletion {
  ids: readonly number[]
  deleteAt: number
  author: Author
}

const CANDIDATES_MAX = 100

/**
 * Writes links. Every result depends on the database and the arguments only, whatever else is in
 * the batch. links/subject.ts has the calls.
 */
export const linkWrites = perConnection((db) => ({
  ...creation(db),
  ...singleCreation(db),
  ...change(db),
  ...deletion(db),
  ...propertyWrites(db),
  handOver: handOverWrite(db),
}))

function creation(db: Database) {
  const insertGenerated = generatedInserter(db)
  const accounts = accountCounts(db)
  const reuse = linkReuser(db)
  const domains = domainUses(db)

  /** One link per item, in order: a new one, or the one that the account has for the URL. */
  const create = ({ accountId, createdAt, items, quota }: CreateLinks): Creation[] => {
    const before = accounts.stored(accountId)
    const about = { accountId, createdAt, domainId: domains.defaultOf(accountId) }
    let total = before
    const links = items.map((item): Creation => {
      const existing = reuse(accountId, item.urlKey)
      if (existing) return existing
      const next = { links: total.links + 1, urlBytes: total.urlBytes + bytesOf(item.url) }
      const exceeded = exceededQuota(next, quota)
      if (exceeded) return exceeded
      total = next
      return { ...insertGenerated(item, about), reused: false }
    })
    accounts.add(accountId, {
      links: total.links - before.links,
      urlBytes: total.urlBytes - before.urlBytes,
    })
    return links
  }

  return {
    /** JSON of one `Creation` per item. Undefined if the account or the key is not active. */
    createEncoded(message: CreateMessage): string | undefined {
      const command = decodeCreate(message)
      if (!accounts.isActive({ ...command, now: command.createdAt })) return undefined
      return JSON.stringify(create(command))
    },
  }
}

function singleCreation(db: Database) {
  const insert = linkInserter(db)
  const insertGenerated = generatedInserter(db)
  const accounts = accountCounts(db)
  const aliases = aliasPatcher(db)
  const setProperties = propertySetter(db)
  const reuse = linkReuser(db)
  const isInUse = codesInUse(db)
  const domains = domainUses(db)
  return {
    /** A link with its properties and aliases, or why nothing was created. */
    createLink(command: CreateLink): CreatedOne | CreateRefusal {
      const { accountId, createdAt, isGenerated, quota } = command
      if (!accounts.isActive({ ...command, now: createdAt })) return 'not_active'
      const mayReuse = command.item.url !== null && command.reuse !== false
      const existing = mayReuse && reuse(accountId, command.item.urlKey)
      if (existing) return { link: existing }
      if (!isGenerated && isInUse(command.item.code)) return 'code_in_use'

      const { domain: domainId = domains.defaultOf(accountId) } = command.patch
      if (!domains.mayUse(accountId, domainId)) return 'bad_domain'
      const patch = { ...command.patch, domain: domainId }
      const properties = patchProperties(NO_PROPERTIES, patch)
      const problem = findProblem(properties)
      if (problem) return problem
      const planned = aliases.plan({ id: NO_LINK, accountId }, command.aliases)
      if (typeof planned === 'string' || 'taken' in planned) return planned
      const item = withFreeCode(command, planned.added)
      if (!item) {
        return { taken: planned.added.find(hasCodeOf(command.item))?.path ?? '' }
      }

      const urlBytes = bytesOf(item.url) + bytesOfProperties(properties) + planned.bytes
      const added = { links: 1, urlBytes }
      const exceeded = accounts.exceededBy(accountId, added, quota)
      if (exceeded) return exceeded
      const about = { accountId, createdAt, domainId }
      const link = isGenerated ? insertGenerated(item, about) : insert(item, about)
      if (!link) return 'code_in_use'
      setProperties(link.id, properties)
      const changed = aliases.apply({ ...planned, linkId: link.id })
      accounts.add(accountId, added)
      return { link: { ...link, reused: false }, aliases: changed }
    },
  }
}

/** The id of no link. */
const NO_LINK = 0

const hasCodeOf =
  ({ code }: Pick<NewLink, 'code'>) =>
  ({ path }: Address): boolean =>
    toCode(path) === code

/**
 * The link to insert: its aliases would close a code of their form. Undefined if that is the code
 * that was asked for.
 */
function withFreeCode(
  { item, isGenerated }: Pick<CreateLink, 'item' | 'isGenerated'>,
  aliases: readonly Address[],
): NewLink | undefined {
  let free = item
  while (aliases.some(hasCodeOf(free))) {
    if (!isGenerated) return undefined
    free = { ...free, code: nextCode(free.code) }
  }
  return free
}

/** Finds the link that an account has for a URL. A scheduled deletion of it is canceled. */
function linkReuser(db: Database) {
  const cancelDeletion = db.prepare<null, [number]>(
    'UPDATE links SET delete_at = NULL WHERE id = ? AND delete_at IS NOT NULL',
  )
  // The oldest: the index has equal keys in the order of ids. ORDER BY id takes three times as long
  // (decision 001).
  const byUrl = prepareAddressed<Link, [AccountId, Uint8Array | null]>(
    db,
    `SELECT ${LINK_COLUMNS} FROM links INDEXED BY links_url
     WHERE account_id = ? AND url_key = ? LIMIT 1`,
  )
  return (accountId: AccountId, urlKey: Uint8Array | null): CreatedLink | undefined => {
    const existing = byUrl.get(accountId, urlKey)
    if (!existing) return undefined
    const { changes } = cancelDeletion.run(existing.id)
    return { ...existing, reused: true, ...(changes > 0 && { restored: true }) }
  }
}

function change(db: Database) {
  const accounts = accountCounts(db)
  const index = indexKeeper(db)
  const findStored = db.prepare<Pick<Link, 'accountId' | 'url'>, [number]>(
    'SELECT account_id AS accountId, url FROM links WHERE id = ?',
  )
  const setUrl = prepareAddressed<Link, [string, Uint8Array, number]>(
    db,
    `UPDATE links SET url = ?, url_key = ? WHERE id = ? RETURNING ${LINK_COLUMNS}`,
  )
  return {
    /** Undefined if the account has the link no more. A shorter URL always fits. */
    changeUrl(command: ChangeUrl): ChangedUrl | 'not_active' | QuotaName | undefined {
      const { id, url, urlKey, quota, author } = command
      if (!accounts.isActive(author)) return 'not_active'
      const old = findStored.get(id)
      if (old?.accountId !== author.accountId) return undefined
      const added = { links: 0, urlBytes: bytesOf(url) - bytesOf(old.url) }
      const exceeded = accounts.exceededBy(old.accountId, added, quota)
      if (exceeded) return exceeded
      const link = setUrl.get(url, urlKey, id)
      if (!link) return undefined
      accounts.add(old.accountId, added)
      index.update(link)
      return { link, before: old.url }
    },
  }
}

function deletion(db: Database) {
  const accounts = accountCounts(db)
  const index = indexKeeper(db)
  const removeLink = prepareAddressed<Link & { urlBytes: number }, [number]>(
    db,
    `DELETE FROM links WHERE id = ? RETURNING ${LINK_COLUMNS}, ${storedBytes()} AS urlBytes`,
  )
  const isOwned = db.prepare<object, [number, AccountId]>(
    'SELECT 1 FROM links WHERE id = ? AND account_id = ?',
  )
  const aliases = aliasRows(db)
  const removeHits = db.prepare<null, [number]>('DELETE FROM hits WHERE link_id = ?')
  const removeVisits = visitRemover(db)
  const removePublicPage = publicPageRemover(db)
  const idsOf = db.prepare<{ id: number }, [AccountId, number]>(
    'SELECT id FROM links WHERE account_id = ? ORDER BY id LIMIT ?',
  )
  const due = db.prepare<{ id: number }, [number, number]>(
    `SELECT id FROM links WHERE delete_at IS NOT NULL AND delete_at <= ?
     ORDER BY delete_at, id LIMIT ?`,
  )

  const setTime = db.prepare<NamedLink, [number | null, string, AccountId]>(
    `UPDATE links SET delete_at = iif(?1 IS NULL, NULL, coalesce(delete_at, ?1))
     WHERE id IN (SELECT value FROM json_each(?2)) AND account_id = ?3 RETURNING ${NAMED_LINK}`,
  )
  const schedule = (deleteAt: number | null, ids: readonly number[], author: Author) =>
    accounts.isActive(author)
      ? setTime.all(deleteAt, JSON.stringify(ids), author.accountId)
      : 'not_active'

  const remove = (id: number): Link | undefined => {
    const removed = removeLink.get(id)
    if (!removed) return undefined
    const { urlBytes, ...link } = removed
    index.remove(link.accountId, id)
    removeHits.run(id)
    removeVisits(id)
    removePublicPage(id)
    aliases.removeAllOf(id)
    accounts.add(link.accountId, { links: -1, urlBytes: -urlBytes })
    return link
  }

  const removeAll = (rows: readonly { id: number }[]): NamedLink[] =>
    rows.flatMap((row) => {
      const link = remove(row.id)
      return link ? { id: link.id, code: link.code, accountId: link.accountId } : []
    })

  return {
    /** The link that is deleted, with its hits; undefined if the account has it no more. */
    deleteLink({ id, author }: { id: number; author: Author }): Link | 'not_active' | undefined {
      if (!accounts.isActive(author)) return 'not_active'
      return isOwned.get(id, author.accountId) ? remove(id) : undefined
    },

    /** Deletes the oldest links of an account, at most `most`. */
    deleteLinksOf: ({ accountId, most }: { accountId: AccountId; most: number }) =>
      removeAll(idsOf.all(accountId, most)),

    /** Links that are scheduled already keep their time. */
    scheduleDeletion: ({ ids, deleteAt, author }: ScheduleDeletion): NamedLink[] | 'not_active' =>
      schedule(deleteAt, ids, author),

    undoDeletion: ({ ids, author }: Omit<ScheduleDeletion, 'deleteAt'>) =>
      schedule(null, ids, author),

    /** Deletes links whose scheduled deletion is due, at most `most`. */
    deleteDue: ({ now, most }: { now: number; most: number }) => removeAll(due.all(now, most)),
  }
}

/**
 * The candidate after a generated code that is in use. It follows from `code` alone: a write that
 * is run again, in another batch, has the same result.
 */
function nextCode(code: Code): Code {
  const digest = new Uint8Array(32)
  Bun.SHA256.hash(code, digest)
  return newCode((length) => digest.subarray(0, length))
}

const bytesOf = (url: string | null): number => (url === null ? 0 : Buffer.byteLength(url))

/** What new links of one command have in common. */
type NewLinkOf = Pick<Link, 'accountId' | 'createdAt' | 'domainId'>

/** Inserts links. Replaces a generated code that is in use (about one link in a million). */
export function generatedInserter(db: Database) {
  const insert = linkInserter(db)
  return (item: NewLink, about: NewLinkOf): Link => {
    let candidate = item
    for (let tried = 0; tried < CANDIDATES_MAX; tried++) {
      const link = insert(candidate, about)
      if (link) return link
      candidate = { ...candidate, code: nextCode(candidate.code) }
    }
    throw new Error(`${CANDIDATES_MAX} generated codes were in use`)
  }
}

/** Inserts a link; undefined if its code is in use, disabled or closed by an alias. */
function linkInserter(db: Database) {
  const isClosed = closedCodes(db)
  // A single statement with SELECT … WHERE NOT EXISTS, or RETURNING, takes longer (decision 001).
  const insert = db.prepare<null, (string | number | Uint8Array | null)[]>(
    `INSERT INTO links (code, account_id, url, created_at, url_key, passcode_hash, domain_id)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (code) DO NOTHING`,
  )
  return (item: NewLink, { accountId, createdAt, domainId }: NewLinkOf): Link | undefined => {
    const { code, url, urlKey, passcodeHash } = item
    if (isClosed(code)) return undefined
    const domain = domainCell(domainId)
    const done = insert.run(code, accountId, url, createdAt, urlKey, passcodeHash, domain)
    if (done.changes === 0) return undefined
    const id = Number(done.lastInsertRowid)
    return { id, code, accountId, url, createdAt, domainId, alias: null }
  }
}
