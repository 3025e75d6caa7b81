import type { Database } from 'bun:sqlite'
import { AppError } from '../errors.ts'
import type { memberships } from './schema.ts'

/**
 * Who asks for a change: an API key, a member of the account, an owner of the service on its pages,
 * or the operator with a command.
 */
export type By = { keyId: number } | { personId: number } | { ownerId: number } | 'operator'

/**
 * Goes with every change that somebody asks for. A request is authenticated before its body has
 * arrived, so the writer checks again, as of `now`, that its author may do this.
 */
export interface Author {
  /** The account that is changed; 0 for what belongs to no account. */
  accountId: number
  by: By
  now: number
}

/** For `Author`, beside the account of a request. */
export const authorOf = ({ id, by }: { id: number; by: By }, now: number): Author => ({
  accountId: id,
  by,
  now,
})

/** The member of an account who asks; 0, who is nobody, for all others. */
export const memberOf = (by: By): number =>
  typeof by === 'object' && 'personId' in by ? by.personId : 0

/** What a write needs at least: a role in the account, or an owner of the service. */
export type Least = (typeof memberships.$inferSelect)['role'] | 'owner'

/** Each may do what those before it may. Keys have the rights of an editor. */
const RANKS: readonly Least[] = ['viewer', 'editor', 'admin', 'owner']
const hasRank = (one: Least, least: Least): boolean => RANKS.indexOf(one) >= RANKS.indexOf(least)

type Denial = 'invalid_api_key' | 'sign_in_needed' | 'role_needed'

/** The result of a write that was refused because of its author. */
export interface Denied {
  denied: Denial
  least: Least
}

/** Returns why the writer refuses a write. It depends on the database and the arguments only. */
export function authorCheck(db: Database) {
  const isActive = db.prepare<object, [number]>(
    'SELECT 1 FROM accounts WHERE id = ? AND disabled_at IS NULL',
  )
  const key = db.prepare<object, [number, number, number]>(
    `SELECT 1 FROM api_keys WHERE id = ? AND account_id = ? AND (ends_at IS NULL OR ends_at > ?)`,
  )
  const member = db.prepare<{ role: Least }, [number, number]>(
    'SELECT role FROM memberships WHERE account_id = ? AND person_id = ?',
  )
  const owner = db.prepare<object, [number]>(
    `SELECT 1 FROM people JOIN memberships ON person_id = people.id
       JOIN accounts ON accounts.id = memberships.account_id
     WHERE people.id = ? AND people.is_owner = 1 AND disabled_at IS NULL`,
  )

  const denialOf = ({ accountId, by, now }: Author, least: Least): Denial | undefined => {
    const isOpen = () => isActive.get(accountId) !== null
    if (by === 'operator' || 'ownerId' in by) {
      if (by !== 'operator' && !owner.get(by.ownerId)) return 'sign_in_needed'
      // Nobody changes the links of a disabled account. The account itself can be enabled again.
      return hasRank(least, 'admin') || isOpen() ? undefined : 'invalid_api_key'
    }
    if ('keyId' in by) {
      const may = hasRank('editor', least) && isOpen() && key.get(by.keyId, accountId, now) !== null
      return may ? undefined : 'invalid_api_key'
    }
    const role = isOpen() ? member.get(accountId, by.personId)?.role : undefined
    if (!role) return 'sign_in_needed'
    return hasRank(role, least) ? undefined : 'role_needed'
  }

  return (author: Author, least: Least): Denied | undefined => {
    const denied = denialOf(author, least)
    return denied && { denied, least }
  }
}

export const isDenied = (result: unknown): result is Denied =>
  typeof result === 'object' && result !== null && 'denied' in result

/** What the author of a refused write is told, as if the request had come later. */
export const deniedError = ({ denied, least }: Denied): AppError => new AppError(denied, least)
