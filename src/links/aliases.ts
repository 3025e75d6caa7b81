import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { subject } from '../db/subject.ts'
import { domainUses, hostOfDomain } from '../domains/use.ts'
import { AppError } from '../errors.ts'
import { type Code, toCode } from '../lib/code.ts'

/**
 * Aliases: further paths of a link that cannot be codes, because of their length or signs or
 * because another path differs in letter case only. An alias resolves to a code and nothing else,
 * after no link was found with its path as the code.
 */

/** Maximum number of aliases of one link. */
export const ALIASES_MAX = 20
const PATH_BYTES_MAX = 255
/** Composition makes one character of at most four units. The time of `normalize` is quadratic. */
const DECOMPOSED_MAX = 4 * PATH_BYTES_MAX

/**
 * A path as aliases are stored and found: in Unicode's form NFC. Keyboards and file systems write
 * `ü` as one character or as two, which look alike. A text too long for an alias stays as it is.
 */
export const canonicalPath = (path: string): string =>
  path.length > DECOMPOSED_MAX ? path : path.normalize('NFC')

/** Why a canonical path, without its first slash, cannot be an alias; undefined if it can. */
export function findPathProblem(path: string): string | undefined {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `must have at most ${PATH_BYTES_MAX} bytes`
  if (!path.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}\\?#]/u.test(path)) {
    return 'must not contain control characters, \\, ? or #'
  }
  if (path.split('/').some((segment) => /^\.{0,2}$/.test(segment))) {
    return 'must not be empty, or have a segment that is empty, . or ..'
  }
  return undefined
}

/**
 * An alias as requests, commands and exports name it: its path, or `//go.example/menu` on a domain
 * that is not the primary one. No path begins with a slash.
 */
export type AliasName = string

export interface AliasParts {
  /** The host; null for the primary domain. */
  domain: string | null
  path: string
}

export const nameOf = ({ domain, path }: AliasParts): AliasName =>
  domain === null ? path : `//${domain}/${path}`

export function parseName(name: AliasName): AliasParts {
  const [, domain = null, path = name] = /^\/\/([^/]+)\/(.*)$/s.exec(name) ?? []
  return { domain, path }
}

/** The host of the address that people see; null for the primary domain. */
export const displayedDomain = (link: { domain: string | null; alias: AliasName | null }) =>
  link.alias === null ? link.domain : parseName(link.alias).domain

/** Paths on the primary domain, and those on each other one by its host. */
export function aliasLists(aliases: readonly Pick<StoredAlias, 'name'>[]) {
  const lists: { aliases: string[]; domain_aliases: Record<string, string[]> } = {
    aliases: [],
    domain_aliases: {},
  }
  for (const { name } of aliases) {
    const { domain, path } = parseName(name)
    if (domain === null) lists.aliases.push(path)
    else lists.domain_aliases[domain] = [...(lists.domain_aliases[domain] ?? []), path]
  }
  return lists
}

const isOnPrimary = (name: AliasName): boolean => !name.startsWith('//')

/** Decodes a path of a URL once. Undefined if it is malformed. */
export function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

/** One slash at the end of a path counts for nothing: programs add it, and no alias ends so. */
export const withoutLastSlash = (path: string): string =>
  path.endsWith('/') ? path.slice(0, -1) : path

/** The code or alias that is looked up for the path of a URL. */
export const lookedUp = (path: string): string =>
  withoutLastSlash((decodePath(path) ?? path).slice(1))

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
  importAliases: 'owners' | 'all'
  accounts: { findById(id: AccountId): { isOwner: number } | undefined }
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

  isReserved = (path: string): boolean => this.#reserved.has(firstSegment(`/${path}`))

  /**
   * Throws `alias_not_allowed`, `path_taken` or, for a domain that is not the primary one,
   * `invalid_value` if the account cannot add one of the aliases.
   */
  requireAllowed(accountId: AccountId, names: readonly AliasName[]): void {
    if (names.length > 0 && !this.mayAdd(accountId)) throw new AppError('alias_not_allowed')
    const reserved = names.map(parseName).find(({ path }) => this.isReserved(path))
    if (reserved === undefined) return
    if (reserved.domain === null) throw new AppError('path_taken', reserved.path)
    throw new AppError('invalid_value', `Invalid domain_aliases: ${reserved.path} is reserved`)
  }

  mayAdd(accountId: AccountId): boolean {
    return !this.isForOwners || this.#options.accounts.findById(accountId)?.isOwner === 1
  }

  get isForOwners(): boolean {
    return this.#options.importAliases === 'owners'
  }
}

export interface Alias {
  linkId: number
  code: Code
}

export interface StoredAlias {
  name: AliasName
  /** 1: found in any case. */
  anyCase: number
  /** 1: chosen as the address that people see. */
  displayed: number
}

/** SQL: the name of an alias. */
const NAME = `coalesce('//' || ${hostOfDomain('aliases.domain_id')} || '/', '') || path`

/**
 * The aliases of a link begin with the one that people see: the chosen one, else the newest on the
 * domain of the link.
 */
const DISPLAYED = `FROM aliases WHERE link_id = links.id
  AND (displayed = 1 OR aliases.domain_id = coalesce(links.domain_id, 0))
  ORDER BY displayed DESC, position DESC, path LIMIT 1`

/** SQL: the host of `links`, and the name of the alias that people see; null if there is none. */
export const ADDRESS_COLUMNS = `${hostOfDomain('links.domain_id')} AS domain,
  (SELECT ${NAME} ${DISPLAYED}) AS alias`

/** Where an alias is looked up: the id of a domain, 0 for the primary one. */
export interface AliasScope {
  id: number
  /** `all`: the aliases of the primary domain come after its own. */
  codes: 'own' | 'all'
}

/** Reads on any thread. */
export class AliasReads {
  readonly #byPath
  readonly #ofLinks

  constructor(db: Database) {
    const select = `SELECT link_id AS linkId, code FROM aliases JOIN links ON links.id = link_id
      WHERE aliases.domain_id = ?1`
    this.#byPath = db.prepare<Alias, [number, string, string]>(
      `${select} AND path = ?2 UNION ALL ${select} AND path = ?3 AND any_case = 1 LIMIT 1`,
    )
    this.#ofLinks = db.prepare<StoredAlias & { linkId: number }, [string]>(
      `SELECT link_id AS linkId, ${NAME} AS name, any_case AS anyCase, displayed FROM aliases
       WHERE link_id IN (SELECT value FROM json_each(?)) ORDER BY domain_id > 0, name`,
    )
  }

  /** `text`: a decoded path. The exact one comes before one in any case. */
  findByPath(text: string, { id, codes }: AliasScope = PRIMARY_SCOPE): Alias | undefined {
    const path = canonicalPath(text)
    if (path === '' || path.length > PATH_BYTES_MAX) return undefined
    const small = path.toLowerCase()
    const own = this.#byPath.get(id, path, small)
    if (own || id === PRIMARY_SCOPE.id || codes === 'own') return own ?? undefined
    return this.#byPath.get(PRIMARY_SCOPE.id, path, small) ?? undefined
  }

  /** The aliases of links, by their ids. */
  ofLinks(linkIds: readonly number[]): Map<number, StoredAlias[]> {
    return Map.groupBy(this.#ofLinks.all(JSON.stringify(linkIds)), ({ linkId }) => linkId)
  }

  /** The aliases of a link in alphabetical order, those of the primary domain first. */
  ofLink(linkId: number): AliasName[] {
    return this.rowsOf(linkId).map(({ name }) => name)
  }

  rowsOf(linkId: number): StoredAlias[] {
    return this.ofLinks([linkId]).get(linkId) ?? []
  }
}

const PRIMARY_SCOPE: AliasScope = { id: 0, codes: 'all' }

/** Aliases of links. The writes of `links` change them. */
export const aliases = subject({ reads: (db): AliasReads => new AliasReads(db) })

/**
 * `set`: all aliases that the link has afterwards on the primary domain, and `setOnDomains` on all
 * others. `display`: the one that people see, or null for the newest. What is absent stays.
 */
export interface AliasPatch {
  set?: readonly AliasName[] | undefined
  setOnDomains?: readonly AliasName[] | undefined
  add?: readonly AliasName[] | undefined
  remove?: readonly AliasName[] | undefined
  display?: AliasName | null | undefined
}

export interface AliasChange {
  /** The paths that were added or removed. */
  changed: string[]
  /** An alias in any case was removed: caches hold it in other cases too. */
  isAnyCase: boolean
}

/** `taken`: a path that is an alias or a code already. */
export type AliasRefusal = { taken: string } | 'too_many_aliases' | 'not_an_alias' | 'bad_domain'

/** The aliases that a patch adds to those of a link, and all that the link has afterwards. */
export function patchAliases(before: readonly AliasName[], patch: AliasPatch) {
  const { set = before.filter(isOnPrimary), add = [], remove = [] } = patch
  const { setOnDomains = before.filter((name) => !isOnPrimary(name)) } = patch
  const all = new Set([...set, ...setOnDomains, ...add])
  const after = [...all].filter((name) => !remove.includes(name))
  return { after, added: after.filter((name) => !before.includes(name)) }
}

/** Changes the aliases of a link. Those that stay keep their letter case rule. */
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
      const { after, added } = patchAliases(
        before.map(({ name }) => name),
        patch,
      )
      const parts = added.map(parseName)
      if (parts.some(({ domain }) => domain !== null && !domains.mayUse(accountId, domain))) {
        return 'bad_domain'
      }
      const taken = parts.find(rows.isTaken)
      if (taken !== undefined) return { taken: taken.path }
      if (added.length > 0 && after.length > ALIASES_MAX) return 'too_many_aliases'
      const { display } = patch
      if (typeof display === 'string' && !after.includes(display)) return 'not_an_alias'
      const removed = before.filter(({ name }) => !after.includes(name))
      const gone = removed.map(({ name }) => name)
      const isAnyCase = removed.some(({ anyCase }) => anyCase === 1)
      const bytes = bytesOfAliases(added) - bytesOfAliases(gone)
      return { linkId, added, gone, isAnyCase, display, bytes }
    },

    apply({ linkId, added, gone, isAnyCase, display }: PlannedAliases): AliasChange {
      for (const name of gone) rows.remove(parseName(name))
      for (const name of added) rows.add(linkId, parseName(name))
      if (display !== undefined) rows.display(linkId, display)
      return { changed: [...gone, ...added].map((name) => parseName(name).path), isAnyCase }
    },
  }
}

interface PlannedAliases extends Pick<AliasChange, 'isAnyCase'>, Pick<AliasPatch, 'display'> {
  linkId: number
  added: readonly AliasName[]
  gone: readonly AliasName[]
  /** What the change adds to the bytes that the account stores. */
  bytes: number
}

/** UTF-8 bytes of the paths, which count towards the account's quota. */
export const bytesOfAliases = (names: readonly AliasName[]): number =>
  names.reduce((sum, name) => sum + Buffer.byteLength(parseName(name).path), 0)

/** Whether nobody can claim the code: it is disabled, or an alias has its form. */
export function closedCodes(db: Database): (code: Code) => boolean {
  const closed = db.prepare<object, [Code]>(
    `SELECT 1 FROM disabled_codes WHERE code = ?1
     UNION ALL SELECT 1 FROM aliases WHERE folded = ?1`,
  )
  return (code) => closed.get(code) !== null
}

/** The rows of `aliases`, for other writes of links too. */
export function aliasRows(db: Database) {
  const ofLink = db.prepare<Omit<StoredAlias, 'displayed'>, [number]>(
    `SELECT ${NAME} AS name, any_case AS anyCase FROM aliases WHERE link_id = ?`,
  )
  const idOf = db.prepare<{ id: number }, [string]>('SELECT id FROM domains WHERE host = ?')
  const domainId = (domain: string | null): number =>
    domain === null ? 0 : (idOf.get(domain)?.id ?? -1)
  const insert = db.prepare<null, [string, number, string | null, number, number]>(
    `INSERT INTO aliases (path, link_id, folded, any_case, domain_id, position)
     VALUES (?1, ?2, ?3, ?4, ?5,
       (SELECT coalesce(max(position), 0) + 1 FROM aliases WHERE link_id = ?2))`,
  )
  const display = db.prepare<null, [number, string | null, number]>(
    'UPDATE aliases SET displayed = path IS ?2 AND domain_id = ?3 WHERE link_id = ?1',
  )
  const taken = db.prepare<object, [string, string, string | null, number]>(
    `SELECT 1 FROM aliases WHERE domain_id = ?4 AND (path = ?1 OR (path = ?2 AND any_case = 1))
     UNION ALL SELECT 1 FROM links WHERE code = ?3
     UNION ALL SELECT 1 FROM disabled_codes WHERE code = ?3`,
  )
  const remove = db.prepare<null, [number, string]>(
    'DELETE FROM aliases WHERE domain_id = ? AND path = ?',
  )
  const removeAll = db.prepare<null, [number]>('DELETE FROM aliases WHERE link_id = ?')
  return {
    ofLink: (linkId: number) => ofLink.all(linkId),
    /** An alias of the domain or a code has the path already; a code is found before an alias. */
    isTaken: ({ domain, path }: AliasParts): boolean =>
      taken.get(path, path.toLowerCase(), toCode(path) ?? null, domainId(domain)) !== null,
    /** `anyCase`: the path is in small letters. The domain exists. */
    add(linkId: number, { domain, path }: AliasParts, anyCase = false): void {
      insert.run(path, linkId, toCode(path) ?? null, anyCase ? 1 : 0, domainId(domain))
    },
    /** Chooses the alias that people see; null: the newest. */
    display(linkId: number, name: AliasName | null): void {
      const parts = name === null ? null : parseName(name)
      display.run(linkId, parts?.path ?? null, domainId(parts?.domain ?? null))
    },
    remove: ({ domain, path }: AliasParts): void => void remove.run(domainId(domain), path),
    removeAllOf: (linkId: number): void => void removeAll.run(linkId),
  }
}
