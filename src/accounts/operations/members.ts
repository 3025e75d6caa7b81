import type { Database } from 'bun:sqlite'
import { and, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { memberOf } from '../../db/author.ts'
import { memberships, oneTimeLinks, people, sessions } from '../../db/schema.ts'
import {
  type Authored,
  authoredWrite,
  type DataOf,
  perConnection,
  subject,
  write,
} from '../../db/subject.ts'
import { AppError } from '../../errors.ts'
import { isFor, issueOneTimeLink, oneTimeLinkStore, type SentLink } from '../one-time-links.ts'
import {
  type AccountId,
  type AccountStore,
  accountStore,
  MEMBERS_MAX,
  type PersonId,
  type Role,
} from '../store.ts'
import { type Actor, authorFor, type Kit, personOf } from './actor.ts'

/** Pending invitations that create an account, of the whole service. */
const INVITES_MAX = 100

interface MemberKey {
  accountId: AccountId
  personId: PersonId
}

type Refusal = 'not_a_member' | 'last_admin' | 'last_owner'

type InviteRefusal =
  | { refused: 'email_taken' | 'member_exists'; detail: string }
  | { refused: 'too_many_members' | 'too_many_invitations'; detail: number }

type Invitation = Parameters<ReturnType<typeof oneTimeLinkStore>['add']>[0]

/** Ends a membership, and with it the person's sessions there and the invitations they sent. */
const memberRemover = perConnection((db) => {
  const orm = drizzle({ client: db })
  const accounts = accountStore(db)
  return ({ accountId, personId }: MemberKey): Refusal | 'done' => {
    const all = accounts.listMembers(accountId)
    const member = all.find(({ id }) => id === personId)
    if (!member) return 'not_a_member'
    if (member.role === 'admin' && all.filter(({ role }) => role === 'admin').length === 1) {
      return 'last_admin'
    }
    const isLast = accounts.listAccountsOf(personId).length === 1
    if (isLast && member.isOwner === 1 && accounts.listOwners().length === 1) return 'last_owner'
    for (const table of [memberships, sessions, oneTimeLinks]) {
      const isTheirs = and(eq(table.accountId, accountId), eq(table.personId, personId))
      orm.delete(table).where(isTheirs).run()
    }
    if (isLast) accounts.removePerson(personId)
    return 'done'
  }
})

/** Why an invitation exceeds a limit, or is for somebody who needs none. */
const inviteRefusals = perConnection((db) => {
  const accounts = accountStore(db)
  const links = oneTimeLinkStore(db)
  return ({
    author,
    link: { email },
  }: Authored & { link: Invitation }): InviteRefusal | undefined => {
    const { accountId, now } = author
    const isSame = (one: { email: string }) => email && isFor(email, one.email)
    if (accountId === 0) {
      if (email && accounts.findByEmail(email)) return { refused: 'email_taken', detail: email }
      const isFull = links.listInvites(now).length >= INVITES_MAX
      return isFull ? { refused: 'too_many_invitations', detail: INVITES_MAX } : undefined
    }
    const members = accounts.listMembers(accountId)
    if (email && members.some(isSame)) return { refused: 'member_exists', detail: email }
    const isFull = members.length + links.listInvites(now, accountId).length >= MEMBERS_MAX
    return isFull ? { refused: 'too_many_members', detail: MEMBERS_MAX } : undefined
  }
})

/** Who may open which account, and who is invited. */
export const members = subject({
  writes: {
    /** Undefined if it was stored. The account 0: it creates an account. */
    invite: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
        const refusalOf = inviteRefusals(db)
        const links = oneTimeLinkStore(db)
        return (command: Authored & { link: Invitation }): InviteRefusal | undefined => {
          const refusal = refusalOf(command)
          if (!refusal) links.add(command.link)
          return refusal
        }
      },
    }),

    /** False if there is no such invitation to the account. */
    withdraw: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
        const links = oneTimeLinkStore(db)
        return ({ author, id }: Authored & { id: number }): boolean =>
          links.endInvite(id, author.accountId || null)
      },
    }),

    /**
     * Uses an invitation to an account for a person who exists already. `gone`: it was used, is too
     * old or was withdrawn. `full`: the account has as many members as it can have.
     */
    join: write({
      since: 1,
      prepare(db) {
        const accounts = accountStore(db)
        const links = oneTimeLinkStore(db)
        return (command: {
          tokenHash: Uint8Array
          personId: PersonId
          now: number
        }): { accountId: AccountId } | 'gone' | 'wrong_person' | 'full' => {
          const { tokenHash, personId, now } = command
          const link = links.findByHash('invite', tokenHash, now)
          const person = accounts.findPerson(personId)
          if (!link?.accountId || !person) return 'gone'
          if (!isFor(link.email, person.email)) return 'wrong_person'
          const { accountId, role } = link
          if (accounts.findById(accountId)?.disabledAt !== null) return 'gone'
          const isNew = !isMember(accounts, { accountId, personId })
          if (isNew && accounts.isFull(accountId)) return 'full'
          links.markUsed(link.id, now)
          if (isNew) {
            accounts.addMember({ accountId, personId, role: role ?? 'admin', createdAt: now })
          }
          return { accountId }
        }
      },
    }),

    /** A person who is in no other account is removed. The last admin of an account stays. */
    remove: authoredWrite({
      since: 1,
      least: 'admin',
      prepare(db) {
        const remove = memberRemover(db)
        return ({ author, personId }: Authored & { personId: PersonId }): Refusal | 'done' =>
          remove({ accountId: author.accountId, personId })
      },
    }),

    /** The author removes themselves. */
    leave: authoredWrite({
      since: 1,
      least: 'viewer',
      prepare(db) {
        const remove = memberRemover(db)
        return ({ author: { accountId, by } }: Authored): Refusal | 'done' =>
          remove({ accountId, personId: memberOf(by) })
      },
    }),

    /**
     * Changes what a member may do; it applies to their next request. The invitations that a former
     * admin has sent end. The last admin of an account stays one.
     */
    setRole: authoredWrite({
      since: 1,
      least: 'admin',
      prepare: roleSetter,
    }),

    /** The pages of a session show another account of its person. False if they are no member. */
    open: write({
      since: 1,
      prepare(db) {
        const orm = drizzle({ client: db })
        const accounts = accountStore(db)
        return ({ id, accountId, personId }: MemberKey & { id: number }): boolean => {
          const isTheirs = and(eq(sessions.id, id), eq(sessions.personId, personId))
          if (!isMember(accounts, { accountId, personId })) return false
          if (accounts.findById(accountId)?.disabledAt !== null) return false
          orm.update(sessions).set({ accountId }).where(isTheirs).run()
          orm.update(people).set({ accountId }).where(eq(people.id, personId)).run()
          return true
        }
      },
    }),
  },
})

function roleSetter(db: Database) {
  const orm = drizzle({ client: db })
  const accounts = accountStore(db)
  return (command: Authored & { personId: PersonId; role: Role }): Refusal | 'done' => {
    const { author, personId, role } = command
    const { accountId } = author
    const all = accounts.listMembers(accountId)
    if (!all.some(({ id }) => id === personId)) return 'not_a_member'
    if (role !== 'admin') {
      const isOther = (one: (typeof all)[number]) => one.role === 'admin' && one.id !== personId
      if (!all.some(isOther)) return 'last_admin'
      const { accountId: to, personId: sender } = oneTimeLinks
      const isTheirs = and(eq(to, accountId), eq(sender, personId))
      orm.delete(oneTimeLinks).where(isTheirs).run()
    }
    const { accountId: of, personId: who } = memberships
    const isMembership = and(eq(of, accountId), eq(who, personId))
    orm.update(memberships).set({ role }).where(isMembership).run()
    return 'done'
  }
}

const isMember = (accounts: AccountStore, { accountId, personId }: MemberKey): boolean =>
  accounts.listAccountsOf(personId).some(({ id }) => id === accountId)

type MemberKit = Kit & { data: DataOf<{ members: typeof members }> }

async function sendInvite(
  kit: MemberKit,
  actor: Actor,
  accountId: AccountId,
  about: Pick<Invitation, 'email' | 'role' | 'plan'>,
): Promise<SentLink> {
  const author = authorFor(kit, actor, accountId)
  const sender = { personId: personOf(actor.by), accountId: accountId || null }
  const invitation = { purpose: 'invite', ...sender, ...about } as const
  const { stored: link, ...sent } = issueOneTimeLink(kit, invitation, author.now)
  const refusal = await kit.data.members.invite({ author, link })
  if (refusal) throw new AppError(refusal.refused, String(refusal.detail))
  const { plan } = about
  actor.note('invite.created', accountId, plan ? { plan } : {})
  return sent
}

/** Invites somebody to an account. Throws `member_exists`, `too_many_members`. */
export const invite = (
  kit: MemberKit,
  actor: Actor,
  { accountId, ...about }: { accountId: AccountId; email: string; role: Role },
): Promise<SentLink> => sendInvite(kit, actor, accountId, about)

/** Invites a guest, who creates an account. Throws `email_taken`, `too_many_invitations`. */
export const inviteGuest = (
  kit: MemberKit,
  actor: Actor,
  about: Pick<Invitation, 'email' | 'plan'>,
): Promise<SentLink> => sendInvite(kit, actor, 0, about)

/** Of the account, or of those that create one: 0. */
export async function withdrawInvite(
  kit: MemberKit,
  actor: Actor,
  { accountId, id }: { accountId: AccountId; id: number },
): Promise<void> {
  const command = { author: authorFor(kit, actor, accountId), id }
  if (!Number.isSafeInteger(id) || !(await kit.data.members.withdraw(command))) return
  actor.note('invite.withdrawn', accountId, { invite_id: id })
}

/** Throws `not_a_member`, `last_admin`. */
export async function changeRole(
  kit: MemberKit,
  actor: Actor,
  { accountId, personId, role }: MemberKey & { role: Role },
): Promise<void> {
  const author = authorFor(kit, actor, accountId)
  requireDone(await kit.data.members.setRole({ author, personId, role }))
  actor.note('member.role_changed', accountId, { member_id: personId, role })
}

/** Throws `not_a_member`, `last_admin`, `last_owner`. */
export async function removeMember(
  kit: MemberKit,
  actor: Actor,
  { accountId, personId }: MemberKey,
): Promise<void> {
  const author = authorFor(kit, actor, accountId)
  requireDone(await kit.data.members.remove({ author, personId }))
  actor.note('member.removed', accountId, { member_id: personId })
}

/** The actor leaves an account. Throws `not_a_member`, `last_admin`, `last_owner`. */
export async function leave(kit: MemberKit, actor: Actor, accountId: AccountId): Promise<void> {
  requireDone(await kit.data.members.leave({ author: authorFor(kit, actor, accountId) }))
  actor.note('member.left', accountId, { member_id: memberOf(actor.by) })
}

function requireDone(result: Refusal | 'done'): void {
  if (result !== 'done') throw new AppError(result)
}
