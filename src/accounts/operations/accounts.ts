import type { Database } from 'bun:sqlite'
import {
  type Authored,
  authoredWrite,
  type DataOf,
  perConnection,
  rulesWrite,
  subject,
  write,
} from '../../db/subject.ts'
import { AppError } from '../../errors.ts'
import { BAD_NAME, parseAccountName } from '../names.ts'
import {
  issueOneTimeLink,
  oneTimeLinkStore,
  type oneTimeLinks,
  type SentLink,
} from '../one-time-links.ts'
import { overviewScan } from '../overviews.ts'
import type { Plan } from '../plans.ts'
import { sessionRows } from '../sessions.ts'
import {
  type AccountId,
  AccountReads,
  accountStore,
  type NewAccount,
  type PersonId,
} from '../store.ts'
import type { Asked } from './asked.ts'

/** What the writes of this file and of registrations change, on one connection. */
export const storesOf = perConnection((db) => ({
  accounts: accountStore(db),
  links: oneTimeLinkStore(db),
  sessions: sessionRows(db),
}))

/** Accounts. Their keys, sessions and one-time links are subjects of their own. */
export const accounts = subject({
  reads: (db): AccountReads => new AccountReads(db),
  scans: { overviews: overviewScan },
  // Those who are in other accounts too have opened the deleted one last.
  forget: [
    `UPDATE people SET account_id = (SELECT account_id FROM memberships
       WHERE person_id = people.id ORDER BY created_at, account_id LIMIT 1)
     WHERE account_id = ?1 AND id IN (SELECT person_id FROM memberships)`,
  ],
  writes: {
    /** The id of the person and of the account. Undefined if the e-mail address is in use. */
    create: write(
      (db) =>
        (account: NewAccount): AccountId | undefined =>
          accountStore(db).create(account),
    ),

    /** A further account of the owner of the service who asks, and who is its admin. */
    createFurther: authoredWrite('owner', (db) => {
      const accounts = accountStore(db)
      return ({ author, ...account }: Authored & { name: string; plan: Plan }): AccountId => {
        const { by, now } = author
        const personId = typeof by === 'object' && 'ownerId' in by ? by.ownerId : 0
        const accountId = accounts.addAccount({ ...account, createdAt: now })
        accounts.addMember({ accountId, personId, role: 'admin', createdAt: now })
        return accountId
      }
    }),

    /**
     * Ends every session except `keep`, which gets a new token. False, and nothing is changed, if
     * `keep` has ended too, because a reset came first.
     */
    changePassword: write((db) => {
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
        setPassword(db, { id: personId, passwordHash, now })
        sessions.renew({ id: keep, hash: tokenHash, provedAt: now })
        sessions.endAll({ personId, keep })
        return true
      }
    }),

    setPlan: authoredWrite(
      'owner',
      (db) =>
        ({ author, plan }: Authored & { plan: Plan }): void =>
          accountStore(db).change(author.accountId, { plan }),
    ),

    /**
     * Disables the account's keys and ends its sessions. `links`: its links answer 410 until the
     * account is enabled. False for the last owner.
     */
    disable: rulesWrite('owner', (db) => {
      const { accounts } = storesOf(db)
      return ({ author, links = false }: Authored & { links?: boolean }): boolean => {
        const { accountId, now } = author
        if (accounts.isLastOwner(accountId)) return false
        const account = accounts.findById(accountId)
        const disabledAt = account?.disabledAt ?? now
        const linksDisabledAt = account?.linksDisabledAt ?? (links ? now : null)
        accounts.change(accountId, { disabledAt, linksDisabledAt })
        endAccess(db, accountId)
        return true
      }
    }),

    enable: rulesWrite('owner', (db) => {
      const accounts = accountStore(db)
      return ({ author: { accountId } }: Authored): void => {
        if (accounts.findById(accountId)?.deletedAt !== null) return
        accounts.change(accountId, { disabledAt: null, linksDisabledAt: null })
      }
    }),

    /**
     * Disables the account for good, and removes its members who are in no other account. False for
     * the last owner. Its links are deleted in batches afterwards, and `remove` comes last.
     */
    beginDeletion: authoredWrite('admin', (db) => {
      const { accounts } = storesOf(db)
      return ({ author: { accountId, now } }: Authored): boolean => {
        if (accounts.isLastOwner(accountId)) return false
        accounts.revokeKeys(accountId, now)
        const name = `deleted account ${accountId}`
        accounts.change(accountId, { name, disabledAt: now, deletedAt: now })
        endAccess(db, accountId)
        accounts.removeMembers(accountId)
        return true
      }
    }),

    /** `name`: see `parseAccountName`. */
    rename: authoredWrite('admin', (db) => {
      const { accounts } = storesOf(db)
      return ({ author: { accountId }, name }: Authored & { name: string }): void => {
        if (accounts.findById(accountId)?.deletedAt === null) accounts.change(accountId, { name })
      }
    }),

    setTimeZone: authoredWrite(
      'admin',
      (db) =>
        ({ author, timeZone }: Authored & { timeZone: string }): void =>
          accountStore(db).change(author.accountId, { timeZone }),
    ),

    remove: write({
      prepare:
        (db, host) =>
        ({ accountId }: { accountId: AccountId }): void => {
          host.forgetAccount(accountId)
          accountStore(db).remove(accountId)
        },
      events: (_, command) =>
        command ? [{ what: 'account_removed', accountId: command.accountId }] : [],
    }),
  },
})

/** Earlier links that set a password end. */
export function setPassword(
  db: Database,
  { id, passwordHash, now }: { id: PersonId; passwordHash: string; now: number },
): void {
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

type Asking = Asked<DataOf<{ accounts: typeof accounts; oneTimeLinks: typeof oneTimeLinks }>>

export async function setPlan({ data, author, note }: Asking, plan: Plan): Promise<void> {
  await data.accounts.setPlan({ author, plan })
  note('account.plan_changed', { plan })
}

/** Throws `last_owner`. */
export async function disableAccount(
  { data, author, note }: Asking,
  { links }: { links: boolean },
): Promise<void> {
  if (!(await data.accounts.disable({ author, links }))) throw new AppError('last_owner')
  note('account.disabled')
}

export async function enableAccount({ data, author, note }: Asking): Promise<void> {
  await data.accounts.enable({ author })
  note('account.enabled')
}

/** Its links are still to be deleted. Throws `last_owner`. */
export async function closeAccount({ data, author, note }: Asking): Promise<void> {
  if (!(await data.accounts.beginDeletion({ author }))) throw new AppError('last_owner')
  note('account.deletion_started')
}

/** Throws `invalid_value`. */
function requireName(text: string, before = ''): string {
  const name = parseAccountName(text, before)
  if (name === undefined) throw new AppError('invalid_value', `The name ${BAD_NAME}.`)
  return name
}

/** A further account of an owner of the service. Throws `invalid_value`. */
export async function createFurtherAccount(
  { data, author, note }: Asking,
  { name, plan }: { name: string; plan: Plan },
): Promise<AccountId> {
  const id = await data.accounts.createFurther({ author, name: requireName(name), plan })
  note('account.created', { plan, account_id: id })
  return id
}

/** Returns the name as it is stored. Throws `invalid_value`. */
export async function renameAccount({ data, author, note }: Asking, text: string): Promise<string> {
  const name = requireName(text, data.accounts.findById(author.accountId)?.name ?? '')
  await data.accounts.rename({ author, name })
  note('account.renamed')
  return name
}

/** A link that sets a person's password, or the owner up. Earlier ones stop working. */
export async function sendLink(
  asked: Asking,
  about: { purpose: 'setup' } | { purpose: 'reset'; personId: PersonId },
): Promise<SentLink> {
  const { data, author } = asked
  const { stored: link, ...sent } = issueOneTimeLink(asked, about, author.now)
  await data.oneTimeLinks.add({ author, link })
  return sent
}
