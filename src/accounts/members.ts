import { and, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { memberships, oneTimeLinks, people, sessions } from '../db/schema.ts'
import { subject, write } from '../db/subject.ts'
import { oneTimeLinkStore } from './one-time-links.ts'
import {
  type AccountId,
  type AccountStore,
  accountStore,
  type PersonId,
  type Role,
} from './store.ts'

interface MemberKey {
  accountId: AccountId
  personId: PersonId
}

/** `gone`: the member is not there any more, or `by` is no admin any more. */
type MemberResult = RoleResult | 'last_owner'
type RoleResult = 'done' | 'gone' | 'last_admin'

/** Who may open which account. */
export const members = subject({
  writes: {
    /**
     * Uses an invitation to an account for a person who exists already. `gone`: it was used, is too
     * old or was withdrawn. `full`: the account has as many members as it can have.
     */
    join: write({
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

    /**
     * Ends a membership, the person's sessions in the account and the invitations to it that they
     * have sent. A person who is in no other account is removed. `by`: the admin who does it;
     * null for the operator of the service. The last admin of an account stays.
     */
    remove: write({
      prepare(db) {
        const orm = drizzle({ client: db })
        const accounts = accountStore(db)
        return ({ accountId, personId, by }: MemberKey & { by: PersonId | null }): MemberResult => {
          const all = accounts.listMembers(accountId)
          const admins = all.filter(({ role }) => role === 'admin').map(({ id }) => id)
          const member = all.find(({ id }) => id === personId)
          const isAllowed = by === null || by === personId || admins.includes(by)
          if (!member || !isAllowed) return 'gone'
          if (member.role === 'admin' && admins.length === 1) return 'last_admin'
          const isLast = accounts.listAccountsOf(personId).length === 1
          if (isLast && member.isOwner === 1 && accounts.listOwners().length === 1) {
            return 'last_owner'
          }
          for (const table of [memberships, sessions, oneTimeLinks]) {
            const isTheirs = and(eq(table.accountId, accountId), eq(table.personId, personId))
            orm.delete(table).where(isTheirs).run()
          }
          if (isLast) accounts.removePerson(personId)
          return 'done'
        }
      },
    }),

    /**
     * Changes what a member may do; it applies to their next request. The invitations that a former
     * admin has sent end. `by`: the admin who does it; null for the operator of the service. The
     * last admin of an account stays one.
     */
    setRole: write({
      prepare(db) {
        const orm = drizzle({ client: db })
        const accounts = accountStore(db)
        return (command: MemberKey & { role: Role; by: PersonId | null }): RoleResult => {
          const { accountId, personId, role, by } = command
          const all = accounts.listMembers(accountId)
          const admins = all.filter((one) => one.role === 'admin').map(({ id }) => id)
          const isAllowed = by === null || admins.includes(by)
          if (!isAllowed || !all.some(({ id }) => id === personId)) return 'gone'
          if (role !== 'admin') {
            if (admins.every((id) => id === personId)) return 'last_admin'
            const { accountId: to, personId: sender } = oneTimeLinks
            const isTheirs = and(eq(to, accountId), eq(sender, personId))
            orm.delete(oneTimeLinks).where(isTheirs).run()
          }
          const isMembership = and(
            eq(memberships.accountId, accountId),
            eq(memberships.personId, personId),
          )
          orm.update(memberships).set({ role }).where(isMembership).run()
          return 'done'
        }
      },
    }),

    /** The pages of a session show another account of its person. False if they are no member. */
    open: write({
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

const isMember = (accounts: AccountStore, { accountId, personId }: MemberKey): boolean =>
  accounts.listAccountsOf(personId).some(({ id }) => id === accountId)

/** Whether an invitation with this address, or without one, is for the person. */
export const isFor = (invited: string | null, email: string): boolean =>
  invited === null || invited.toLowerCase() === email.toLowerCase()
