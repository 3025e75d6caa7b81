import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import { perConnection } from '../db/subject.ts'
import { PRIMARY_ID } from '../hot/destination-cache.ts'
import { type Address, addressText, isOnPrimary, readDomainId } from './address.ts'

/** SQL: the account with the id `?1` may use the domain. */
export const MAY_USE = `(access = 'all' OR (access = 'account' AND account_id = ?1)
  OR (access = 'owners' AND (SELECT is_owner FROM accounts WHERE id = ?1) = 1))`

/** Which domains an account may use for its links and aliases. */
export const domainUses = perConnection((db: Database) => {
  const usable = db.prepare<object, [AccountId, number]>(
    `SELECT 1 FROM domains WHERE id = ?2 AND ${MAY_USE}`,
  )
  const standard = db.prepare<{ id: number }, [AccountId]>(
    `SELECT id FROM domains
     WHERE id = (SELECT domain_id FROM accounts WHERE id = ?1) AND ${MAY_USE}`,
  )
  const known = db.prepare<{ host: string }, [number]>('SELECT host FROM domains WHERE id = ?')
  const hostOf = (domainId: number): string | null => known.get(domainId)?.host ?? null
  return {
    /** The domain, or the primary one if that was removed. */
    existing: (domainId: number): number =>
      isOnPrimary({ domainId }) || known.get(domainId) === null ? PRIMARY_ID : domainId,
    /** As `PublicUrls` does, on the threads that have none. */
    hostOf,
    textOf: ({ domainId, path }: Address): string => addressText({ host: hostOf(domainId), path }),
    mayUse: (accountId: AccountId, domainId: number): boolean =>
      isOnPrimary({ domainId }) || usable.get(accountId, domainId) !== null,
    /** The domain of new links. */
    defaultOf: (accountId: AccountId): number => readDomainId(standard.get(accountId)?.id ?? null),
  }
})
