import type { Database } from 'bun:sqlite'
import { and, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { type Author, memberOf } from '../../db/author.ts'
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
import type { Asked } from './asked.ts'

/** Pending invitations that create an account, of the whole service. */
const INVITES_MAX = 100

interface MemberKey {
  accountId: AccountId
  personId: PersonId
}

type Refusal = 'not_a_member' | 'last_admin' | 'last_owner'

type InviteRefusal = [
  'email_taken' | 'member_exists' | 'too_many_members' | 'too_many_invitations',
  detail: string | number,
]

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

/** Who may open which account, and who is invited. */
export const members = subject({
  writes: {
    /** Why the invitation is refused; undefined: it was stored. Account 0: it creates one. */
    invite: authoredWrite('admin', inviter),

    /** False if there is no such invitation to the account. */
    withdraw: authoredWrite(
      'admin',
      (db) =>
        ({ author, id }: Authored & { id: number }): boolean =>
          oneTimeLinkStore(db).endInvite(id, author.accountId || null),
    ),

    /**
     * Uses an invitation to an account for a person who exists already. `gone`: it was used, is too
     * old or was withdrawn. `full`: the account has as many members as it can have.
     */
    join: write((db) => {
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
    }),

    /** A person who is in no other account is removed. The last admin of an account stays. */
    remove: authoredWrite(
      'admin',
      (db) =>
        ({ author, personId }: Authored & { personId: PersonId }) =>
          memberRemover(db)({ accountId: author.accountId, personId }),
    ),

    /** The author removes themselves. */
    leave: authoredWrite(
      'viewer',
      (db) =>
        ({ author: { accountId, by } }: Authored) =>
          memberRemover(db)({ accountId, personId: memberOf(by) }),
    ),

    /**
     * Changes what a member may do; it applies to their next request. The invitations that a former
     * admin has sent end. The last admin of an account stays one.
     */
    setRole: authoredWrite('admin', roleSetter),

    /** The pages of a session show another account of its person. False if they are no member. */
    open: write((db) => {
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
    }),
  },
})

function inviter(db: Database) {
  const accounts = accountStore(db)
  const links = oneTimeLinkStore(db)
  const refusalOf = (
    { accountId, now }: Author,
    email: string | null | undefined,
  ): InviteRefusal | undefined => {
    const pending = links.listInvites(now, accountId || null).length
    if (accountId === 0) {
      if (email && accounts.findByEmail(email)) return ['email_taken', email]
      return pending >= INVITES_MAX ? ['too_many_invitations', INVITES_MAX] : undefined
    }
    const members = accounts.listMembers(accountId)
    if (email && members.some((one) => isFor(email, one.email))) return ['member_exists', email]
    return members.length + pending >= MEMBERS_MAX ? ['too_many_members', MEMBERS_MAX] : undefined
  }
  return ({ author, link }: Authored & { link: Invitation }): InviteRefusal | undefined => {
    const refusal = refusalOf(author, link.email)
    if (!refusal) links.add({ ...link, accountId: author.accountId || null })
    return refusal
  }
}

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

type Asking = Asked<DataOf<{ members: typeof members }>>

/**
 * Invites somebody to the account; of the account 0: a guest, who creates one. Throws
 * `member_exists`, `too_many_members`, `email_taken`, `too_many_invitations`.
 */
export async function invite(
  asked: Asking,
  about: Pick<Invitation, 'email' | 'role' | 'plan'>,
): Promise<SentLink> {
  const { data, author, note } = asked
  const { by, now } = author
  const personId = typeof by === 'object' && 'ownerId' in by ? by.ownerId : memberOf(by) || null
  const invitation = { purpose: 'invite', personId, ...about } as const
  const { stored: link, ...sent } = issueOneTimeLink(asked, invitation, now)
  const [refusal, detail] = (await data.members.invite({ author, link })) ?? []
  if (refusal) throw new AppError(refusal, String(detail))
  note('invite.created', about.plan ? { plan: about.plan } : {})
  return sent
}

export async function withdrawInvite({ data, author, note }: Asking, id: number): Promise<void> {
  const isEnded = Number.isSafeInteger(id) && (await data.members.withdraw({ author, id }))
  if (isEnded) note('invite.withdrawn', { invite_id: id })
}

/** Throws `not_a_member`, `last_admin`. */
export async function changeRole(
  { data, author, note }: Asking,
  { personId, role }: { personId: PersonId; role: Role },
): Promise<void> {
  requireDone(await data.members.setRole({ author, personId, role }))
  note('member.role_changed', { member_id: personId, role })
}

/**
 * Removes a member; members can remove themselves. Throws `not_a_member`, `last_admin`,
 * `last_owner`.
 */
export async function removeMember(
  { data, author, note }: Asking,
  personId: PersonId,
): Promise<void> {
  const isOwn = memberOf(author.by) === personId
  const { leave, remove } = data.members
  requireDone(await (isOwn ? leave({ author }) : remove({ author, personId })))
  note(isOwn ? 'member.left' : 'member.removed', { member_id: personId })
}

function requireDone(result: Refusal | 'done'): void {
  if (result !== 'done') throw new AppError(result)
}
