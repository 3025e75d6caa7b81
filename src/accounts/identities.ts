import type { Database } from 'bun:sqlite'
import { and, asc, eq, inArray } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sessions, identities as table } from '../db/schema.ts'
import { SettingStore } from '../db/settings.ts'
import { perConnection, subject, write } from '../db/subject.ts'
import { personCreator } from './new-person.ts'
import { isFor, oneTimeLinkStore } from './one-time-links.ts'
import { sessionRows } from './sessions.ts'
import { accountStore, disconnectionsOf, type PersonId, type PersonRow } from './store.ts'

export type IdentityRow = typeof table.$inferSelect

/** What names a user of a provider for good. */
export type IdentityKey = Pick<IdentityRow, 'issuer' | 'subject'>
interface NewIdentity extends IdentityKey, Pick<IdentityRow, 'email'> {
  now: number
}

export interface ConnectCommand extends NewIdentity {
  personId: PersonId
  /**
   * A session of the person, and `disconnections` when the provider named the identity, if that
   * was before the session; or only the address, which the provider has verified.
   */
  by: { sessionId: number; disconnections?: number } | 'address'
}

/** Identities that one person has. */
const IDENTITIES_MAX = 5

/**
 * `taken`: another person has the identity. `gone`: the person has no active account. `over`: the
 * session has ended, or the person was disconnected meanwhile. `known`: the address is not enough.
 */
export type ConnectResult = { id: number } | 'taken' | 'too_many' | 'gone' | 'over' | 'known'

const isIdentity = ({ issuer, subject }: IdentityKey) =>
  and(eq(table.issuer, issuer), eq(table.subject, subject))

function identityReads(db: Database) {
  const orm = drizzle({ client: db })
  const settings = new SettingStore(db)
  return {
    find: (key: IdentityKey): IdentityRow | undefined =>
      orm.select().from(table).where(isIdentity(key)).get(),

    /** Those of a person, the first connected first. */
    list: (personId: PersonId): IdentityRow[] =>
      orm.select().from(table).where(eq(table.personId, personId)).orderBy(asc(table.id)).all(),

    /** How often the person was disconnected: a sign-in that began before connects nothing. */
    disconnections: (personId: PersonId): number =>
      Number(settings.findByName(disconnectionsOf(personId)) ?? 0),
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
  disconnect(personId: PersonId, ids: readonly number[]): void {
    const orm = drizzle({ client: db })
    orm.delete(sessions).where(inArray(sessions.identityId, ids)).run()
    orm.delete(table).where(inArray(table.id, ids)).run()
    const count = identityReads(db).disconnections(personId) + 1
    new SettingStore(db).set(disconnectionsOf(personId), String(count))
  },
}))

/**
 * Returns the rule whom an address alone connects: somebody else may have created the person, and
 * must have no other way to what the person owns than the password and its sessions, which end.
 */
function addressRule(db: Database) {
  const { accounts, links, list } = storesOf(db)
  return ({ id, isOwner, totpSecret }: PersonRow, now: number): boolean =>
    isOwner === 0 &&
    totpSecret === null &&
    list(id).length === 0 &&
    accounts
      .listAccountsOf(id)
      .every(
        ({ id: accountId }) =>
          accounts.listMembers(accountId).length === 1 &&
          accounts.listKeys(accountId, now).length === 0 &&
          links.listInvites(now, accountId).length === 0,
      )
}

/** Users of the provider of OIDC, as which people sign in. */
export const identities = subject({
  reads: identityReads,

  writes: {
    /**
     * Connects an identity to a person. The same again changes nothing. With the address alone,
     * which nobody verified when the person was created, the password ends, with all sessions.
     */
    connect: write((db) => {
      const { accounts, links, sessions: rows, find, list, add, disconnections } = storesOf(db)
      const isEnough = addressRule(db)
      return (command: ConnectCommand): ConnectResult => {
        const { personId, by, ...identity } = command
        const known = find(command)
        if (known) return known.personId === personId ? { id: known.id } : 'taken'
        const person = accounts.findPerson(personId)
        if (!person?.hasAccount) return 'gone'
        if (by === 'address') {
          if (!isEnough(person, command.now)) return 'known'
          accounts.changePerson(personId, { passwordHash: null })
          rows.endAll({ personId })
          links.endAll('reset', personId)
        } else {
          const { sessionId: id, disconnections: before = disconnections(personId) } = by
          const isCurrent = before === disconnections(personId)
          if (!isCurrent || !rows.isActive({ id, personId })) return 'over'
        }
        if (list(personId).length >= IDENTITIES_MAX) return 'too_many'
        return { id: add({ ...identity, personId }) }
      }
    }),

    /**
     * Disconnects an identity, and ends the sessions that were started with it. `needsAnother`:
     * the person cannot sign in with a password, so the last identity stays.
     */
    disconnect: write((db) => {
      const { list, disconnect } = storesOf(db)
      return (command: {
        id: number
        personId: PersonId
        needsAnother: boolean
      }): 'done' | 'gone' | 'last' => {
        const { id, personId, needsAnother } = command
        const all = list(personId)
        if (!all.some((one) => one.id === id)) return 'gone'
        if (needsAnother && all.length === 1) return 'last'
        disconnect(personId, [id])
        return 'done'
      }
    }),

    /** Disconnects all identities of a person. Returns how many. For the command line. */
    disconnectAll: write((db) => {
      const { list, disconnect } = storesOf(db)
      return ({ personId }: { personId: PersonId }): number => {
        const ids = list(personId).map(({ id }) => id)
        disconnect(personId, ids)
        return ids.length
      }
    }),

    /**
     * The provider has another name: its users stay connected. Returns how many. `taken`: under the
     * new name, another person is connected with one of them.
     */
    renameIssuer: write((db) => {
      const taken = db.prepare<object, [string, string]>(
        `SELECT 1 FROM identities AS old JOIN identities AS new USING (subject)
         WHERE old.issuer = ?1 AND new.issuer = ?2 AND new.person_id <> old.person_id`,
      )
      // Of a person who has both, one stays, and the sessions of the other one end.
      const rename = db.prepare<null, [string, string]>(
        'UPDATE OR REPLACE identities SET issuer = ?2 WHERE issuer = ?1',
      )
      const endOthers = db.prepare<null, []>(
        'DELETE FROM sessions WHERE identity_id NOT IN (SELECT id FROM identities)',
      )
      return ({ from, to }: { from: string; to: string }): number | 'taken' => {
        if (taken.get(from, to) !== null) return 'taken'
        const { changes } = rename.run(from, to)
        endOthers.run()
        return changes
      }
    }),

    /**
     * Creates a person without a password, who signs in with the identity: as a member of the
     * account of an invitation, or with an account of the Free plan. `gone`: the invitation was
     * used, is too old, was withdrawn or is for another address. `full`: see `members.join`.
     */
    signUp: write((db) => {
      const { accounts, links, find, add } = storesOf(db)
      const create = personCreator(db)
      return (
        command: NewIdentity & { email: string; inviteHash: Uint8Array | undefined },
      ): { personId: PersonId; identityId: number } | 'taken' | 'gone' | 'full' => {
        const { email, inviteHash, now, issuer, subject } = command
        if (find(command) || accounts.findByEmail(email)) return 'taken'
        const link = inviteHash && links.findByHash('invite', inviteHash, now)
        if (inviteHash && (!link || !isFor(link.email, email))) return 'gone'
        const created = create({ link, email, passwordHash: null, now })
        if ('refused' in created) return created.refused === 'account_full' ? 'full' : 'gone'
        const { personId } = created
        return { personId, identityId: add({ issuer, subject, personId, email, now }) }
      }
    }),
  },
})
