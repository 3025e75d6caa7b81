import { perConnection } from '../db/subject.ts'
import { type OneTimeLinkRow, oneTimeLinkStore } from './one-time-links.ts'
import { accountStore, type NewKey, type PersonId } from './store.ts'

interface NewPerson {
  /** The invitation that is used; it may be to an account. */
  link: OneTimeLinkRow | undefined
  email: string
  passwordHash: string | null
  /** Of the new account; absent: the e-mail address. */
  accountName?: string | undefined
  key?: NewKey
  now: number
}

/** Why nobody was created, as an error. */
export type NotCreated = { refused: 'link_over' | 'email_taken' | 'account_full' }

/**
 * Creates a person: as a member of the account of an invitation, or with an account. Sign-ups
 * with a password and with a provider both use it.
 */
export const personCreator = perConnection((db) => {
  const accounts = accountStore(db)
  const links = oneTimeLinkStore(db)
  return ({
    link,
    now,
    ...person
  }: NewPerson): NotCreated | { personId: PersonId; hasNewKey: boolean } => {
    const { accountId = null, role, plan } = link ?? {}
    if (accountId !== null) {
      if (accounts.findById(accountId)?.disabledAt !== null) return { refused: 'link_over' }
      if (accounts.isFull(accountId)) return { refused: 'account_full' }
    }
    const { email, passwordHash } = person
    const personId =
      accountId === null
        ? accounts.create({ ...person, plan: plan ?? 'free', now })
        : accounts.createMember({
            email,
            accountId,
            role: role ?? 'admin',
            passwordHash,
            createdAt: now,
          })
    if (personId === undefined) return { refused: 'email_taken' }
    if (link) links.markUsed(link.id, now)
    return { personId, hasNewKey: accountId === null }
  }
})
