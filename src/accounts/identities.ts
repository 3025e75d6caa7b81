import type { Database } from 'bun:sqlite'
import { and, asc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sessions, identities as table } from '../db/people-schema.ts'
import { perConnection, subject, write } from '../db/subject.ts'
import { isFor } from './members.ts'
import { oneTimeLinkStore } from './one-time-links.ts'
import { sessionRows } from './sessions.ts'
import { accountStore, type PersonId } from './store.ts'

export type IdentityRow = typeof table.$inferSelect

/** What names a user of a provider for good. */
export type IdentityKey = Pick<IdentityRow, 'issuer' | 'subject'>
interface NewIdentity extends IdentityKey, Pick<IdentityRow, 'email'> {
  now: number
}

interface ConnectCommand extends NewIdentity {
  personId: PersonId
  byAddress?: boolean
}

/** Identities that one person has. */
const IDENTITIES_MAX = 5

/** `taken`: another person has the identity. `gone`: the person does not exist any more. */
type ConnectResult = { id: number } | 'taken' | 'too_many' | 'gone'

const isIdentity = ({ issuer, subject }: IdentityKey) =>
  and(eq(table.issuer, issuer), eq(table.subject, subject))

function identityReads(db: Database) {
  const orm = drizzle({ client: db })
  return {
    find: (key: IdentityKey): IdentityRow | undefined =>
      orm.select().from(table).where(isIdentity(key)).get(),

    /** Those of a person, the first connected first. */
    list: (personId: PersonId): IdentityRow[] =>
      orm.select().from(table).where(eq(table.personId, personId)).orderBy(asc(table.id)).all(),
  }
}

/** What the writes change, on one connection. */
const storesOf = perConnection((db) => ({
  accounts: accountStore(db),
  links: oneTimeLinkStore(db),
  sessions: sessionRows(db),
  ...identityReads(db),
  add({ now, ...identity }: NewIdentity & { personId: PersonId }): number {
    const orm = drizzle({ client: db })
    const row = { ...identity, createdAt: now }
    return orm.insert(table).values(row).returning({ id: table.id }).get().id
  },
}))

/** Users of the provider of OIDC, as which people sign in. */
export const identities = subject({
  reads: identityReads,

  writes: {
    /**
     * Connects an identity to a person. The same again changes nothing. `byAddress`: only because
     * the provider has verified the address. Nobody verified it when the person was created, so
     * that somebody else may know the password: it ends, with all sessions.
     */
    connect: write({
      since: 1,
      prepare(db) {
        const { accounts, links, sessions: rows, find, list, add } = storesOf(db)
        return (command: ConnectCommand): ConnectResult => {
          const { personId, byAddress = false, ...identity } = command
          const known = find(command)
          if (known) return known.personId === personId ? { id: known.id } : 'taken'
          if (!accounts.findPerson(personId)?.hasAccount) return 'gone'
          if (list(personId).length >= IDENTITIES_MAX) return 'too_many'
          if (byAddress) {
            accounts.changePerson(personId, { passwordHash: null })
            rows.endAll({ personId })
            links.endAll('reset', personId)
          }
          return { id: add({ ...identity, personId }) }
        }
      },
    }),

    /**
     * Disconnects an identity, and ends the sessions that were started with it. `needsAnother`:
     * the person cannot sign in with a password, so the last identity stays.
     */
    disconnect: write({
      since: 1,
      prepare(db) {
        const orm = drizzle({ client: db })
        const { list } = storesOf(db)
        return (command: {
          id: number
          personId: PersonId
          needsAnother: boolean
        }): 'done' | 'gone' | 'last' => {
          const { id, personId, needsAnother } = command
          const all = list(personId)
          if (!all.some((one) => one.id === id)) return 'gone'
          if (needsAnother && all.length === 1) return 'last'
          orm.delete(sessions).where(eq(sessions.identityId, id)).run()
          orm.delete(table).where(eq(table.id, id)).run()
          return 'done'
        }
      },
    }),

    /** Disconnects all identities of a person. Returns how many. For the command line. */
    disconnectAll: write({
      since: 1,
      prepare(db) {
        const orm = drizzle({ client: db })
        const { list } = storesOf(db)
        return ({ personId }: { personId: PersonId }): number => {
          const all = list(personId)
          for (const { id } of all) {
            orm.delete(sessions).where(eq(sessions.identityId, id)).run()
          }
          orm.delete(table).where(eq(table.personId, personId)).run()
          return all.length
        }
      },
    }),

    /**
     * Creates a person without a password, who signs in with the identity: as a member of the
     * account of an invitation, or with an account of the Free plan. `gone`: the invitation was
     * used, is too old, was withdrawn or is for another address. `full`: see `members.join`.
     */
    signUp: write({
      since: 1,
      prepare(db) {
        const { accounts, links, find, add } = storesOf(db)
        return (
          command: NewIdentity & { email: string; inviteHash: Uint8Array | undefined },
        ): { personId: PersonId; identityId: number } | 'taken' | 'gone' | 'full' => {
          const { email, inviteHash, now, issuer, subject } = command
          if (find(command) || accounts.findByEmail(email)) return 'taken'
          const link = inviteHash && links.findByHash('invite', inviteHash, now)
          if (inviteHash && (!link || !isFor(link.email, email))) return 'gone'
          if (link?.accountId && accounts.findById(link.accountId)?.disabledAt !== null) {
            return 'gone'
          }
          if (link?.accountId && accounts.isFull(link.accountId)) return 'full'
          const personId = link?.accountId
            ? accounts.createMember({
                email,
                accountId: link.accountId,
                role: link.role ?? 'admin',
                passwordHash: null,
                createdAt: now,
              })
            : accounts.create({ email, plan: link?.plan ?? 'free', now })
          if (personId === undefined) return 'taken'
          if (link) links.markUsed(link.id, now)
          return { personId, identityId: add({ issuer, subject, personId, email, now }) }
        }
      },
    }),
  },
})
