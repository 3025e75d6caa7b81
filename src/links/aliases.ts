import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { type Code, toCode } from '../lib/code.ts'
import type { Author } from './link.ts'
import { accountCounts, type QuotaName } from './quota.ts'

/**
 * Aliases: further paths of a link that cannot be codes, because of their length or signs or
 * because another path differs in letter case only. An alias resolves to a code and nothing else,
 * after no link was found with its path as the code.
 */

/** Maximum number of aliases of one link. */
export const ALIASES_MAX = 20
const PATH_BYTES_MAX = 255

/** Why a decoded path, without its first slash, cannot be an alias; undefined if it can. */
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

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? ''

interface AliasRulesOptions {
  /** Who may add aliases: a short path of the whole domain is the operator's to give away. */
  importAliases: 'owners' | 'all'
  accounts: { find(id: AccountId): { isOwner: number } | undefined }
}

/** Which aliases may be added. */
export class AliasRules {
  readonly #options: AliasRulesOptions
  #reserved: ReadonlySet<string> = new Set()

  constructor(options: AliasRulesOptions) {
    this.#options = options
  }

  /**
   * The routes of the service: no alias begins like one of them, or is below /.well-known, where
   * certificate authorities and apps look for the proof of who controls a domain (RFC 8615).
   */
  reserve(routes: readonly { path: string }[]): void {
    const names = routes.map(({ path }) => firstSegment(path))
    this.#reserved = new Set(['.well-known', ...names.filter((name) => !/^[:*]|^$/.test(name))])
  }

  isReserved = (path: string): boolean => this.#reserved.has(firstSegment(`/${path}`))

  mayAdd(accountId: AccountId): boolean {
    const { importAliases, accounts } = this.#options
    return importAliases === 'all' || accounts.find(accountId)?.isOwner === 1
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
}

/** Reads on any thread. */
export class AliasReads {
  readonly #byPath
  readonly #ofLinks
  readonly #ofLink

  constructor(db: Database) {
    const select = `SELECT link_id AS linkId, code FROM aliases JOIN links ON links.id = link_id`
    this.#byPath = db.prepare<Alias, [string, string]>(
      `${select} WHERE path = ?1 UNION ALL ${select} WHERE path = ?2 AND any_case = 1 LIMIT 1`,
    )
    this.#ofLinks = db.prepare<StoredAlias & { linkId: number }, [string]>(
      `SELECT link_id AS linkId, path, any_case AS anyCase FROM aliases
       WHERE link_id IN (SELECT value FROM json_each(?)) ORDER BY path`,
    )
    this.#ofLink = db.prepare<{ path: string }, [number]>(
      'SELECT path FROM aliases WHERE link_id = ? ORDER BY path',
    )
  }

  /** `path`: decoded. The exact one comes before one in any case. */
  find(path: string): Alias | undefined {
    if (path === '' || path.length > PATH_BYTES_MAX) return undefined
    return this.#byPath.get(path, path.toLowerCase()) ?? undefined
  }

  /** The aliases of links, by their ids. */
  ofLinks(linkIds: readonly number[]): Map<number, StoredAlias[]> {
    const found = new Map<number, StoredAlias[]>()
    for (const { linkId, ...alias } of this.#ofLinks.all(JSON.stringify(linkIds))) {
      const others = found.get(linkId)
      if (others) others.push(alias)
      else found.set(linkId, [alias])
    }
    return found
  }

  /** The aliases of a link, in alphabetical order. */
  ofLink(linkId: number): string[] {
    return this.#ofLink.all(linkId).map(({ path }) => path)
  }
}

export interface SetAliases {
  /** A link of the author's account. */
  id: number
  /** All aliases that the link has afterwards. */
  paths: readonly string[]
  quota: Quota
  author: Author
}

export interface AliasChange {
  /** The paths that were added or removed. */
  changed: string[]
  /** An alias in any case was removed: caches hold it in other cases too. */
  isAnyCase: boolean
}

/** `taken`: a path that is an alias or a code already. Undefined if there is no such link. */
export type SetAliasesResult =
  | AliasChange
  | { taken: string }
  | 'not_active'
  | QuotaName
  | undefined

/** Writes aliases. Runs on the writer thread, inside the transaction of its batch. */
export function aliasWrites(db: Database) {
  const accounts = accountCounts(db)
  const rows = aliasRows(db)
  const ownLink = db.prepare<{ id: number }, [number, AccountId]>(
    'SELECT id FROM links WHERE id = ? AND account_id = ?',
  )
  return {
    /** All of the changes or none. Aliases that stay keep their letter case rule. */
    setAliases({ id, paths, quota, author }: SetAliases): SetAliasesResult {
      const { accountId } = author
      if (!accounts.isActive(author)) return 'not_active'
      if (!ownLink.get(id, accountId)) return undefined
      const before = rows.ofLink(id)
      const removed = before.filter(({ path }) => !paths.includes(path))
      const added = [...new Set(paths)].filter((path) => !before.some((one) => one.path === path))
      const taken = added.find((path) => rows.isTaken(path))
      if (taken !== undefined) return { taken }
      const gone = removed.map(({ path }) => path)
      const bytes = bytesOfPaths(added) - bytesOfPaths(gone)
      const exceeded = accounts.exceededBy(accountId, { links: 0, urlBytes: bytes }, quota)
      if (exceeded) return exceeded
      for (const path of gone) rows.remove(path)
      for (const path of added) rows.add(id, path)
      accounts.add(accountId, { links: 0, urlBytes: bytes })
      return { changed: [...gone, ...added], isAnyCase: removed.some((one) => one.anyCase === 1) }
    },
  }
}

export const bytesOfPaths = (paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + Buffer.byteLength(path), 0)

/** Whether nobody can claim the code: it is disabled, or an alias has its form. */
export function closedCodes(db: Database): (code: Code) => boolean {
  const disabled = db.prepare<object, [Code]>('SELECT 1 FROM disabled_codes WHERE code = ?')
  const folded = db.prepare<object, [Code]>('SELECT 1 FROM aliases WHERE folded = ?')
  return (code) => disabled.get(code) !== null || folded.get(code) !== null
}

/** The rows of `aliases`, for other writes of links too. */
export function aliasRows(db: Database) {
  const ofLink = db.prepare<{ path: string; anyCase: number }, [number]>(
    'SELECT path, any_case AS anyCase FROM aliases WHERE link_id = ?',
  )
  const insert = db.prepare<null, [string, number, string | null, number]>(
    'INSERT INTO aliases (path, link_id, folded, any_case) VALUES (?, ?, ?, ?)',
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
    remove: (path: string): void => void remove.run(path),
    removeAllOf: (linkId: number): void => void removeAll.run(linkId),
  }
}
