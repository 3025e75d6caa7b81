import { type Author, authorOf, type By } from '../../db/author.ts'
import type { Clock } from '../../lib/clock.ts'
import type { RandomBytes } from '../../lib/random.ts'
import type { SecretHasher } from '../secrets.ts'
import type { SecurityEvent } from '../security-log.ts'
import type { AccountId, PersonId } from '../store.ts'

/**
 * The operations of accounts: one function for each, with its limits, its refusals and its line in
 * the log. Pages, the owner's pages and commands call it. Limits and refusals are decided by the
 * write beside it, in its transaction.
 */

/** What operations use besides the subjects. */
export interface Kit {
  hasher: SecretHasher
  clock: Clock
  random: RandomBytes
}

type Fields = Readonly<Record<string, string | number>>

/** Who asks for an operation. */
export interface Actor {
  by: By
  /** The e-mail address of a person, for the list of keys. */
  email: string | null
  /** Writes a security event about an account to the log; 0: about that of the actor. */
  note(event: SecurityEvent, accountId: AccountId, fields?: Fields): void
}

/** Whoever runs commands. They print what they did, and log nothing. */
export const OPERATOR: Actor = { by: 'operator', email: null, note() {} }

/** `accountId`: 0 for what belongs to no account. */
export const authorFor = ({ clock }: Kit, { by }: Actor, accountId: AccountId): Author =>
  authorOf({ id: accountId, by }, clock())

/** The person who sends an invitation. The operator is none. */
export function personOf(by: By): PersonId | null {
  if (by === 'operator' || 'keyId' in by) return null
  return 'ownerId' in by ? by.ownerId : by.personId
}
