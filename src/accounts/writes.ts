import type { Database } from 'bun:sqlite'
import { RULES_CHANGED } from '../db/events.ts'
import { perConnection, subject, write } from '../db/subject.ts'
import { oneTimeLinkStore } from './one-time-links.ts'
import { overviewScan } from './overviews.ts'
import type { Plan } from './plans.ts'
import { sessionRows } from './sessions.ts'
import {
  type AccountId,
  AccountReads,
  accountStore,
  type NewAccount,
  type NewKey,
  type PersonId,
} from './store.ts'

/** The result of using a one-time link. `hasNewKey` is false for a person who existed before. */
export type JoinResult =
  | { personId: PersonId; hasNewKey: boolean }
  | { refused: 'link_over' | 'email_taken' | 'password_needed' | 'full' }

export interface JoinCommand {
  tokenHash: Uint8Array
  email: string
  passwordHash: string
  key: NewKey
  now: number
}

/** What the writes of this file change, on one connection. */
const storesOf = perConnection((db) => ({
  accounts: accountStore(db),
  links: oneTimeLinkStore(db),
  sessions: sessionRows(db),
}))

/** Invitations, the set-up, and new accounts. */
const joinWrites = {
  /**
   * Creates the owner account, or makes the existing person of the address an owner. The person
   * loses their sessions and unused one-time links, and the accounts of which they are an admin
   * lose their keys, because somebody else may have created them. `provedHash`
   * is the stored hash that the password was verified against; with another hash nothing is
   * changed. A person without a password, whom only the command line creates, needs no proof.
   */
  setUpOwner: write({
    prepare(db) {
      const { accounts, links, sessions } = storesOf(db)
      return (command: JoinCommand & { provedHash: string | null }): JoinResult => {
        const { tokenHash, now, provedHash, ...account } = command
        const link = links.findByHash('setup', tokenHash, now)
        if (!link) return { refused: 'link_over' }
        const existing = accounts.findByEmail(account.email)
        if (existing && existing.passwordHash !== provedHash) return { refused: 'password_needed' }
        links.markUsed(link.id, now)
        if (existing) {
          setPassword(db, existing.id, account.passwordHash, now)
          accounts.changePerson(existing.id, { isOwner: 1 })
          for (const { id, role } of accounts.listAccountsOf(existing.id)) {
            if (role !== 'admin') continue
            const enabled = { disabledAt: null, linksDisabledAt: null }
            // The same id: the account was created with the person (decision 068).
            accounts.change(id, id === existing.id ? { ...enabled, isOwner: 1 } : enabled)
            accounts.revokeKeys(id, now)
          }
          sessions.endAll({ personId: existing.id })
          links.endAll('invite', existing.id)
          return { personId: existing.id, hasNewKey: false }
        }
        const id = accounts.create({ ...account, plan: 'enterprise', isOwner: true, now })
        return id === undefined ? { refused: 'email_taken' } : { personId: id, hasNewKey: true }
      }
    },
    events: () => RULES_CHANGED,
  }),

  /** The address and plan of the invitation take precedence over those that were sent. */
  acceptInvite: write({
    prepare(db) {
      const { accounts, links } = storesOf(db)
      return ({ tokenHash, now, ...account }: JoinCommand): JoinResult => {
        const link = links.findByHash('invite', tokenHash, now)
        if (!link) return { refused: 'link_over' }
        const email = link.email ?? account.email
        if (link.accountId) {
          const { accountId, role } = link
          if (accounts.findById(accountId)?.disabledAt !== null) return { refused: 'link_over' }
          if (accounts.isFull(accountId)) return { refused: 'full' }
          const { passwordHash } = account
          const person = { email, accountId, role: role ?? 'admin', passwordHash, createdAt: now }
          const personId = accounts.createMember(person)
          if (personId === undefined) return { refused: 'email_taken' }
          links.markUsed(link.id, now)
          return { personId, hasNewKey: false }
        }
        const id = accounts.create({ ...account, email, plan: link.plan ?? 'free', now })
        if (id === undefined) return { refused: 'email_taken' }
        links.markUsed(link.id, now)
        return { personId: id, hasNewKey: true }
      }
    },
  }),

  /** The id of the person and of the account. Undefined if the e-mail address is in use. */
  create: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return (account: NewAccount): AccountId | undefined => accounts.create(account)
    },
  }),
}

const passwordWrites = {
  /** Sets the password of the link's person, and ends every session. */
  resetPassword: write({
    prepare(db) {
      const { accounts, links, sessions } = storesOf(db)
      return (command: {
        tokenHash: Uint8Array
        passwordHash: string
        now: number
      }): JoinResult => {
        const { tokenHash, passwordHash, now } = command
        const link = links.findByHash('reset', tokenHash, now)
        const person = link?.personId ? accounts.findPerson(link.personId) : undefined
        if (!link || !person?.hasAccount) return { refused: 'link_over' }
        setPassword(db, person.id, passwordHash, now)
        sessions.endAll({ personId: person.id })
        return { personId: person.id, hasNewKey: false }
      }
    },
  }),

  /**
   * Ends every session except `keep`, which gets a new token. False, and nothing is changed, if
   * `keep` has ended too, because a reset came first.
   */
  changePassword: write({
    prepare(db) {
      const { sessions } = storesOf(db)
      return (command: {
        personId: PersonId
        passwordHash: string
        keep: number
        tokenHash: Uint8Array
        now: number
      }): boolean => {
        const { personId, passwordHash, keep, tokenHash, now } = command
        if (!sessions.isActive({ id: keep, personId })) return false
        setPassword(db, personId, passwordHash, now)
        sessions.renew({ id: keep, hash: tokenHash, provedAt: now })
        sessions.endAll({ personId, keep })
        return true
      }
    },
  }),
}

const stateWrites = {
  setPlan: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, plan }: { accountId: AccountId; plan: Plan }): void =>
        accounts.change(accountId, { plan })
    },
  }),

  /**
   * Disables the account's keys and ends its sessions. `links`: its links answer 410 until the
   * account is enabled. False for the last owner.
   */
  disable: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return (command: { accountId: AccountId; links?: boolean; now: number }): boolean => {
        const { accountId, links: withLinks = false, now } = command
        if (accounts.isLastOwner(accountId)) return false
        const account = accounts.findById(accountId)
        const disabledAt = account?.disabledAt ?? now
        const linksDisabledAt = account?.linksDisabledAt ?? (withLinks ? now : null)
        accounts.change(accountId, { disabledAt, linksDisabledAt })
        endAccess(db, accountId)
        return true
      }
    },
    events: () => RULES_CHANGED,
  }),

  enable: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId }: { accountId: AccountId }): void => {
        if (accounts.findById(accountId)?.deletedAt !== null) return
        accounts.change(accountId, { disabledAt: null, linksDisabledAt: null })
      }
    },
    events: () => RULES_CHANGED,
  }),

  /**
   * Disables the account for good, and removes its members who are in no other account. False for
   * the last owner. Its links are deleted in batches afterwards, and `remove` comes last.
   */
  beginDeletion: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, now }: { accountId: AccountId; now: number }): boolean => {
        if (accounts.isLastOwner(accountId)) return false
        accounts.revokeKeys(accountId, now)
        const name = `deleted account ${accountId}`
        accounts.change(accountId, { name, disabledAt: now, deletedAt: now })
        endAccess(db, accountId)
        accounts.removeMembers(accountId)
        return true
      }
    },
  }),

  /** `name`: see `parseAccountName`. */
  rename: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, name }: { accountId: AccountId; name: string }): void => {
        if (accounts.findById(accountId)?.deletedAt === null) accounts.change(accountId, { name })
      }
    },
  }),

  setTimeZone: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, timeZone }: { accountId: AccountId; timeZone: string }): void =>
        accounts.change(accountId, { timeZone })
    },
  }),

  remove: write({
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId }: { accountId: AccountId }): void => accounts.remove(accountId)
    },
    events: (_, command) =>
      command ? [{ what: 'account_removed', accountId: command.accountId }] : [],
  }),
}

/** Accounts. Their keys, sessions and one-time links are subjects of their own. */
export const accounts = subject({
  reads: (db): AccountReads => new AccountReads(db),
  scans: { overviews: overviewScan },
  writes: { ...joinWrites, ...passwordWrites, ...stateWrites },
})

function setPassword(db: Database, id: PersonId, passwordHash: string, now: number): void {
  const { accounts, links } = storesOf(db)
  accounts.changePerson(id, { passwordHash, passwordChangedAt: now })
  links.endAll('reset', id)
}

/** For an account that was just disabled. */
function endAccess(db: Database, accountId: AccountId): void {
  const { accounts, links, sessions } = storesOf(db)
  sessions.endAllIn(accountId)
  links.endAllTo(accountId)
  for (const { id } of accounts.listMembers(accountId)) {
    if (accounts.findPerson(id)?.hasAccount) continue
    links.endAll('reset', id)
    links.endAll('invite', id)
  }
}
