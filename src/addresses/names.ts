import type { Database, SQLQueryBindings } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { subject } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { type Code, toCode } from '../lib/code.ts'
import {
  type Address,
  addressKey,
  addressOfKey,
  canonicalPath,
  domainIdOf,
  hasAddress,
  isOnPrimary,
  PATH_BYTES_MAX,
  smallPath,
} from './address.ts'
import { domainUses } from './use.ts'

/**
 * The names of a link: its code, and aliases. These are further paths that cannot be codes, because
 * of their length or signs or because another path differs in letter case only. An alias resolves
 * to a code and nothing else, after no link was found with its path as the code (decision 035).
 */

/** Maximum number of aliases of one link. */
export const ALIASES_MAX = 20

/** What the short URL of a link depends on. */
export interface Addressed {
  code: Code
  domainId: number
}

export interface DisplayedLink extends Addressed {
  /** The code in the letters in which it was typed, which people see; null: as it is. */
  typedCode: string | null
  /** The alias that people see in place of the code: see `ADDRESS_COLUMNS`. */
  alias: Address | null
}

/** The domain of the address that people see. */
export const displayedDomain = ({
  domainId,
  alias,
}: Pick<DisplayedLink, 'domainId' | 'alias'>): number =>
  alias === null ? domainId : alias.domainId

/** First segment in small letters: people do not see that `/App` is not a page of the service. */
const firstSegment = (path: string): string => (path.split('/', 2)[1] ?? '').toLowerCase()

/** Paths by which programs recognize who controls a domain, beside the routes of the service. */
const PROOFS = [
  // RFC 8615: certificate authorities, apps, security contacts.
  '.well-known',
  'security.txt',
  'apple-app-site-association',
  // Sellers of advertisements (IAB).
  'ads.txt',
  'app-ads.txt',
  'sellers.json',
  // Scripts and policies of a whole origin.
  'sw.js',
  'service-worker.js',
  'crossdomain.xml',
  'clientaccesspolicy.xml',
]

interface AliasRulesOptions {
  /** Who may add aliases: a short path of the whole domain is the operator's to give away. */
  aliases: 'owners' | 'all'
  data: { accounts: { findById(id: AccountId): { isOwner: number } | undefined } }
}

/** Which aliases may be added. */
export class AliasRules {
  readonly #options: AliasRulesOptions
  #reserved: ReadonlySet<string> = new Set()

  constructor(options: AliasRulesOptions) {
    this.#options = options
  }

  /** The routes of the service: no alias begins like one of them or of `PROOFS`, in any case. */
  reserve(routes: readonly { path: string }[]): void {
    const names = routes.map(({ path }) => firstSegment(path))
    this.#reserved = new Set([...PROOFS, ...names.filter((name) => !/^[:*]|^$/.test(name))])
  }

  /** First segments in small letters. */
  get reserved(): ReadonlySet<string> {
    return this.#reserved
  }

  isReserved = (path: string): boolean => this.#reserved.has(firstSegment(`/${path}`))

  /**
   * Throws `alias_not_allowed`, `path_taken` or, for a domain that is not the primary one,
   * `invalid_value` if the account cannot add one of the aliases.
   */
  requireAllowed(accountId: AccountId, aliases: readonly Address[]): void {
    if (aliases.length > 0 && !this.mayAdd(accountId)) throw new AppError('alias_not_allowed')
    const reserved = aliases.find(({ path }) => this.isReserved(path))
    if (reserved === undefined) return
    if (isOnPrimary(reserved)) throw new AppError('path_taken', reserved.path)
    throw new AppError('invalid_value', `Invalid domain_aliases: ${reserved.path} is reserved`)
  }

  mayAdd(accountId: AccountId): boolean {
    return !this.isForOwners || this.#options.data.accounts.findById(accountId)?.isOwner === 1
  }

  get isForOwners(): boolean {
    return this.#options.aliases === 'owners'
  }
}

export interface Alias {
  linkId: number
  code: Code
}

export interface StoredAlias extends Address {
  /** 1: found in any case. 0: an imported one that is found in exact case. */
  anyCase: number
  /** 1: chosen as the address that people see. */
  displayed: number
}

/**
 * The aliases of a link begin with the one that people see: the chosen one, else the newest on the
 * domain of the link.
 */
const DISPLAYED = `FROM aliases WHERE link_id = links.id
  AND (displayed = 1 OR aliases.domain_id = ${domainIdOf('links.domain_id')})
  ORDER BY displayed DESC, position DESC, path LIMIT 1`

/** SQL: selects a `DisplayedLink` of `links` beside its code, with `prepareAddressed`. */
export const ADDRESS_COLUMNS = `${domainIdOf('links.domain_id')} AS domainId,
  links.typed_code AS typedCode,
  (SELECT domain_id || '/' || path ${DISPLAYED}) AS alias`

/** Prepares a statement whose rows have `ADDRESS_COLUMNS`. */
export function prepareAddressed<
  Row extends Pick<DisplayedLink, 'alias'>,
  Params extends SQLQueryBindings[],
>(db: Database, sql: string) {
  type Stored = Omit<Row, 'alias'> & { alias: Address | string | null }
  const statement = db.prepare<Stored, SQLQueryBindings[]>(sql)
  const read = (row: Stored): Row => {
    // In place: most links have no alias.
    if (typeof row.alias === 'string') row.alias = addressOfKey(row.alias)
    return row as unknown as Row
  }
  return {
    get(...params: Params): Row | undefined {
      const row = statement.get(...params)
      return row === null ? undefined : read(row)
    },
    all: (...params: Params): Row[] => statement.all(...params).map(read),
  }
}

/** The domain on which an alias is looked up. */
export interface AliasScope {
  id: number
  /** `all`: the aliases of the primary domain come after its own. */
  codes: 'own' | 'all'
}

/** SQL: aliases by domain and small path. By itself, SQLite reads all aliases of the domain. */
export const BY_SMALL_PATH = 'aliases INDEXED BY aliases_small'

/** Reads on any thread. */
export class AliasReads {
  readonly #byPath
  readonly #ofLinks
  /** Whether a new alias, which answers in any case, would answer for another one. */
  readonly isTaken: (alias: Address) => boolean

  constructor(db: Database) {
    // A JOIN takes five times as long (decision 001).
    const found =
      'SELECT link_id AS linkId, (SELECT code FROM links WHERE id = link_id) AS code FROM'
    this.#byPath = db.prepare<Alias, [number, string, string]>(
      `${found} aliases WHERE domain_id = ?1 AND path = ?2
       UNION ALL ${found} ${BY_SMALL_PATH}
         WHERE domain_id = ?1 AND small_path = ?3 AND any_case = 1 LIMIT 1`,
    )
    const bySmallPath = db.prepare<object, [number, string]>(
      `SELECT 1 FROM ${BY_SMALL_PATH} WHERE domain_id = ? AND small_path = ?`,
    )
    this.isTaken = ({ domainId, path }) => bySmallPath.get(domainId, smallPath(path)) !== null
    this.#ofLinks = db.prepare<StoredAlias & { linkId: number }, [string]>(
      `SELECT link_id AS linkId, domain_id AS domainId, path, any_case AS anyCase, displayed
       FROM aliases LEFT JOIN domains ON domains.id = domain_id
       WHERE link_id IN (SELECT value FROM json_each(?))
       ORDER BY domain_id > 0, host || '/', path`,
    )
  }

  /** `text`: a decoded path. The exact one comes before one in any case. */
  findByPath(text: string, { id, codes }: AliasScope = PRIMARY): Alias | undefined {
    const path = canonicalPath(text)
    if (path === '' || path.length > PATH_BYTES_MAX) return undefined
    const small = smallPath(path)
    const own = this.#byPath.get(id, path, small)
    if (own || id === PRIMARY.id || codes === 'own') return own ?? undefined
    return this.#byPath.get(PRIMARY.id, path, small) ?? undefined
  }

  /** The aliases of links, by their ids. */
  ofLinks(linkIds: readonly number[]): Map<number, StoredAlias[]> {
    return Map.groupBy(this.#ofLinks.all(JSON.stringify(linkIds)), ({ linkId }) => linkId)
  }

  /** The aliases of a link in alphabetical order, those of the primary domain first. */
  ofLink(linkId: number): StoredAlias[] {
    return this.ofLinks([linkId]).get(linkId) ?? []
  }
}

const PRIMARY: AliasScope = { id: PRIMARY_ID, codes: 'all' }

/** Aliases of links. The writes of `links` change them. */
export const aliases = subject({ reads: (db): AliasReads => new AliasReads(db) })

/**
 * `set`: all aliases that the link has afterwards on the primary domain, and `setOnDomains` on all
 * others. `display`: the one that people see, or null for the newest. What is absent stays.
 */
export interface AliasPatch {
  set?: readonly Address[] | undefined
  setOnDomains?: readonly Address[] | undefined
  add?: readonly Address[] | undefined
  remove?: readonly Address[] | undefined
  display?: Address | null | undefined
}

export interface AliasChange {
  /** Those that were added or removed. */
  changed: Address[]
  /** Whether another one was chosen as the address that people see. */
  isDisplaySet: boolean
}

/**
 * `taken`: a path that is an alias or a code already. `isOtherCase`: it differs in letter case only
 * from another path that is found in exact case, or that the same change adds.
 */
export type AliasRefusal =
  | { taken: string; isOtherCase?: boolean }
  | 'too_many_aliases'
  | 'not_an_alias'
  | 'bad_domain'

/** Whether one answers for the other if it answers in any case. */
const differsInCase = (one: Address, other: Address): boolean =>
  one.domainId === other.domainId &&
  one.path !== other.path &&
  smallPath(one.path) === smallPath(other.path)

/**
 * The aliases that a patch adds to those of a link, and all that the link has afterwards. An alias
 * in any case that is added in other letters replaces itself.
 */
export function patchAliases<Before extends Address & Pick<StoredAlias, 'anyCase'>>(
  before: readonly Before[],
  patch: AliasPatch,
) {
  const { set = before.filter(isOnPrimary), add = [], remove = [] } = patch
  const { setOnDomains = before.filter((one) => !isOnPrimary(one)) } = patch
  const all = new Map<string, Address>(
    [...set, ...setOnDomains, ...add].map((one) => [addressKey(one), one]),
  )
  const listed = [...all.values()].filter((one) => !hasAddress(remove, one))
  const added = listed.filter((one) => !hasAddress(before, one))
  const isReplaced = (one: Before) =>
    one.anyCase === 1 && added.some((other) => differsInCase(one, other))
  const replaced = before.filter(isReplaced)
  return { after: listed.filter((one) => !hasAddress(replaced, one)), added }
}

/** Changes the aliases of a link. Those that are added answer in any case. */
export function aliasPatcher(db: Database) {
  const rows = aliasRows(db)
  const domains = domainUses(db)
  return {
    /** The account of the link may use the domains of the added aliases. */
    plan(
      { id: linkId, accountId }: { id: number; accountId: AccountId },
      patch: AliasPatch,
    ): PlannedAliases | AliasRefusal {
      const before = rows.ofLink(linkId)
      const { after, added } = patchAliases(before, patch)
      if (added.length > 0 && after.length > ALIASES_MAX) return 'too_many_aliases'
      if (added.some(({ domainId }) => !domains.mayUse(accountId, domainId))) return 'bad_domain'
      const gone = before.filter((one) => !hasAddress(after, one))
      for (const one of added) {
        const isTwice = added.some((other) => differsInCase(one, other))
        const conflict = isTwice ? 'other_case' : rows.conflictOf(one, { gone })
        if (conflict) return { taken: one.path, isOtherCase: conflict === 'other_case' }
      }
      const chosen = gone.find(({ displayed }) => displayed === 1)
      const { display = chosen && added.find((one) => differsInCase(one, chosen)) } = patch
      if (display && !hasAddress(after, display)) return 'not_an_alias'
      const bytes = bytesOfAliases(added) - bytesOfAliases(gone)
      return { linkId, added, gone, display, bytes }
    },

    apply({ linkId, added, gone, display }: PlannedAliases): AliasChange {
      for (const address of gone) rows.remove(address)
      for (const address of added) rows.add(linkId, address, true)
      if (display !== undefined) rows.display(linkId, display)
      const changed = [...gone, ...added].map(({ domainId, path }) => ({ domainId, path }))
      return { changed, isDisplaySet: display !== undefined }
    },
  }
}

interface PlannedAliases extends Pick<AliasPatch, 'display'> {
  linkId: number
  added: readonly Address[]
  gone: readonly Address[]
  /** What the change adds to the bytes that the account stores. */
  bytes: number
}

/** UTF-8 bytes of the paths, which count towards the account's quota. */
export const bytesOfAliases = (aliases: readonly Address[]): number =>
  aliases.reduce((sum, { path }) => sum + Buffer.byteLength(path), 0)

/** Whether nobody can claim the code: it is disabled, or an alias has its form. */
export function closedCodes(db: Database): (code: Code) => boolean {
  const closed = db.prepare<object, [Code]>(
    `SELECT 1 FROM disabled_codes WHERE code = ?1
     UNION ALL SELECT 1 FROM aliases WHERE folded = ?1`,
  )
  return (code) => closed.get(code) !== null
}

/** Whether a link has the code, or nobody can claim it. */
export function codesInUse(db: Database): (code: Code) => boolean {
  const byCode = db.prepare<object, [Code]>('SELECT 1 FROM links WHERE code = ?')
  const isClosed = closedCodes(db)
  return (code) => byCode.get(code) !== null || isClosed(code)
}

/** The rows of `aliases`, for other writes of links too. */
export function aliasRows(db: Database) {
  const ofLink = db.prepare<StoredAlias, [number]>(
    `SELECT domain_id AS domainId, path, any_case AS anyCase, displayed FROM aliases
     WHERE link_id = ?`,
  )
  const insert = db.prepare<null, [string, number, string | null, number, number, string]>(
    `INSERT INTO aliases (path, link_id, folded, any_case, domain_id, small_path, position)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6,
       (SELECT coalesce(max(position), 0) + 1 FROM aliases WHERE link_id = ?2))`,
  )
  const display = db.prepare<null, [number, string | null, number]>(
    'UPDATE aliases SET displayed = path IS ?2 AND domain_id = ?3 WHERE link_id = ?1',
  )
  const isCode = db.prepare<object, [string | null]>(
    `SELECT 1 FROM links WHERE code = ?1
     UNION ALL SELECT 1 FROM disabled_codes WHERE code = ?1`,
  )
  const similar = db.prepare<Pick<StoredAlias, 'domainId' | 'path' | 'anyCase'>, [number, string]>(
    `SELECT domain_id AS domainId, path, any_case AS anyCase FROM ${BY_SMALL_PATH}
     WHERE domain_id = ? AND small_path = ?`,
  )
  const conflictOf = (
    alias: Address,
    { gone = [], isAnyCase = true }: { gone?: readonly Address[]; isAnyCase?: boolean } = {},
  ): 'taken' | 'other_case' | undefined => {
    if (isCode.get(toCode(alias.path) ?? null) !== null) return 'taken'
    const others = similar
      .all(alias.domainId, smallPath(alias.path))
      .filter((one) => !hasAddress(gone, one))
    if (others.some((one) => one.path === alias.path || one.anyCase === 1)) return 'taken'
    return isAnyCase && others.length > 0 ? 'other_case' : undefined
  }
  const remove = db.prepare<null, [number, string]>(
    'DELETE FROM aliases WHERE domain_id = ? AND path = ?',
  )
  const removeAll = db.prepare<null, [number]>('DELETE FROM aliases WHERE link_id = ?')
  return {
    ofLink: (linkId: number) => ofLink.all(linkId),
    /**
     * An alias of the domain or a code has the path already; a code is found before an alias.
     * `gone`: aliases that do not count. `other_case`: the path would answer for one that is found
     * in exact case.
     */
    conflictOf,
    /** The domain exists. */
    add(linkId: number, { domainId, path }: Address, anyCase: boolean): void {
      const folded = toCode(path) ?? null
      insert.run(path, linkId, folded, anyCase ? 1 : 0, domainId, smallPath(path))
    },
    /** Chooses the alias that people see; null: the newest. */
    display(linkId: number, chosen: Address | null): void {
      display.run(linkId, chosen?.path ?? null, chosen?.domainId ?? PRIMARY_ID)
    },
    remove: ({ domainId, path }: Address): void => void remove.run(domainId, path),
    removeAllOf: (linkId: number): void => void removeAll.run(linkId),
  }
}
