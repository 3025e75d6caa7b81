import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { Quota } from '../config.ts'
import { toCode } from '../lib/code.ts'
import { accountCounts } from './account-counts.ts'
import { type Author, exceededQuota, type QuotaName } from './link.ts'

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
      const urlBytes = accounts.stored(accountId).urlBytes + bytes
      const exceeded = bytes > 0 ? exceededQuota({ links: 0, urlBytes }, quota) : undefined
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

/** Whether an alias has the code's form, so that nobody can claim the code. */
export const foldedCodes = (db: Database) =>
  db.prepare<object, [string]>('SELECT 1 FROM aliases WHERE folded = ?')

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
