import { RULES_CHANGED } from '../../db/events.ts'
import { type DataOf, subject, write } from '../../db/subject.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ConnectCommand, ConnectResult, IdentityKey, identities } from '../identities.ts'
import { type NotCreated, personCreator } from '../new-person.ts'
import type { OneTimeLinkRow } from '../one-time-links.ts'
import type { Origin, SecurityLog } from '../security-log.ts'
import type { AccountId, NewKey, PersonId } from '../store.ts'
import { type accounts, setPassword, storesOf } from './accounts.ts'
import type { members } from './members.ts'

/** `hasNewKey` is false for a person who existed before. */
type Registered = { personId: PersonId; hasNewKey: boolean }
type JoinResult = Registered | NotCreated | { refused: 'password_needed' }

export interface JoinCommand {
  tokenHash: Uint8Array
  email: string
  passwordHash: string
  /** Of the new account; absent: the e-mail address. */
  accountName?: string | undefined
  key: NewKey
  now: number
}

/** The writes of a person who opens a one-time link, without a session. */
export const registrations = subject({
  writes: {
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
          if (existing && existing.passwordHash !== provedHash)
            return { refused: 'password_needed' }
          links.markUsed(link.id, now)
          if (existing) {
            setPassword(db, { id: existing.id, passwordHash: account.passwordHash, now })
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
    acceptInvite: write((db) => {
      const { links } = storesOf(db)
      const create = personCreator(db)
      return ({ tokenHash, ...person }: JoinCommand): JoinResult => {
        const link = links.findByHash('invite', tokenHash, person.now)
        if (!link) return { refused: 'link_over' }
        return create({ ...person, link, email: link.email ?? person.email })
      }
    }),

    /** Sets the password of the link's person, and ends every session. */
    resetPassword: write((db) => {
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
        setPassword(db, { id: person.id, passwordHash, now })
        sessions.endAll({ personId: person.id })
        return { personId: person.id, hasNewKey: false }
      }
    }),
  },
})

/** What these operations use, and where their requests come from: nobody has signed in. */
interface Registration {
  clock: Clock
  security: Pick<SecurityLog, 'record'>
  data: DataOf<{
    accounts: typeof accounts
    identities: typeof identities
    members: typeof members
    registrations: typeof registrations
  }>
  origin: Origin
}

function noteAccount({ security, data, origin }: Registration, accountId: AccountId): void {
  const fields = { plan: data.accounts.findById(accountId)?.plan }
  security.record('account.created', origin, { accountId, fields })
}

function noteAccepted(
  { security, data, origin }: Registration,
  { id, personId }: OneTimeLinkRow,
  accountId: AccountId,
): void {
  const byAccountId = personId ? data.accounts.findPerson(personId)?.accountId : undefined
  const fields = { invite_id: id }
  security.record('invite.accepted', origin, { accountId, byAccountId, fields })
}

/** Without an invitation. Nothing tells whether the e-mail address is in use. */
export async function signUp(
  context: Registration,
  person: { email: string; passwordHash: string; accountName: string | undefined },
): Promise<void> {
  const { data, clock } = context
  const id = await data.accounts.create({ ...person, plan: 'free', now: clock() })
  if (id !== undefined) noteAccount(context, id)
}

/**
 * Uses a one-time link with a password. `provedHash`: see `setUpOwner`. Throws `link_over`,
 * `email_taken`, `account_full`, `password_needed`.
 */
export async function useLink(
  context: Registration,
  link: OneTimeLinkRow,
  { provedHash, ...command }: JoinCommand & { provedHash: string | null },
): Promise<Registered> {
  const { data, security, origin } = context
  const { purpose } = link
  const joined =
    purpose === 'setup'
      ? await data.registrations.setUpOwner({ ...command, provedHash })
      : purpose === 'invite'
        ? await data.registrations.acceptInvite(command)
        : await data.registrations.resetPassword(command)
  if ('refused' in joined) throw new AppError(joined.refused)
  const accountId = data.accounts.findPerson(joined.personId)?.accountId ?? joined.personId
  if (joined.hasNewKey) noteAccount(context, accountId)
  if (purpose === 'setup') security.record('owner.set_up', origin, { accountId })
  if (purpose === 'reset') security.record('password.reset', origin, { accountId })
  if (purpose === 'invite') noteAccepted(context, link, accountId)
  return joined
}

/** A person with a session joins the account of an invitation, which the session shows then. */
export async function joinAccount(
  context: Registration,
  link: OneTimeLinkRow,
  session: { id: number; personId: PersonId },
): Promise<void> {
  const { data, clock } = context
  const { personId } = session
  const joined = await data.members.join({ tokenHash: link.hash, personId, now: clock() })
  if (joined === 'gone') throw new AppError('link_over')
  if (joined === 'full') throw new AppError('account_full')
  if (joined === 'wrong_person') {
    throw new AppError('invalid_value', `This invitation is for ${link.email}.`)
  }
  await data.members.open({ ...session, ...joined })
  noteAccepted(context, link, joined.accountId)
}

type Identity = IdentityKey & { email: string }

/**
 * Creates the person of an identity, who has no password. The reason if it is refused: see
 * `identities.signUp`. Throws `account_full`.
 */
export async function signUpWithProvider(
  context: Registration,
  invite: OneTimeLinkRow | undefined,
  identity: Identity,
): Promise<{ personId: PersonId; identityId: number } | 'taken' | 'gone'> {
  const { data, clock } = context
  const command = { ...identity, inviteHash: invite?.hash, now: clock() }
  const created = await data.identities.signUp(command)
  if (created === 'full') throw new AppError('account_full')
  if (typeof created === 'string') return created
  const { personId } = created
  const accountId = data.accounts.findPerson(personId)?.accountId ?? personId
  if (accountId === personId) noteAccount(context, accountId)
  if (invite) noteAccepted(context, invite, accountId)
  return created
}

/** Connects a user of the provider with a person, and notes it. */
export async function connectIdentity(
  { data, security, origin }: Registration,
  command: ConnectCommand,
): Promise<ConnectResult> {
  const connected = await data.identities.connect(command)
  const accountId = data.accounts.findPerson(command.personId)?.accountId
  if (typeof connected === 'object') security.record('identity.connected', origin, { accountId })
  return connected
}
