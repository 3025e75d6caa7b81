import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { perConnection } from '../db/subject.ts'

/** SQL: the host of the domain whose id is in a column; null for the primary domain. */
export const hostOfDomain = (column: string): string =>
  `(SELECT host FROM domains WHERE domains.id = ${column})`

/** SQL: the id of the domain with a host; null for a host that is null or unknown. */
export const idOfDomain = (host: string): string =>
  `(SELECT id FROM domains WHERE domains.host = ${host})`

/** SQL: the account with the id `?1` may use the domain. */
export const MAY_USE = `(access = 'all' OR (access = 'account' AND account_id = ?1)
  OR (access = 'owners' AND (SELECT is_owner FROM accounts WHERE id = ?1) = 1))`

export interface DomainRef {
  id: number
  host: string
}

/** Which domains an account may use for its links and aliases. */
export const domainUses = perConnection((db: Database) => {
  const usable = db.prepare<DomainRef, [AccountId, string]>(
    `SELECT id, host FROM domains WHERE host = ?2 AND ${MAY_USE}`,
  )
  const standard = db.prepare<DomainRef, [AccountId]>(
    `SELECT id, host FROM domains
     WHERE id = (SELECT domain_id FROM accounts WHERE id = ?1) AND ${MAY_USE}`,
  )
  return {
    findUsable: (accountId: AccountId, host: string) => usable.get(accountId, host),
    mayUse: (accountId: AccountId, host: string): boolean => usable.get(accountId, host) !== null,
    /** The domain of new links; null for the primary one. */
    defaultOf: (accountId: AccountId): DomainRef | null => standard.get(accountId),
  }
})
