import type { Database } from 'bun:sqlite'
import { RULES_CHANGED } from '../../db/events.ts'
import {
  type Authored,
  authoredWrite,
  type DataOf,
  perConnection,
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
import { type Actor, authorFor, type Kit } from './actor.ts'

/** What the writes change, on one connection. */
const storesOf = perConnection((db) => ({
  accounts: accountStore(db),
  links: oneTimeLinkStore(db),
  sessions: sessionRows(db),
}))

/** Accounts. Their keys, sessions and one-time links are subjects of their own. */
export const accounts = subject({
  reads: (db): AccountReads => new AccountReads(db),
  scans: { overviews: overviewScan },
  writes: {
    /** The id of the person and of the account. Undefined if the e-mail address is in use. */
    create: write({
      since: 1,
      prepare(db) {
        const { accounts } = storesOf(db)
        return (account: NewAccount): AccountId | undefined => accounts.create(account)
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
      },
    }),

    setPlan: authoredWrite({
      since: 1,
      least: 'owner',
      prepare(db) {
        const { accounts } = storesOf(db)
        return ({ author, plan }: Authored & { plan: Plan }): void =>
          accounts.change(author.accountId, { plan })
      },
    }),

    /**
     * Disables the account's keys and ends its sessions. `links`: its links answer 410 until the
     * account is enabled. False for the last owner.
     */
    disable: authoredWrite({
      since: 1,
      least: 'owner',
      prepare(db) {
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
      },
      events: () => RULES_CHANGED,
    }),

    enable: authoredWrite({
      since: 1,
      least: 'owner',
      prepare(db) {
        const { accounts } = storesOf(db)
        return ({ author: { accountId } }: Authored): void => {
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
    beginDeletion: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
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
      },
    }),

    /** `name`: see `parseAccountName`. */
    rename: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
        const { accounts } = storesOf(db)
        return ({ author: { accountId }, name }: Authored & { name: string }): void => {
          if (accounts.findById(accountId)?.deletedAt === null) accounts.change(accountId, { name })
        }
      },
    }),

    setTimeZone: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
        const { accounts } = storesOf(db)
        return ({ author, timeZone }: Authored & { timeZone: string }): void =>
          accounts.change(author.accountId, { timeZone })
      },
    }),

    remove: write({
      since: 1,
      prepare(db) {
        const { accounts } = storesOf(db)
        return ({ accountId }: { accountId: AccountId }): void => accounts.remove(accountId)
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

type AccountKit = Kit & {
  data: DataOf<{ accounts: typeof accounts; oneTimeLinks: typeof oneTimeLinks }>
}

/** Creates an account. Undefined, and nothing is created, if the e-mail address is in use. */
export async function createAccount(
  kit: AccountKit,
  actor: Actor,
  account: Omit<NewAccount, 'now'>,
): Promise<AccountId | undefined> {
  const id = await kit.data.accounts.create({ ...account, now: kit.clock() })
  if (id !== undefined) actor.note('account.created', id, { plan: account.plan })
  return id
}

export async function setPlan(
  kit: AccountKit,
  actor: Actor,
  { accountId, plan }: { accountId: AccountId; plan: Plan },
): Promise<void> {
  await kit.data.accounts.setPlan({ author: authorFor(kit, actor, accountId), plan })
  actor.note('account.plan_changed', accountId, { plan })
}

/** Throws `last_owner`. */
export async function disableAccount(
  kit: AccountKit,
  actor: Actor,
  { accountId, links }: { accountId: AccountId; links: boolean },
): Promise<void> {
  const author = authorFor(kit, actor, accountId)
  if (!(await kit.data.accounts.disable({ author, links }))) throw new AppError('last_owner')
  actor.note('account.disabled', accountId)
}

export async function enableAccount(kit: AccountKit, actor: Actor, id: AccountId): Promise<void> {
  await kit.data.accounts.enable({ author: authorFor(kit, actor, id) })
  actor.note('account.enabled', id)
}

/** Its links are still to be deleted. Throws `last_owner`. */
export async function closeAccount(kit: AccountKit, actor: Actor, id: AccountId): Promise<void> {
  const author = authorFor(kit, actor, id)
  if (!(await kit.data.accounts.beginDeletion({ author }))) throw new AppError('last_owner')
  actor.note('account.deletion_started', id)
}

/** Returns the name as it is stored. Throws `invalid_value`. */
export async function renameAccount(
  kit: AccountKit,
  actor: Actor,
  { accountId, name: text }: { accountId: AccountId; name: string },
): Promise<string> {
  const before = kit.data.accounts.findById(accountId)?.name ?? ''
  const name = parseAccountName(text, before)
  if (name === undefined) throw new AppError('invalid_value', `The name ${BAD_NAME}.`)
  await kit.data.accounts.rename({ author: authorFor(kit, actor, accountId), name })
  actor.note('account.renamed', accountId)
  return name
}

/** A link that sets a person's password, or the owner up. Earlier ones stop working. */
export async function sendLink(
  kit: AccountKit,
  actor: Actor,
  about: { purpose: 'setup' } | { purpose: 'reset'; personId: PersonId },
): Promise<SentLink> {
  const author = authorFor(kit, actor, 0)
  const { stored: link, ...sent } = issueOneTimeLink(kit, about, author.now)
  await kit.data.oneTimeLinks.add({ author, link })
  return sent
}
