import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { type Address, addressKey, hasAddress, smallPath } from '../addresses/address.ts'
import { aliasRows, BY_SMALL_PATH, bytesOfAliases, closedCodes } from '../addresses/names.ts'
import { domainUses } from '../addresses/use.ts'
import type { Quota } from '../config.ts'
import type { Author } from '../db/author.ts'
import type { Event } from '../db/events.ts'
import { eventRecorder } from '../db/history.ts'
import { authoredWrite, scan, subject } from '../db/subject.ts'
import { type Code, toCode } from '../lib/code.ts'
import { creationEvent, linkEvent } from '../links/events.ts'
import { type Link, type LinkSecrets, type NamedLink, unpackSecrets } from '../links/link.ts'
import { bytesOfProperties, type LinkProperties, NO_PROPERTIES } from '../links/property-table.ts'
import { linkInserter, linkKeeper } from '../links/put.ts'
import {
  accountCounts,
  addStored,
  exceededQuota,
  NOTHING_STORED,
  quotaError,
  type Stored,
} from '../links/quota.ts'
import { type RowResult, refused } from './outcomes.ts'

/** A row as it goes to the writer. */
export interface StoredRow {
  /** Null: the link gets `candidate`, or a code that follows from it. */
  code: Code | null
  typedCode: string | null
  candidate: Code
  url: string | null
  aliases: readonly Address[]
  /** Aliases that match in any case. */
  aliasesAnyCase: readonly Address[]
  /** The alias that people see. Null: the first one. */
  displayed: Address | null
  createdAt: number
  hits: number
  /** Absent: none is set. */
  properties?: LinkProperties | undefined
}

export interface ImportMessage {
  author: Author
  quota: Quota
  /** JSON of `StoredRow[]`: as plain objects, their structured clone takes longer. */
  rows: string
  /** URL key and passcode hash of each row. */
  secrets: Uint8Array
  /** What earlier rows of a dry run would have stored. */
  before?: Stored | undefined
}

/** A link that was created, as events tell it, also on other hosts of a cluster. */
interface StoredLink extends Pick<Link, 'id' | 'code' | 'domainId'> {
  addresses: readonly Address[]
}

export interface ImportResult {
  /** JSON of `RowResult[]`: one for each row, in their order. */
  results: string
  /** JSON of `StoredLink[]`. */
  created: string
  accountId: AccountId
  stored: Stored
  /** Links that exist and were about to be deleted: their deletion is canceled. */
  restored: NamedLink[]
}

export const imports = subject({
  scans: {
    /** The results that `add` would have. The codes of new links are not known. */
    plan: scan((db) => planner(db)),
    /** The result that each row would have as the only one. */
    compare: scan((db) => comparer(db)),
  },

  writes: {
    /**
     * Creates the links of the rows that are new. Of what exists, only a scheduled deletion is
     * canceled, so that the same call again changes nothing.
     */
    add: authoredWrite('editor', {
      prepare: importer,
      events(result, message) {
        const { accountId, restored } = result
        const author = message?.author
        const about = { changed: ['delete_at'], author }
        const events: Event[] = restored.map((link) => linkEvent('restored', link, about))
        for (const link of JSON.parse(result.created) as StoredLink[]) {
          const { addresses } = link
          const created = { ...link, accountId, reused: false }
          events.push(creationEvent(created, { addresses, author, isImported: true }))
        }
        return events
      },
    }),
  },
})

function importer(db: Database) {
  const accounts = accountCounts(db)
  const addresses = storedAddresses(db)
  const insert = rowInserter(db)
  const addHits = importedHits(db)
  const keep = linkKeeper(db)
  const record = eventRecorder(db)
  return (message: ImportMessage): ImportResult => {
    const { author: by } = message
    const { accountId } = by
    const links: number[] = []
    let hits = 0
    const before = accounts.stored(accountId)
    const result = decideAll(message, { addresses, before }, (row, secrets, aliases) => {
      const link = insert(row, secrets, { accountId, aliases })
      links.push(link.id)
      hits += row.hits
      return link
    })
    accounts.add(accountId, result.stored)
    addHits(accountId, hits)
    const restored = result.restored.map(({ id }) => id).filter(keep)
    record({ kind: 'created', accountId, links, by, after: { imported: true }, isPart: true })
    record({ kind: 'restored', accountId, links: restored, by, isPart: true })
    return result
  }
}

function planner(db: Database) {
  const accounts = accountCounts(db)
  const stored = storedAddresses(db)
  return (message: ImportMessage): ImportResult => {
    const { author, before: planned = NOTHING_STORED } = message
    const addresses = plannedAddresses(stored, author.accountId)
    const before = addStored(accounts.stored(author.accountId), planned)
    return decideAll(message, { addresses, before }, (row, { urlKey }) => {
      addresses.add(row, urlKey)
      return undefined
    })
  }
}

function comparer(db: Database) {
  const addresses = storedAddresses(db)
  return (message: ImportMessage): ImportResult =>
    decideAll(message, { addresses, before: NOTHING_STORED }, () => undefined)
}

/** Undefined if the link is only planned. */
type Store = (row: StoredRow, secrets: LinkSecrets, aliases: readonly Address[]) => Link | undefined

interface World {
  addresses: Addresses
  /** What the account has stored. */
  before: Stored
}

/** Decides about each row, and passes those to `store` that are new and fit the quota. */
function decideAll(
  { author: { accountId }, quota, rows, secrets }: ImportMessage,
  { addresses, before }: World,
  store: Store,
): ImportResult {
  let stored = NOTHING_STORED
  const restored: NamedLink[] = []
  const links: StoredLink[] = []
  const results = (JSON.parse(rows) as StoredRow[]).map((row, i): RowResult => {
    const own = unpackSecrets(secrets, i, row)
    const found = occupantOf(addresses, row, { accountId, urlKey: own.urlKey })
    if (found === 'closed' || (found && found.accountId !== accountId)) {
      return refused('path_taken', 'The address is in use')
    }
    if (found) {
      const { id, code, isEnding } = found
      if (id !== undefined && code && isEnding) restored.push({ id, code, accountId })
      return sameBytes(found.urlKey, own.urlKey)
        ? { outcome: 'exists', code, message: '' }
        : { outcome: 'kept', code, message: 'Your link at this address has another URL' }
    }
    const { free, taken } = aliasesFor(addresses, row)
    const urlBytes = bytesOf(row) + bytesOfAliases(free)
    const next = addStored(stored, { links: 1, urlBytes })
    const exceeded = exceededQuota(addStored(before, next), quota)
    if (exceeded) return refused('quota', quotaError(exceeded, quota).message)
    stored = next
    const link = store(row, own, free)
    if (link) links.push({ id: link.id, code: link.code, domainId: link.domainId, addresses: free })
    const outcome = free.length > 0 ? 'created_alias' : 'created'
    return {
      outcome: row.properties?.paused ? 'created_paused' : outcome,
      code: link?.code ?? row.code,
      message: taken.map((alias) => `The alias ${addresses.textOf(alias)} ${LEFT_OUT}`).join('. '),
    }
  })
  const created = JSON.stringify(links)
  return { results: JSON.stringify(results), created, accountId, stored, restored }
}

const LEFT_OUT = 'is in use and was left out'

const bytesOf = ({ url, properties }: StoredRow): number =>
  Buffer.byteLength(url ?? '') + (properties ? bytesOfProperties(properties) : 0)

interface Found {
  /** Absent: the link is planned. */
  id?: number | undefined
  accountId: AccountId
  urlKey: Uint8Array | null
  /** Null: the link is planned, and its code will be generated. */
  code: Code | null
  /** 1: its deletion is scheduled. */
  isEnding?: number | undefined
}

interface NewAlias extends Address {
  isAnyCase: boolean
}

/** What a new link must not have in common with others. */
interface Addresses {
  byCode(code: Code): Found | undefined
  byAlias(alias: Address): Found | undefined
  /** The account's link with this URL. */
  byUrl(accountId: AccountId, urlKey: Uint8Array): Found | undefined
  /** Whether the code belongs to a disabled link or to an alias. */
  isClosed(code: Code): boolean
  /**
   * An alias of the domain, or a code, has the path, or an alias in any case would answer for
   * another one; or the domain has been removed.
   */
  isTaken(alias: NewAlias): boolean
  /** As requests and files name it: see `addressText`. */
  textOf(alias: Address): string
}

function storedAddresses(db: Database): Addresses {
  const columns =
    'id, account_id AS accountId, url_key AS urlKey, code, delete_at IS NOT NULL AS isEnding'
  const byCode = db.prepare<Found, [Code]>(`SELECT ${columns} FROM links WHERE code = ?`)
  // A JOIN takes five times as long (decision 001).
  const byAlias = db.prepare<Found, [string, number, string]>(
    `SELECT ${columns} FROM links WHERE id = (
       SELECT link_id FROM aliases WHERE domain_id = ?2 AND path = ?1
       UNION ALL SELECT link_id FROM ${BY_SMALL_PATH}
         WHERE domain_id = ?2 AND small_path = ?3 AND any_case = 1 LIMIT 1)`,
  )
  const byUrl = db.prepare<Found, [AccountId, Uint8Array]>(
    `SELECT ${columns} FROM links INDEXED BY links_url
     WHERE account_id = ? AND url_key = ? LIMIT 1`,
  )
  const { conflictOf } = aliasRows(db)
  const { existing, textOf } = domainUses(db)
  return {
    byCode: (code) => byCode.get(code) ?? undefined,
    byAlias: ({ path, domainId }) => byAlias.get(path, domainId, smallPath(path)) ?? undefined,
    byUrl: (accountId, urlKey) => byUrl.get(accountId, urlKey) ?? undefined,
    isClosed: closedCodes(db),
    isTaken: (alias) =>
      conflictOf(alias, alias) !== undefined || existing(alias.domainId) !== alias.domainId,
    textOf,
  }
}

/** What is stored, and the links that earlier rows of the call would have created. */
function plannedAddresses(stored: Addresses, accountId: AccountId) {
  const codes = new Map<string, Found>()
  const aliases = new Map<string, Found>()
  /** The same in small letters, and those in any case of them. */
  const small = new Set<string>()
  const anyCase = new Map<string, Found>()
  const closed = new Set<string>()
  const urls = new Map<string, Found>()
  const smallKey = (alias: Address) => smallPath(addressKey(alias))
  const isTaken = (alias: NewAlias) =>
    stored.isTaken(alias) ||
    aliases.has(addressKey(alias)) ||
    (alias.isAnyCase ? small : anyCase).has(smallKey(alias)) ||
    codes.has(toCode(alias.path) ?? '')
  return {
    byCode: (code: Code) => stored.byCode(code) ?? codes.get(code),
    byAlias: (alias: Address) =>
      stored.byAlias(alias) ?? aliases.get(addressKey(alias)) ?? anyCase.get(smallKey(alias)),
    byUrl: (id: AccountId, urlKey: Uint8Array) =>
      stored.byUrl(id, urlKey) ?? urls.get(latin1(urlKey)),
    isClosed: (code: Code) => stored.isClosed(code) || closed.has(code),
    isTaken,
    textOf: stored.textOf,
    add(row: StoredRow, urlKey: Uint8Array | null): void {
      const { code } = row
      const found = { accountId, urlKey, code }
      for (const alias of aliasesOf(row).filter((one) => !isTaken(one))) {
        aliases.set(addressKey(alias), found)
        closed.add(toCode(alias.path) ?? '')
        small.add(smallKey(alias))
        if (alias.isAnyCase) anyCase.set(smallKey(alias), found)
      }
      if (code) codes.set(code, found)
      if (urlKey && !urls.has(latin1(urlKey))) urls.set(latin1(urlKey), found)
    },
  }
}

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

const aliasesOf = ({ aliases, aliasesAnyCase }: StoredRow): NewAlias[] => [
  ...aliases.map((alias) => ({ ...alias, isAnyCase: false })),
  ...aliasesAnyCase.map((alias) => ({ ...alias, isAnyCase: true })),
]

/** The aliases that a new link gets, and those that it does not. */
function aliasesFor({ isTaken }: Addresses, row: StoredRow) {
  const all = aliasesOf(row)
  const free = all
    .filter((alias, i) => !isTaken(alias) && !hasAddress(all.slice(0, i), alias))
    .map(({ domainId, path }) => ({ domainId, path }))
  return { free, taken: all.filter((alias) => !hasAddress(free, alias)) }
}

/**
 * What has the address of a row, if something does. Its address is its code, or else its first
 * alias, or else its URL.
 */
function occupantOf(
  addresses: Addresses,
  row: StoredRow,
  { accountId, urlKey }: { accountId: AccountId; urlKey: Uint8Array | null },
): Found | 'closed' | undefined {
  const { code } = row
  if (code !== null) {
    return addresses.byCode(code) ?? (addresses.isClosed(code) ? 'closed' : undefined)
  }
  const [first] = aliasesOf(row)
  if (!first) return urlKey ? addresses.byUrl(accountId, urlKey) : undefined
  const codeOfPath = toCode(first.path)
  const found = addresses.byAlias(first) ?? (codeOfPath && addresses.byCode(codeOfPath))
  return found ?? (addresses.isTaken(first) ? 'closed' : undefined)
}

const sameBytes = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : Buffer.compare(one, other) === 0

function rowInserter(db: Database) {
  const insert = linkInserter(db)
  const rows = aliasRows(db)
  const domains = domainUses(db)
  const addHits = db.prepare<null, [number, AccountId, number]>(
    'INSERT INTO hits (link_id, account_id, count, imported) VALUES (?1, ?2, ?3, ?3)',
  )
  return (
    row: StoredRow,
    secrets: LinkSecrets,
    { accountId, aliases }: { accountId: AccountId; aliases: readonly Address[] },
  ): Link => {
    const { candidate, url, createdAt } = row
    const domainId = domains.existing((row.properties ?? NO_PROPERTIES).domain)
    const properties = row.properties && { ...row.properties, domain: domainId }
    const link = insert.generated(
      { code: row.code ?? candidate, typedCode: row.typedCode, url, ...secrets },
      { accountId, createdAt, domainId, properties },
    )
    // The last one is the newest, which people see: that is the first one of a file.
    for (const alias of aliases.toReversed()) {
      rows.add(link.id, alias, hasAddress(row.aliasesAnyCase, alias))
    }
    if (row.displayed && hasAddress(aliases, row.displayed)) rows.display(link.id, row.displayed)
    if (row.hits > 0) addHits.run(link.id, accountId, row.hits)
    return link
  }
}

/** Hits without a date: in the counts of links and their account, and in no series. */
function importedHits(db: Database) {
  const toAccount = db.prepare<null, [AccountId, number]>(
    `INSERT INTO account_hits (account_id, count, imported) VALUES (?1, ?2, ?2)
     ON CONFLICT (account_id) DO UPDATE SET count = count + ?2, imported = imported + ?2`,
  )
  const toTotals = db.prepare<null, [number]>(
    'UPDATE hit_totals SET imported = imported + ? WHERE id = 1',
  )
  return (accountId: AccountId, hits: number): void => {
    if (hits === 0) return
    toAccount.run(accountId, hits)
    toTotals.run(hits)
  }
}
