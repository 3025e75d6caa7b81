import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { subject } from '../db/subject.ts'
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

/** Decodes a path of a URL once. Undefined if it is malformed. */
export function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

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

  /** Throws `alias_not_allowed` or `path_taken` if the account cannot add one of the paths. */
  requireAllowed(accountId: AccountId, paths: readonly string[]): void {
    if (paths.length > 0 && !this.mayAdd(accountId)) throw new AppError('alias_not_allowed')
    const reserved = paths.find(this.isReserved)
    if (reserved !== undefined) throw new AppError('path_taken', reserved)
  }

  mayAdd(accountId: AccountId): boolean {
    const { importAliases, accounts } = this.#options
    return importAliases === 'all' || accounts.findById(accountId)?.isOwner === 1
  }
}

export interface Alias {
  linkId: number
  code: Code
}

export interface StoredAlias {
  path: string
  /** 1: found in any case. */
  anyCase: number
  /** 1: chosen as the address that people see. */
  displayed: number
}

/** The aliases of a link begin with the one that people see: the chosen one, else the newest. */
const DISPLAYED_FIRST = 'displayed DESC, position DESC, path'

/** SQL: the alias of `links` that people see; null for a link without aliases. */
export const DISPLAYED_ALIAS = `(SELECT path FROM aliases WHERE link_id = links.id
  ORDER BY ${DISPLAYED_FIRST} LIMIT 1)`

/** Reads on any thread. */
export class AliasReads {
  readonly #byPath
  readonly #ofLinks

  constructor(db: Database) {
    const select = `SELECT link_id AS linkId, code FROM aliases JOIN links ON links.id = link_id`
    this.#byPath = db.prepare<Alias, [string, string]>(
      `${select} WHERE path = ?1 UNION ALL ${select} WHERE path = ?2 AND any_case = 1 LIMIT 1`,
    )
    this.#ofLinks = db.prepare<StoredAlias & { linkId: number }, [string]>(
      `SELECT link_id AS linkId, path, any_case AS anyCase, displayed FROM aliases
       WHERE link_id IN (SELECT value FROM json_each(?)) ORDER BY path`,
    )
  }

  /** `text`: a decoded path. The exact one comes before one in any case. */
  findByPath(text: string): Alias | undefined {
    const path = canonicalPath(text)
    if (path === '' || path.length > PATH_BYTES_MAX) return undefined
    return this.#byPath.get(path, path.toLowerCase()) ?? undefined
  }

  /** The aliases of links, by their ids. */
  ofLinks(linkIds: readonly number[]): Map<number, StoredAlias[]> {
    return Map.groupBy(this.#ofLinks.all(JSON.stringify(linkIds)), ({ linkId }) => linkId)
  }

  /** The aliases of a link, in alphabetical order. */
  ofLink(linkId: number): string[] {
    return this.rowsOf(linkId).map(({ path }) => path)
  }

  rowsOf(linkId: number): StoredAlias[] {
    return this.ofLinks([linkId]).get(linkId) ?? []
  }
}

/** Aliases of links. The writes of `links` change them. */
export const aliases = subject({ reads: (db): AliasReads => new AliasReads(db) })

/**
 * `set`: all aliases that the link has afterwards. `display`: the one that people see, or null for
 * the newest. What is absent stays.
 */
export interface AliasPatch {
  set?: readonly string[] | undefined
  add?: readonly string[] | undefined
  remove?: readonly string[] | undefined
  display?: string | null | undefined
}

export interface AliasChange {
  /** The paths that were added or removed. */
  changed: string[]
  /** An alias in any case was removed: caches hold it in other cases too. */
  isAnyCase: boolean
}

/** `taken`: a path that is an alias or a code already. */
export type AliasRefusal = { taken: string } | 'too_many_aliases' | 'not_an_alias'

/** The paths that a patch adds to those of a link, and all that the link has afterwards. */
export function patchPaths(before: readonly string[], patch: AliasPatch) {
  const { set = before, add = [], remove = [] } = patch
  const after = [...new Set([...set, ...add])].filter((path) => !remove.includes(path))
  return { after, added: after.filter((path) => !before.includes(path)) }
}

/** Changes the aliases of a link. Those that stay keep their letter case rule. */
export function aliasPatcher(db: Database) {
  const rows = aliasRows(db)
  return {
    plan(linkId: number, patch: AliasPatch): PlannedAliases | AliasRefusal {
      const before = rows.ofLink(linkId)
      const paths = before.map(({ path }) => path)
      const { after, added } = patchPaths(paths, patch)
      const taken = added.find((path) => rows.isTaken(path))
      if (taken !== undefined) return { taken }
      if (added.length > 0 && after.length > ALIASES_MAX) return 'too_many_aliases'
      const { display } = patch
      if (typeof display === 'string' && !after.includes(display)) return 'not_an_alias'
      const removed = before.filter(({ path }) => !after.includes(path))
      const gone = removed.map(({ path }) => path)
      const isAnyCase = removed.some(({ anyCase }) => anyCase === 1)
      const bytes = bytesOfPaths(added) - bytesOfPaths(gone)
      return { linkId, added, gone, isAnyCase, display, bytes }
    },

    apply({ linkId, added, gone, isAnyCase, display }: PlannedAliases): AliasChange {
      for (const path of gone) rows.remove(path)
      for (const path of added) rows.add(linkId, path)
      if (display !== undefined) rows.display(linkId, display)
      return { changed: [...gone, ...added], isAnyCase }
    },
  }
}

interface PlannedAliases extends Pick<AliasChange, 'isAnyCase'>, Pick<AliasPatch, 'display'> {
  linkId: number
  added: readonly string[]
  gone: readonly string[]
  /** What the change adds to the bytes that the account stores. */
  bytes: number
}

export const bytesOfPaths = (paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + Buffer.byteLength(path), 0)

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
  const ofLink = db.prepare<{ path: string; anyCase: number }, [number]>(
    'SELECT path, any_case AS anyCase FROM aliases WHERE link_id = ?',
  )
  const insert = db.prepare<null, [string, number, string | null, number]>(
    `INSERT INTO aliases (path, link_id, folded, any_case, position) VALUES (?1, ?2, ?3, ?4,
       (SELECT coalesce(max(position), 0) + 1 FROM aliases WHERE link_id = ?2))`,
  )
  const display = db.prepare<null, [number, string | null]>(
    'UPDATE aliases SET displayed = path IS ?2 WHERE link_id = ?1',
  )
  const taken = db.prepare<object, [string, string, string | null]>(
    `SELECT 1 FROM aliases WHERE path = ?1 OR (path = ?2 AND any_case = 1)
     UNION ALL SELECT 1 FROM links WHERE code = ?3
     UNION ALL SELECT 1 FROM disabled_codes WHERE code = ?3`,
  )
  const remove = db.prepare<null, [string]>('DELETE FROM aliases WHERE path = ?')
  const removeAll = db.prepare<null, [number]>('DELETE FROM aliases WHERE link_id = ?')
  return {
    ofLink: (linkId: number) => ofLink.all(linkId),
    /** An alias or a code has the path already; a code is found before an alias. */
    isTaken: (path: string): boolean =>
      taken.get(path, path.toLowerCase(), toCode(path) ?? null) !== null,
    /** `anyCase`: `path` is in small letters. */
    add(linkId: number, path: string, anyCase = false): void {
      insert.run(path, linkId, toCode(path) ?? null, anyCase ? 1 : 0)
    },
    /** Chooses the alias that people see; null: the newest. */
    display: (linkId: number, path: string | null): void => void display.run(linkId, path),
    remove: (path: string): void => void remove.run(path),
    removeAllOf: (linkId: number): void => void removeAll.run(linkId),
  }
}
