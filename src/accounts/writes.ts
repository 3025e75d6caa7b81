/** Changes to accounts, their keys and one-time links, on the writer thread. */

import type { Database } from 'bun:sqlite'
import { keyWrites } from './keys.ts'
import { type NewOneTimeLink, OneTimeLinkStore } from './one-time-links.ts'
import type { Plan } from './plans.ts'
import { type SessionWrites, sessionWrites } from './sessions.ts'
import { type AccountId, AccountStore, type NewAccount, type NewKey } from './store.ts'

/** The result of using a one-time link. `hasNewKey` is false for an account that existed before. */
export type JoinResult =
  | { accountId: AccountId; hasNewKey: boolean }
  | { refused: 'link_over' | 'email_taken' | 'password_needed' }

interface JoinCommand {
  tokenHash: Uint8Array
  email: string
  passwordHash: string
  key: NewKey
  now: number
}

interface Stores {
  accounts: AccountStore
  links: OneTimeLinkStore
  sessions: SessionWrites
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function accountWrites(db: Database) {
  const stores: Stores = {
    accounts: new AccountStore(db),
    links: new OneTimeLinkStore(db),
    sessions: sessionWrites(db),
  }
  return {
    ...joinWrites(stores),
    ...passwordWrites(stores),
    ...stateWrites(stores),
    ...keyWrites(stores.accounts),
  }
}

export type AccountWrites = ReturnType<typeof accountWrites>

/** Invitations, the set-up, and new accounts. */
function joinWrites({ accounts, links, sessions }: Stores) {
  return {
    /** False, and nothing is stored, for an invitation by a disabled or deleted account. */
    addOneTimeLink(link: NewOneTimeLink): boolean {
      const { purpose, accountId } = link
      if (purpose === 'invite' && accountId && accounts.find(accountId)?.disabledAt !== null) {
        return false
      }
      links.add(link)
      return true
    },

    endInvite: ({ id }: { id: number }): boolean => links.endInvite(id),

    /**
     * Creates the owner account, or makes the existing account of the address the owner. An
     * existing account loses its sessions, keys and unused one-time links, because another person
     * may have created it. `provedHash` is the stored hash that its password was verified against;
     * with another hash nothing is changed. An account without a password, which only the command
     * line creates, needs no proof.
     */
    setUpOwner(command: JoinCommand & { provedHash: string | null }): JoinResult {
      const { tokenHash, now, provedHash, ...account } = command
      const link = links.find('setup', tokenHash, now)
      if (!link) return { refused: 'link_over' }
      const existing = accounts.findByEmail(account.email)
      if (existing && existing.passwordHash !== provedHash) return { refused: 'password_needed' }
      links.markUsed(link.id, now)
      if (existing) {
        setPassword({ accounts, links }, existing.id, account.passwordHash, now)
        accounts.change(existing.id, { isOwner: 1, disabledAt: null, linksDisabledAt: null })
        accounts.revokeKeys(existing.id, now)
        sessions.endSessions({ accountId: existing.id })
        links.endAll('invite', existing.id)
        return { accountId: existing.id, hasNewKey: false }
      }
      const id = accounts.create({ ...account, plan: 'enterprise', isOwner: true, now })
      return id === undefined ? { refused: 'email_taken' } : { accountId: id, hasNewKey: true }
    },

    /** The address and plan of the invitation take precedence over those that were sent. */
    acceptInvite({ tokenHash, now, ...account }: JoinCommand): JoinResult {
      const link = links.find('invite', tokenHash, now)
      if (!link) return { refused: 'link_over' }
      const email = link.email ?? account.email
      const id = accounts.create({ ...account, email, plan: link.plan ?? 'free', now })
      if (id === undefined) return { refused: 'email_taken' }
      links.markUsed(link.id, now)
      return { accountId: id, hasNewKey: true }
    },

    /** Undefined if the e-mail address has an account already. */
    createAccount: (account: NewAccount): AccountId | undefined => accounts.create(account),

    /** The same without an API key, which its owner can create in the dashboard. */
    signUp: (account: NewAccount): AccountId | undefined => accounts.create(account),
  }
}

function passwordWrites({ accounts, links, sessions }: Stores) {
  return {
    /** Sets the password of the link's account, and ends every session. */
    resetPassword(command: {
      tokenHash: Uint8Array
      passwordHash: string
      now: number
    }): JoinResult {
      const { tokenHash, passwordHash, now } = command
      const link = links.find('reset', tokenHash, now)
      const account = link?.accountId ? accounts.find(link.accountId) : undefined
      if (!link || !account || account.disabledAt !== null) return { refused: 'link_over' }
      setPassword({ accounts, links }, account.id, passwordHash, now)
      sessions.endSessions({ accountId: account.id })
      return { accountId: account.id, hasNewKey: false }
    },

    /**
     * Ends every session except `keep`, which gets a new token. False, and nothing is changed, if
     * `keep` has ended too, because a reset came first.
     */
    changePassword(command: {
      accountId: AccountId
      passwordHash: string
      keep: number
      /** Hash of the new token. */
      tokenHash: Uint8Array
      now: number
    }): boolean {
      const { accountId, passwordHash, keep, tokenHash, now } = command
      if (!sessions.hasSession({ id: keep, accountId })) return false
      setPassword({ accounts, links }, accountId, passwordHash, now)
      sessions.renewSession({ id: keep, hash: tokenHash, provedAt: now })
      sessions.endSessions({ accountId, keep })
      return true
    },
  }
}

function stateWrites({ accounts, links, sessions }: Stores) {
  const endAccess = (accountId: AccountId) => {
    sessions.endSessions({ accountId })
    links.endAll('reset', accountId)
    links.endAll('invite', accountId)
  }

  return {
    setPlan: ({ accountId, plan }: { accountId: AccountId; plan: Plan }): void =>
      accounts.change(accountId, { plan }),

    /**
     * Disables the account's keys and ends its sessions. `links`: its links answer 410 until the
     * account is enabled. False for the last owner.
     */
    disableAccount(command: { accountId: AccountId; links?: boolean; now: number }): boolean {
      const { accountId, links: withLinks = false, now } = command
      if (accounts.isLastOwner(accountId)) return false
      const account = accounts.find(accountId)
      const disabledAt = account?.disabledAt ?? now
      const linksDisabledAt = account?.linksDisabledAt ?? (withLinks ? now : null)
      accounts.change(accountId, { disabledAt, linksDisabledAt })
      endAccess(accountId)
      return true
    },

    enableAccount({ accountId }: { accountId: AccountId }): void {
      if (accounts.find(accountId)?.deletedAt !== null) return
      accounts.change(accountId, { disabledAt: null, linksDisabledAt: null })
    },

    /**
     * Disables the account for good and frees its e-mail address. False for the last owner. Its
     * links are deleted in batches afterwards, and `removeAccount` comes last.
     */
    beginDeletion({ accountId, now }: { accountId: AccountId; now: number }): boolean {
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
      endAccess(accountId)
      return true
    },

    setTimeZone({ accountId, timeZone }: { accountId: AccountId; timeZone: string }): void {
      accounts.change(accountId, { timeZone })
    },

    removeAccount: ({ accountId }: { accountId: AccountId }): void => accounts.remove(accountId),
  }
}

function setPassword(
  { accounts, links }: Pick<Stores, 'accounts' | 'links'>,
  id: AccountId,
  passwordHash: string,
  now: number,
): void {
  accounts.change(id, { passwordHash, passwordChangedAt: now })
  links.endAll('reset', id)
}
