import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type Address, domainCell } from '../addresses/address.ts'
import {
  type AliasChange,
  type AliasPatch,
  type AliasRefusal,
  aliasPatcher,
  aliasRows,
  closedCodes,
  codesInUse,
  prepareAddressed,
} from '../addresses/names.ts'
import { domainUses } from '../addresses/use.ts'
import type { Quota } from '../config.ts'
import type { Author } from '../db/author.ts'
import { type ChangedLink, eventMover, eventRecorder, recordChanges } from '../db/history.ts'
import { type Authored, perConnection } from '../db/subject.ts'
import { type Code, newCode, toCode } from '../lib/code.ts'
import { dayRemover } from '../visits/store.ts'
import { handOverWrite } from './hand-over.ts'
import {
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
import { listChangeNoter } from './list-changes.ts'
import {
  bytesOfProperties,
  cannotForward,
  cellsOf,
  type LinkProperties,
  NO_PROPERTIES,
  PROPERTY_CELLS,
  PROPERTY_COLUMNS,
  type PropertiesPatch,
  type PropertiesRow,
  type PropertyName,
  propertiesView,
  readProperties,
  startsAfterExpiry,
  storedBytes,
  TAGS_MAX,
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

interface ReplacePassword {
  id: number
  /** Hashes. */
  before: string
  after: string
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

export interface PatchLinks {
  /** Links of other accounts, and those that were deleted, are skipped. */
  ids: readonly number[]
  /** Only of a single link. */
  url?: { text: string; key: Uint8Array }
  patch: PropertiesPatch
  /** Only of a single link. */
  aliases?: AliasPatch | undefined
  quota: Quota
  author: Author
}

interface ChangedText {
  before: string | null
  after: string | null
}

/** The links that were changed, and which properties of each. */
export interface Patched {
  accountId: AccountId
  links: { id: number; code: Code; changed: PropertyName[]; url?: ChangedText | undefined }[]
  aliases?: AliasChange | undefined
}

type Problem = 'bad_times' | 'bad_forwarding' | 'too_many_tags' | 'bad_domain'
export type PatchRefusal = Problem | QuotaName | AliasRefusal

/** A link with its properties, as they are stored or will be. */
interface OwnedLink extends Pick<Link, 'id' | 'code' | 'accountId' | 'url'> {
  properties: LinkProperties
}

const CANDIDATES_MAX = 100

/**
 * The only place that inserts, changes, moves and deletes links, with hand-over.ts. Runs on the
 * writer thread, inside the transaction of its batch. Every result depends on the database and the
 * arguments only, whatever else is in the batch. links/subject.ts has the calls and their events;
 * an import calls `linkInserter` for rows that it has decided about.
 */
export const linkWrites = perConnection((db) => ({
  ...creation(db),
  ...singleCreation(db),
  ...change(db),
  ...propertyWrites(db),
  ...deletion(db),
  leaveDomain: leavingDomain(db),
  handOver: handOverWrite(db),
}))

function creation(db: Database) {
  const insert = linkInserter(db)
  const accounts = accountCounts(db)
  const reuse = linkReuser(db)
  const domains = domainUses(db)
  const record = eventRecorder(db)

  /** One link per item, in order: a new one, or the one that the account has for the URL. */
  const create = ({ author, items, quota }: CreateLinks): Creation[] => {
    const { accountId, now: createdAt } = author
    const before = accounts.stored(accountId)
    const about = { accountId, createdAt, domainId: domains.defaultOf(accountId) }
    let total = before
    const created: number[] = []
    let lastUrl: string | null = null
    const links = items.map((item): Creation => {
      const existing = reuse(author, item.urlKey)
      if (existing) return existing
      const next = { links: total.links + 1, urlBytes: total.urlBytes + bytesOf(item.url) }
      const exceeded = exceededQuota(next, quota)
      if (exceeded) return exceeded
      total = next
      const link = insert.generated(item, about)
      created.push(link.id)
      lastUrl = item.url
      return { ...link, reused: false }
    })
    const after = created.length === 1 ? lastUrl : undefined
    record({ kind: 'created', accountId, links: created, by: author, after })
    accounts.add(accountId, {
      links: total.links - before.links,
      urlBytes: total.urlBytes - before.urlBytes,
    })
    return links
  }

  return {
    /** JSON of one `Creation` per item. */
    createEncoded: (message: CreateMessage): string =>
      JSON.stringify(create(decodeCreate(message))),
  }
}

function singleCreation(db: Database) {
  const insert = linkInserter(db)
  const accounts = accountCounts(db)
  const aliases = aliasPatcher(db)
  const reuse = linkReuser(db)
  const isInUse = codesInUse(db)
  const domains = domainUses(db)
  const record = eventRecorder(db)
  return {
    /** A link with its properties and aliases, or why nothing was created. */
    createLink(command: CreateLink): CreatedOne | CreateRefusal {
      const { isGenerated, quota } = command
      const { author: by } = command
      const { accountId, now: createdAt } = by
      const mayReuse = command.item.url !== null && command.reuse !== false
      const existing = mayReuse && reuse(by, command.item.urlKey)
      if (existing) return { link: existing }
      if (!isGenerated && isInUse(command.item.code)) return 'code_in_use'

      const { domain: domainId = domains.defaultOf(accountId) } = command.patch
      if (!domains.mayUse(accountId, domainId)) return 'bad_domain'
      const patch = { ...command.patch, domain: domainId }
      const properties = patchProperties(NO_PROPERTIES, patch)
      const problem = findProblem({ url: command.item.url, properties })
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
      const about = { accountId, createdAt, domainId, properties }
      const link = isGenerated ? insert.generated(item, about) : insert.asked(item, about)
      if (!link) return 'code_in_use'
      const changed = aliases.apply({ ...planned, linkId: link.id })
      accounts.add(accountId, added)
      record({ kind: 'created', accountId, links: [link.id], by, after: link.url })
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

/** Cancels the scheduled deletion of a link. False if there is none. */
export const linkKeeper = perConnection((db) => {
  const keep = db.prepare<null, [number]>(
    'UPDATE links SET delete_at = NULL WHERE id = ? AND delete_at IS NOT NULL',
  )
  return (id: number): boolean => keep.run(id).changes > 0
})

/** Finds the link that an account has for a URL. A scheduled deletion of it is canceled. */
function linkReuser(db: Database) {
  const keep = linkKeeper(db)
  const record = eventRecorder(db)
  // The oldest: the index has equal keys in the order of ids. ORDER BY id takes three times as long
  // (decision 001).
  const byUrl = prepareAddressed<Link, [AccountId, Uint8Array | null]>(
    db,
    `SELECT ${LINK_COLUMNS} FROM links INDEXED BY links_url
     WHERE account_id = ? AND url_key = ? LIMIT 1`,
  )
  // A key that only creates is in the source of pages: it must not undo a deletion.
  const mustStay = db.prepare<object, [number, number]>(
    `SELECT 1 FROM links, api_keys WHERE links.id = ? AND delete_at IS NOT NULL
       AND api_keys.id = ? AND scope = 'create'`,
  )
  return (author: Author, urlKey: Uint8Array | null): CreatedLink | undefined => {
    const { accountId, by } = author
    const existing = byUrl.get(accountId, urlKey)
    if (!existing) return undefined
    if (typeof by === 'object' && 'keyId' in by && mustStay.get(existing.id, by.keyId)) {
      return undefined
    }
    if (!keep(existing.id)) return { ...existing, reused: true }
    record({ kind: 'restored', accountId, links: [existing.id], by: author })
    return { ...existing, reused: true, restored: true }
  }
}

const urlSetter = (db: Database) =>
  prepareAddressed<Link, [string, Uint8Array, number]>(
    db,
    `UPDATE links SET url = ?, url_key = ? WHERE id = ? RETURNING ${LINK_COLUMNS}`,
  )

function change(db: Database) {
  const accounts = accountCounts(db)
  const index = indexKeeper(db)
  const record = eventRecorder(db)
  const findStored = db.prepare<
    Pick<Link, 'accountId' | 'url'> & Pick<LinkProperties, 'forward_path'>,
    [number]
  >('SELECT account_id AS accountId, url, forward_path FROM links WHERE id = ?')
  const setUrl = urlSetter(db)
  const setHash = db.prepare<NamedLink, [string, number, string]>(
    `UPDATE links SET password = ? WHERE id = ? AND password = ? RETURNING ${NAMED_LINK}`,
  )
  return {
    /** Another hash of the same password. Null if the link has another password meanwhile. */
    replacePassword: ({ id, before, after }: ReplacePassword): NamedLink | null =>
      setHash.get(after, id, before),

    /** Undefined if the account has the link no more. A shorter URL always fits. */
    changeUrl(command: ChangeUrl): ChangedUrl | QuotaName | 'bad_forwarding' | undefined {
      const { id, url, urlKey, quota, author } = command
      const old = findStored.get(id)
      if (old?.accountId !== author.accountId) return undefined
      if (cannotForward({ ...NO_PROPERTIES, ...old }, url)) return 'bad_forwarding'
      const added = { links: 0, urlBytes: bytesOf(url) - bytesOf(old.url) }
      const exceeded = accounts.exceededBy(old.accountId, added, quota)
      if (exceeded) return exceeded
      const link = setUrl.get(url, urlKey, id)
      if (!link) return undefined
      accounts.add(old.accountId, added)
      index.update(link)
      const { accountId, url: before } = old
      const links = before === url ? [] : [id]
      record({ kind: 'destination', accountId, links, by: author, before, after: url })
      return { link, before }
    },
  }
}

function propertyWrites(db: Database) {
  const accounts = accountCounts(db)
  const rows = rowStore(db)
  const aliases = aliasPatcher(db)
  const domains = domainUses(db)
  const setUrl = urlSetter(db)
  const record = eventRecorder(db)
  const { hostOf: namedHost, textOf } = domains
  const viewOf = (properties: LinkProperties) => propertiesView({ namedHost }, properties)

  return {
    /** The changed links, or why none was changed. */
    patchLinks(command: PatchLinks): Patched | PatchRefusal {
      const { ids, url, patch, quota, author } = command
      const names = namesIn(patch)
      const changes = rows.find(ids, author.accountId).map((before) => {
        const after = applyPatch(before, patch, url?.text)
        return { before, after, changed: changedOf(names, before.properties, after.properties) }
      })
      for (const { before, after } of changes) {
        const problem = findProblem(after, before.properties)
        if (problem) return problem
      }
      const { domain } = patch
      const isUsable = domain === undefined || domains.mayUse(author.accountId, domain)
      if (!isUsable && changes.some(({ changed }) => changed.includes('domain'))) {
        return 'bad_domain'
      }
      const [first] = changes
      const planned = command.aliases && first && aliases.plan(first.before, command.aliases)
      if (planned && (typeof planned === 'string' || 'taken' in planned)) return planned
      const urlBytes = changes.reduce(
        (sum, { before, after }) => sum + bytesOfLink(after) - bytesOfLink(before),
        planned?.bytes ?? 0,
      )
      const added = { links: 0, urlBytes }
      const exceeded = accounts.exceededBy(author.accountId, added, quota)
      if (exceeded) return exceeded
      const changedAliases = planned && aliases.apply(planned)
      for (const { after, changed } of changes) {
        if (url) setUrl.get(url.text, url.key, after.id)
        rows.save(after, changed, url !== undefined)
        if (changedAliases) rows.noteAliases(after)
      }
      accounts.add(author.accountId, added)
      const { gone = [], added: named = [] } = planned ?? {}
      const hasOthers = gone.length + named.length > 0
      const recorded = changes.map(
        ({ before, after, changed }): ChangedLink => ({
          id: after.id,
          changed: hasOthers ? [...changed, 'aliases'] : changed,
          before: () => ({ ...viewOf(before.properties), aliases: gone.map(textOf) }),
          after: () => ({ ...viewOf(after.properties), aliases: named.map(textOf) }),
        }),
      )
      const about = { accountId: author.accountId, by: author }
      for (const { before, after } of changes) {
        const links = before.url === after.url ? [] : [after.id]
        record({ ...about, kind: 'destination', links, before: before.url, after: after.url })
      }
      recordChanges(record, about, recorded)
      return {
        accountId: author.accountId,
        links: changes.map(({ before, after: { id, code, url: after }, changed }) => ({
          id,
          code,
          changed,
          url: before.url === after ? undefined : { before: before.url, after },
        })),
        aliases: changedAliases,
      }
    },
  }
}

/** Sets all properties. Triggers on `links` keep the tags, and invalidate counts of lists. */
function propertySetter(db: Database): (id: number, properties: LinkProperties) => void {
  const set = db.prepare<null, (string | number | null)[]>(
    `UPDATE links SET ${PROPERTY_CELLS.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`,
  )
  return (id, properties) => void set.run(...cellsOf(properties), id)
}

function rowStore(db: Database) {
  const index = indexKeeper(db)
  const byIds = db.prepare<Omit<OwnedLink, 'properties'> & PropertiesRow, [string, AccountId]>(
    `SELECT id, code, account_id AS accountId, url, ${PROPERTY_COLUMNS} FROM links
     WHERE id IN (SELECT value FROM json_each(?1)) AND account_id = ?2 ORDER BY id`,
  )
  const setProperties = propertySetter(db)
  const noteChange = listChangeNoter(db)
  return {
    find: (ids: readonly number[], accountId: AccountId): OwnedLink[] =>
      byIds
        .all(JSON.stringify(ids), accountId)
        .map((row) => ({ ...row, properties: readProperties(row) })),

    save(link: OwnedLink, changed: readonly PropertyName[], hasNewUrl: boolean): void {
      setProperties(link.id, link.properties)
      const isOneOf = (names: readonly PropertyName[]) => changed.some((one) => names.includes(one))
      if (hasNewUrl || isOneOf(TEXTS)) index.update(link)
      if (isOneOf(SELECTING)) noteChange(link.accountId, [link.id])
    },

    /** The aliases have changed. */
    noteAliases(link: OwnedLink): void {
      index.update(link)
      noteChange(link.accountId, [link.id])
    },
  }
}

const textOf = (value: unknown): string => JSON.stringify(value)

const TEXTS: readonly PropertyName[] = ['title', 'note', 'tags', 'destinations']
/** What lists select links by, beside the columns that the triggers on `links` watch. */
const SELECTING: readonly PropertyName[] = [
  'paused',
  'starts_at',
  'expires_at',
  'max_hits',
  'destinations',
]

/** The properties that a patch may change. */
const namesIn = ({ addTags, removeTags, tags, ...values }: PropertiesPatch): PropertyName[] => [
  ...(Object.keys(values) as PropertyName[]),
  ...(addTags || removeTags || tags ? (['tags'] as const) : []),
]

const changedOf = (
  names: readonly PropertyName[],
  before: LinkProperties,
  after: LinkProperties,
): PropertyName[] => names.filter((name) => textOf(before[name]) !== textOf(after[name]))

const applyPatch = (link: OwnedLink, patch: PropertiesPatch, url = link.url): OwnedLink => ({
  ...link,
  url,
  properties: patchProperties(link.properties, patch),
})

/** Why a link cannot get the properties; undefined if it can. What it had before stays. */
function findProblem(
  { url, properties }: Pick<OwnedLink, 'url' | 'properties'>,
  before = NO_PROPERTIES,
): Problem | undefined {
  const { starts_at, expires_at, tags } = properties
  const hasNewTimes = starts_at !== before.starts_at || expires_at !== before.expires_at
  if (hasNewTimes && startsAfterExpiry(properties)) return 'bad_times'
  if (cannotForward(properties, url)) return 'bad_forwarding'
  const hasNewTag = tags.some((tag) => !before.tags.includes(tag))
  return hasNewTag && tags.length > TAGS_MAX ? 'too_many_tags' : undefined
}

function patchProperties(before: LinkProperties, patch: PropertiesPatch): LinkProperties {
  const { tags = before.tags, addTags = [], removeTags = [], ...values } = patch
  const set = Object.entries(values).filter(([, value]) => value !== undefined)
  const remaining = [...tags, ...addTags].filter((tag) => !removeTags.includes(tag))
  return { ...before, ...Object.fromEntries(set), tags: [...new Set(remaining)].sort() }
}

function leavingDomain(db: Database) {
  const record = eventRecorder(db)
  const { hostOf } = domainUses(db)
  const clear = db.prepare<null, [number]>(
    'UPDATE accounts SET domain_id = NULL WHERE domain_id = ?',
  )
  const links = db.prepare<NamedLink, [number, number]>(
    `UPDATE links SET domain_id = NULL
     WHERE id IN (SELECT id FROM links WHERE domain_id = ? ORDER BY id LIMIT ?)
     RETURNING ${NAMED_LINK}`,
  )
  const aliases = db.prepare<NamedLink & { path: string }, [number, number]>(
    `UPDATE OR IGNORE aliases SET domain_id = 0 WHERE domain_id = ?1 AND path IN (
       SELECT path FROM aliases WHERE domain_id = ?1 ORDER BY path LIMIT ?2)
     RETURNING path, link_id AS id,
       (SELECT account_id FROM links WHERE id = link_id) AS accountId,
       (SELECT code FROM links WHERE id = link_id) AS code`,
  )
  /**
   * Gives at most `most` links and as many aliases of a domain to the primary one, except aliases
   * that it has. New links of accounts do not get the domain any more.
   */
  return ({ id, most, author: by }: Authored & { id: number; most: number }) => {
    clear.run(id)
    const moved = { links: links.all(id, most), aliases: aliases.all(id, most) }
    const byAccount = Map.groupBy([...moved.links, ...moved.aliases], (link) => link.accountId)
    for (const [accountId, some] of byAccount) {
      const ids = [...new Set(some.map((link) => link.id))]
      const about = { accountId, links: ids, by, before: hostOf(id), isPart: true }
      record({ kind: 'domain', ...about })
    }
    return moved
  }
}

function deletion(db: Database) {
  const accounts = accountCounts(db)
  const index = indexKeeper(db)
  const record = eventRecorder(db)
  const { removeOf: removeEvents } = eventMover(db)
  const removeLink = prepareAddressed<Link & { urlBytes: number }, [number]>(
    db,
    `DELETE FROM links WHERE id = ? RETURNING ${LINK_COLUMNS}, ${storedBytes()} AS urlBytes`,
  )
  const owned = db.prepare<{ code: Code }, [number, AccountId]>(
    'SELECT code FROM links WHERE id = ? AND account_id = ?',
  )
  const aliases = aliasRows(db)
  const removeHits = db.prepare<null, [number]>('DELETE FROM hits WHERE link_id = ?')
  const removeDays = dayRemover(db)
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
  const others = db.prepare<Pick<NamedLink, 'id' | 'code'>, [boolean, string, AccountId]>(
    `SELECT id, code FROM links WHERE (delete_at IS NOT NULL) = ?1
     AND id IN (SELECT value FROM json_each(?2)) AND account_id = ?3 ORDER BY id`,
  )
  const recordDeletion = (
    kind: 'deleted' | 'restored',
    links: readonly Pick<NamedLink, 'id' | 'code'>[],
    by: Author,
  ) => {
    const codes = links.map(({ code }) => code)
    const before = kind === 'restored' ? undefined : codes.length === 1 ? codes[0] : codes
    record({ kind, accountId: by.accountId, links: links.map(({ id }) => id), by, before })
  }
  const schedule = (deleteAt: number | null, ids: readonly number[], author: Author) => {
    const isUndone = deleteAt === null
    const changed = others.all(isUndone, JSON.stringify(ids), author.accountId)
    recordDeletion(isUndone ? 'restored' : 'deleted', changed, author)
    return setTime.all(deleteAt, JSON.stringify(ids), author.accountId)
  }

  const remove = (id: number): Link | undefined => {
    const removed = removeLink.get(id)
    if (!removed) return undefined
    const { urlBytes, ...link } = removed
    index.remove(link.accountId, id)
    removeHits.run(id)
    removeDays(id)
    removePublicPage(id)
    aliases.removeAllOf(id)
    removeEvents(id)
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
    deleteLink({ id, author }: { id: number; author: Author }): Link | undefined {
      const found = owned.get(id, author.accountId)
      if (!found) return undefined
      recordDeletion('deleted', [{ id, ...found }], author)
      return remove(id)
    },

    /** Deletes the oldest links of an account, at most `most`. */
    deleteLinksOf: ({ accountId, most }: { accountId: AccountId; most: number }) =>
      removeAll(idsOf.all(accountId, most)),

    /** Links that are scheduled already keep their time. */
    scheduleDeletion: ({ ids, deleteAt, author }: ScheduleDeletion) =>
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

const bytesOfLink = ({ url, properties }: Pick<OwnedLink, 'url' | 'properties'>): number =>
  bytesOf(url) + bytesOfProperties(properties)

/** What a link gets beside its code and its URL. */
interface NewLinkOf extends Pick<Link, 'accountId' | 'createdAt' | 'domainId'> {
  /** Absent: none is set. The link has `domainId`, whatever theirs is. */
  properties?: LinkProperties | undefined
}

const LINK_CELLS = ['code', 'account_id', 'url', 'created_at', 'url_key', 'passcode_hash']

// A single statement with SELECT … WHERE NOT EXISTS, or RETURNING, takes longer (decision 001).
const prepareInsert = (db: Database, ...more: string[]) => {
  const names = [...LINK_CELLS, ...more]
  return db.prepare<null, (string | number | Uint8Array | null)[]>(
    `INSERT INTO links (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})
     ON CONFLICT (code) DO NOTHING`,
  )
}

/** Inserts links, about which everything else is decided. */
export const linkInserter = perConnection((db) => {
  const isClosed = closedCodes(db)
  const setProperties = propertySetter(db)
  const insert = prepareInsert(db, 'domain_id')
  const insertWhole = prepareInsert(db, 'typed_code', ...PROPERTY_CELLS)
  /** Undefined if the code is in use, disabled or closed by an alias. */
  const asked = (item: NewLink, about: NewLinkOf): Link | undefined => {
    const { code, typedCode = null, url, urlKey, passcodeHash } = item
    const { accountId, createdAt, domainId } = about
    if (isClosed(code)) return undefined
    const properties = { ...(about.properties ?? NO_PROPERTIES), domain: domainId }
    const cells = [code, accountId, url, createdAt, urlKey, passcodeHash]
    const done =
      about.properties || typedCode !== null
        ? insertWhole.run(...cells, typedCode, ...cellsOf({ ...properties, tags: [] }))
        : insert.run(...cells, domainCell(domainId))
    if (done.changes === 0) return undefined
    const id = Number(done.lastInsertRowid)
    // A trigger adds the tags when they are updated.
    if (properties.tags.length > 0) setProperties(id, properties)
    return { id, code, typedCode, accountId, url, createdAt, domainId, alias: null }
  }
  return {
    asked,
    /** Replaces a generated code that is in use (about one link in a million). */
    generated(item: NewLink, about: NewLinkOf): Link {
      let candidate = item
      for (let tried = 0; tried < CANDIDATES_MAX; tried++) {
        const link = asked(candidate, about)
        if (link) return link
        candidate = { ...candidate, code: nextCode(candidate.code), typedCode: null }
      }
      throw new Error(`${CANDIDATES_MAX} generated codes were in use`)
    },
  }
})
