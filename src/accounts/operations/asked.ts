import type { Author } from '../../db/author.ts'
import type { Clock } from '../../lib/clock.ts'
import type { RandomBytes } from '../../lib/random.ts'
import type { SecretHasher } from '../secrets.ts'
import type { SecurityEvent } from '../security-log.ts'
import type { AccountId } from '../store.ts'

/**
 * The operations of accounts: one function for each, with its limits, its refusals and its line in
 * the log. Pages, the owner's pages and commands call it. Limits and refusals are decided by the
 * write beside it, in its transaction.
 */
export interface Asked<Data> {
  data: Data
  hasher: SecretHasher
  random: RandomBytes
  /** Who asks, and about which account: 0 for what belongs to none. */
  author: Author
  /** The e-mail address of a person, for the list of keys. */
  email: string | null
  /** Writes a security event about the account to the log. */
  note(event: SecurityEvent, fields?: Readonly<Record<string, string | number>>): void
}

/** The operator with a command, which prints what it did and writes nothing to the log. */
export const operator = <Deps extends { clock: Clock }>(deps: Deps, accountId: AccountId = 0) => ({
  ...deps,
  author: { accountId, by: 'operator', now: deps.clock() } as const,
  email: null,
  note() {},
})
