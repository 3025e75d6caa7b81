import type { Database } from 'bun:sqlite'
import { perConnection, subject, write } from '../db/subject.ts'
import { oneTimeLinkStore } from './one-time-links.ts'
import type { Plan } from './plans.ts'
import { sessionRows } from './sessions.ts'
import {
  type AccountId,
  AccountReads,
  accountStore,
  type NewAccount,
  type NewKey,
  overviewScan,
} from './store.ts'

/** The result of using a one-time link. `hasNewKey` is false for an account that existed before. */
export type JoinResult =
  | { accountId: AccountId; hasNewKey: boolean }
  | { refused: 'link_over' | 'email_taken' | 'password_needed' }

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
   * Creates the owner account, or makes the existing account of the address the owner. An
   * existing account loses its sessions, keys and unused one-time links, because another person
   * may have created it. `provedHash` is the stored hash that its password was verified against;
   * with another hash nothing is changed. An account without a password, which only the command
   * line creates, needs no proof.
   */
  setUpOwner: write({
    since: 1,
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
          accounts.change(existing.id, { isOwner: 1, disabledAt: null, linksDisabledAt: null })
          accounts.revokeKeys(existing.id, now)
          sessions.endAll({ accountId: existing.id })
          links.endAll('invite', existing.id)
          return { accountId: existing.id, hasNewKey: false }
        }
        const id = accounts.create({ ...account, plan: 'enterprise', isOwner: true, now })
        return id === undefined ? { refused: 'email_taken' } : { accountId: id, hasNewKey: true }
      }
    },
    effect: (effects) => effects.rulesChanged(),
  }),

  /** The address and plan of the invitation take precedence over those that were sent. */
  acceptInvite: write({
    since: 1,
    prepare(db) {
      const { accounts, links } = storesOf(db)
      return ({ tokenHash, now, ...account }: JoinCommand): JoinResult => {
        const link = links.findByHash('invite', tokenHash, now)
        if (!link) return { refused: 'link_over' }
        const email = link.email ?? account.email
        const id = accounts.create({ ...account, email, plan: link.plan ?? 'free', now })
        if (id === undefined) return { refused: 'email_taken' }
        links.markUsed(link.id, now)
        return { accountId: id, hasNewKey: true }
      }
    },
  }),

  /** Undefined if the e-mail address has an account already. */
  create: write({
    since: 1,
    prepare(db) {
      const { accounts } = storesOf(db)
      return (account: NewAccount): AccountId | undefined => accounts.create(account)
    },
  }),
}

const passwordWrites = {
  /** Sets the password of the link's account, and ends every session. */
  resetPassword: write({
    since: 1,
    prepare(db) {
      const { accounts, links, sessions } = storesOf(db)
      return (command: {
        tokenHash: Uint8Array
        passwordHash: string
        now: number
      }): JoinResult => {
        const { tokenHash, passwordHash, now } = command
        const link = links.findByHash('reset', tokenHash, now)
        const account = link?.accountId ? accounts.findById(link.accountId) : undefined
        if (!link || !account || account.disabledAt !== null) return { refused: 'link_over' }
        setPassword(db, account.id, passwordHash, now)
        sessions.endAll({ accountId: account.id })
        return { accountId: account.id, hasNewKey: false }
      }
    },
  }),

  /**
   * Ends every session except `keep`, which gets a new token. False, and nothing is changed, if
   * `keep` has ended too, because a reset came first.
   */
  changePassword: write({
    since: 1,
    prepare(db) {
      const { sessions } = storesOf(db)
      return (command: {
        accountId: AccountId
        passwordHash: string
        keep: number
        tokenHash: Uint8Array
        now: number
      }): boolean => {
        const { accountId, passwordHash, keep, tokenHash, now } = command
        if (!sessions.isActive({ id: keep, accountId })) return false
        setPassword(db, accountId, passwordHash, now)
        sessions.renew({ id: keep, hash: tokenHash, provedAt: now })
        sessions.endAll({ accountId, keep })
        return true
      }
    },
  }),
}

const stateWrites = {
  setPlan: write({
    since: 1,
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
    since: 1,
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
    effect: (effects) => effects.rulesChanged(),
  }),

  enable: write({
    since: 1,
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId }: { accountId: AccountId }): void => {
        if (accounts.findById(accountId)?.deletedAt !== null) return
        accounts.change(accountId, { disabledAt: null, linksDisabledAt: null })
      }
    },
    effect: (effects) => effects.rulesChanged(),
  }),

  /**
   * Disables the account for good and frees its e-mail address. False for the last owner. Its
   * links are deleted in batches afterwards, and `remove` comes last.
   */
  beginDeletion: write({
    since: 1,
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, now }: { accountId: AccountId; now: number }): boolean => {
        if (accounts.isLastOwner(accountId)) return false
        accounts.revokeKeys(accountId, now)
        accounts.change(accountId, {
          email: `deleted account ${accountId}`,
          passwordHash: null,
          isOwner: 0,
          disabledAt: now,
          deletedAt: now,
        })
        accounts.clearSecondFactor(accountId)
        endAccess(db, accountId)
        return true
      }
    },
  }),

  setTimeZone: write({
    since: 1,
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId, timeZone }: { accountId: AccountId; timeZone: string }): void =>
        accounts.change(accountId, { timeZone })
    },
  }),

  remove: write({
    since: 1,
    prepare(db) {
      const { accounts } = storesOf(db)
      return ({ accountId }: { accountId: AccountId }): void => accounts.remove(accountId)
    },
  }),
}

/** Accounts. Their keys, sessions and one-time links are subjects of their own. */
export const accounts = subject({
  reads: (db): AccountReads => new AccountReads(db),
  scans: { overviews: overviewScan },
  writes: { ...joinWrites, ...passwordWrites, ...stateWrites },
})

function setPassword(db: Database, id: AccountId, passwordHash: string, now: number): void {
  const { accounts, links } = storesOf(db)
  accounts.change(id, { passwordHash, passwordChangedAt: now })
  links.endAll('reset', id)
}

function endAccess(db: Database, accountId: AccountId): void {
  const { links, sessions } = storesOf(db)
  sessions.endAll({ accountId })
  links.endAll('reset', accountId)
  links.endAll('invite', accountId)
}
