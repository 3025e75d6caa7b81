import type { Database } from 'bun:sqlite'
import { moderationCounter } from '../db/settings.ts'
import { type NewOneTimeLink, OneTimeLinkStore } from './one-time-link-store.ts'
import type { Plan } from './plans.ts'
import { sessionWrites } from './session-store.ts'
import { type AccountId, AccountStore, type NewKey, type Signing } from './store.ts'

/**
 * What became of a one-time link that somebody tried to use. `hasNewKey` is false where the account
 * was there before: then it keeps the keys that it has.
 */
export type Joined =
  | { accountId: AccountId; hasNewKey: boolean }
  | { refused: 'link_over' | 'email_taken' | 'password_needed' }

interface Joining {
  tokenHash: Uint8Array
  email: string
  passwordHash: string
  key: NewKey
  now: number
}

export interface NewAccount extends Signing {
  email: string
  plan: Plan
  key: NewKey
  now: number
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function accountWrites(db: Database) {
  const accounts = new AccountStore(db)
  const links = new OneTimeLinkStore(db)
  const { endSessions, hasSession, renewSession } = sessionWrites(db)
  const noteModeration = moderationCounter(db)

  const setPassword = (id: AccountId, passwordHash: string, now: number) => {
    accounts.change(id, { passwordHash, passwordChangedAt: now })
    links.endAll('reset', id)
  }
  // Buffers come over from another thread as plain byte arrays.
  const create = ({ email, plan, key, now, ...signing }: NewAccount) =>
    accounts.create(email, plan, { ...key, hash: Buffer.from(key.hash) }, now, signing)

  return {
    /** False, and nothing is stored, for an invitation of an account that is disabled or gone. */
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
     * Creates the owner, or makes the account that has the address the owner: then its sessions,
     * its keys and the links that it can still use end, whoever holds them. `provedHash` is the
     * stored hash that a password was verified against. An account that has another one keeps
     * everything; one without a password, which only the command line creates, has nothing to
     * prove.
     */
    setUpOwner(order: Joining & { provedHash: string | null }): Joined {
      const { tokenHash, now, provedHash, ...account } = order
      const link = links.find('setup', tokenHash, now)
      if (!link) return { refused: 'link_over' }
      const existing = accounts.findByEmail(account.email)
      if (existing && existing.passwordHash !== provedHash) return { refused: 'password_needed' }
      links.markUsed(link.id, now)
      if (existing) {
        setPassword(existing.id, account.passwordHash, now)
        const enabled = { disabledAt: null, linksDisabledAt: null }
        accounts.change(existing.id, { isOwner: 1, ...enabled })
        noteModeration()
        accounts.revokeKeys(existing.id, now)
        endSessions({ accountId: existing.id })
        links.endAll('invite', existing.id)
        return { accountId: existing.id, hasNewKey: false }
      }
      const id = create({ ...account, plan: 'enterprise', isOwner: true, now })
      return id === undefined ? { refused: 'email_taken' } : { accountId: id, hasNewKey: true }
    },

    /** The invitation's own address and plan win over what the guest sent. */
    acceptInvite({ tokenHash, now, ...account }: Joining): Joined {
      const link = links.find('invite', tokenHash, now)
      if (!link) return { refused: 'link_over' }
      const email = link.email ?? account.email
      const id = create({ ...account, email, plan: link.plan ?? 'free', now })
      if (id === undefined) return { refused: 'email_taken' }
      links.markUsed(link.id, now)
      return { accountId: id, hasNewKey: true }
    },

    /** Undefined when the e-mail address has an account already. */
    createAccount: (account: NewAccount): AccountId | undefined => create(account),

    /** Sets the password that a link was given for, and ends every session. */
    resetPassword(order: { tokenHash: Uint8Array; passwordHash: string; now: number }): Joined {
      const { tokenHash, passwordHash, now } = order
      const link = links.find('reset', tokenHash, now)
      const account = link?.accountId ? accounts.find(link.accountId) : undefined
      if (!link || !account || account.disabledAt !== null) return { refused: 'link_over' }
      setPassword(account.id, passwordHash, now)
      endSessions({ accountId: account.id })
      return { accountId: account.id, hasNewKey: false }
    },

    /**
     * Ends every session but `keep`, which gets a new token. False, and nothing is changed, when
     * that one has ended itself: a reset came first.
     */
    changePassword(order: {
      accountId: AccountId
      passwordHash: string
      keep: number
      /** Of the new token. */
      tokenHash: Uint8Array
      now: number
    }): boolean {
      const { accountId, keep, tokenHash, now } = order
      if (!hasSession({ id: keep, accountId })) return false
      setPassword(accountId, order.passwordHash, now)
      renewSession({ id: keep, hash: tokenHash, provedAt: now })
      endSessions({ accountId, keep })
      return true
    },

    setPlan: ({ accountId, plan }: { accountId: AccountId; plan: Plan }): void =>
      accounts.setPlan(accountId, plan),

    /**
     * Refuses its keys and ends its sessions. `links`: visitors of its links get 410, until the
     * account is enabled. False for the last owner.
     */
    disableAccount(command: { accountId: AccountId; links?: boolean; now: number }): boolean {
      const { accountId, links: withLinks = false, now } = command
      if (isLastOwner(accounts, accountId)) return false
      const account = accounts.find(accountId)
      const disabledAt = account?.disabledAt ?? now
      const linksDisabledAt = account?.linksDisabledAt ?? (withLinks ? now : null)
      accounts.change(accountId, { disabledAt, linksDisabledAt })
      noteModeration()
      endSessions({ accountId })
      links.endAll('reset', accountId)
      links.endAll('invite', accountId)
      return true
    },

    enableAccount({ accountId }: { accountId: AccountId }): void {
      if (accounts.find(accountId)?.deletedAt === null) {
        accounts.change(accountId, { disabledAt: null, linksDisabledAt: null })
        noteModeration()
      }
    },

    /**
     * Gives the account a new key in place of the one that does not end. False, and nothing is
     * changed, when that is another one than `replaces` (undefined: when there is one).
     */
    rotateKey(order: {
      accountId: AccountId
      next: NewKey
      replaces: number | undefined
      endsAt: number
      now: number
    }): boolean {
      const { accountId, replaces, endsAt, now } = order
      const inForce = accounts.listKeys(accountId, now).find((key) => key.endsAt === null)
      if (inForce?.id !== replaces) return false
      const next = { ...order.next, hash: Buffer.from(order.next.hash) }
      accounts.rotateKey(accountId, next, endsAt, now)
      return true
    },

    revokeKeys: ({ accountId, endsAt }: { accountId: AccountId; endsAt: number }): void =>
      accounts.revokeKeys(accountId, endsAt),

    endKey: (order: { accountId: AccountId; keyId: number; now: number }): boolean =>
      accounts.endKey(order.accountId, order.keyId, order.now),

    noteKeyUses(uses: readonly { keyId: number; at: number }[]): void {
      for (const { keyId, at } of uses) accounts.noteKeyUse(keyId, at)
    },

    /**
     * Nobody can use the account from now on, and its e-mail address is free. False for the last
     * owner. Its links are still there: they go a batch at a time, and `removeAccount` is the end.
     */
    beginDeletion({ accountId, now }: { accountId: AccountId; now: number }): boolean {
      if (isLastOwner(accounts, accountId)) return false
      accounts.revokeKeys(accountId, now)
      accounts.change(accountId, {
        ...{ email: `deleted account ${accountId}`, passwordHash: null, isOwner: 0 },
        ...{ disabledAt: now, deletedAt: now },
      })
      accounts.clearSecondFactor(accountId)
      endSessions({ accountId })
      links.endAll('reset', accountId)
      links.endAll('invite', accountId)
      return true
    },

    removeAccount: ({ accountId }: { accountId: AccountId }): void => accounts.remove(accountId),
  }
}

export type AccountWrites = ReturnType<typeof accountWrites>

function isLastOwner(accounts: AccountStore, id: AccountId): boolean {
  const account = accounts.find(id)
  return account?.isOwner === 1 && account.disabledAt === null && accounts.countOwners() === 1
}
