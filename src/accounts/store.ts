import type { Database } from 'bun:sqlite'
import { and, asc, count, desc, eq, getTableColumns, gt, isNull, or, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import type { By } from '../db/author.ts'
import { inTransaction } from '../db/open.ts'
import {
  accounts,
  apiKeys,
  identities,
  memberships,
  oneTimeLinks,
  people,
  recoveryCodes,
  sessions,
} from '../db/schema.ts'
import { perConnection } from '../db/subject.ts'
import { assert } from '../lib/assert.ts'
import { DAY } from '../lib/clock.ts'
import type { Plan } from './plans.ts'

/** Members of an account at most, with those who are invited. */
export const MEMBERS_MAX = 100

/** Minimum retention of expired keys, for the last-used column of the account list. */
const EXPIRED_KEYS_KEPT_MS = 30 * DAY

/** Expired keys kept per account: creating and expiring keys in a loop must not fill the disk. */
const EXPIRED_KEYS_MAX = 100

export type AccountId = number
export type PersonId = number

/** The columns of a key that its owner may see. */
export type KeyRow = Omit<typeof apiKeys.$inferSelect, 'accountId' | 'hash'>

export type KeyScope = KeyRow['scope']

/** The account of a request, and who sends it. */
export interface Account {
  id: AccountId
  plan: Plan
  by: By
}

/** An account with the API key of a request. */
export interface KeyHolder extends Account {
  by: { keyId: number }
  keyScope: KeyScope
  perMinute: number | null
  origins: readonly string[]
}

/** Flags are 0 and 1. db/schema.ts explains each column. */
export type AccountRow = typeof accounts.$inferSelect

/** `hasAccount` is 1 for a member of an account that is not disabled. */
export type PersonRow = typeof people.$inferSelect & { hasAccount: number }

/** The setting that counts how often a person was disconnected from the sign-in provider. */
export const disconnectionsOf = (id: PersonId): string => `disconnections of person ${id}`

export type Role = (typeof memberships.$inferSelect)['role']

/** A person in the list of an account's members. */
export type MemberRow = Pick<
  PersonRow,
  'id' | 'email' | 'isOwner' | 'passwordChangedAt' | 'totpEnabledAt'
> & { role: Role; createdAt: number }

/** An account in the list of a person's accounts. */
export type OwnAccountRow = Pick<AccountRow, 'id' | 'name'> & { role: Role }

/** What the creator of a key decides. */
export type KeyLabel = Pick<KeyRow, 'name' | 'scope'> &
  Partial<Pick<KeyRow, 'perMinute' | 'origins'>>

export type NewKey = KeyLabel &
  Pick<KeyRow, 'prefix' | 'lastFour'> & {
    hash: Uint8Array
    createdBy?: string | null
  }

type NewPerson = Pick<PersonRow, 'id' | 'email' | 'accountId' | 'createdAt' | 'passwordHash'> & {
  role: Role
  isOwner?: number
}

/** A new person with an account of the same id. */
export interface NewAccount {
  email: string
  /** Absent: the e-mail address. */
  accountName?: string | undefined
  plan: Plan
  /** Its first API key. */
  key?: NewKey
  now: number
  /** Absent if the person signs in to the dashboard by a one-time link only. */
  passwordHash?: string | null
  isOwner?: boolean
}

const NO_ORIGINS: readonly string[] = []

const PERSON = {
  ...getTableColumns(people),
  hasAccount: sql<number>`EXISTS (
    SELECT 1 FROM memberships JOIN accounts ON accounts.id = memberships.account_id
    WHERE person_id = people.id AND disabled_at IS NULL)`,
}

/**
 * Reads accounts, their members and their keys. Times are epoch ms. Letter case makes no difference
 * in e-mail addresses.
 */
export class AccountReads {
  #hasOwner = false
  readonly #orm
  readonly #byKeyHash
  readonly #byOrigin
  readonly #byEmail
  readonly #byId
  readonly #personById
  readonly #accountsOf

  constructor(db: Database) {
    this.#orm = drizzle({ client: db })
    const hasEmail = sql`lower(${people.email}) = lower(${sql.placeholder('email')})`
    this.#byEmail = this.#orm.select(PERSON).from(people).where(hasEmail).prepare()
    // Every page of the dashboard runs the next three.
    const hasId = (column: typeof accounts.id | typeof people.id) =>
      eq(column, sql.placeholder('id'))
    this.#byId = this.#orm.select().from(accounts).where(hasId(accounts.id)).prepare()
    this.#personById = this.#orm.select(PERSON).from(people).where(hasId(people.id)).prepare()
    this.#accountsOf = this.#orm
      .select({ id: accounts.id, name: accounts.name, role: memberships.role })
      .from(memberships)
      .innerJoin(accounts, eq(accounts.id, memberships.accountId))
      .where(eq(memberships.personId, sql.placeholder('personId')))
      .orderBy(asc(memberships.createdAt), asc(accounts.id))
      .prepare()
    // Raw SQL, because every request with a key runs it. A JOIN takes five times as long
    // (decision 001).
    this.#byKeyHash = db.prepare<
      Pick<KeyHolder, 'id' | 'keyScope' | 'perMinute'> & {
        keyId: number
        plan: Plan | null
        origins: string | null
      },
      [Buffer, number]
    >(
      `SELECT account_id AS id, id AS keyId, scope AS keyScope, per_minute AS perMinute, origins,
         (SELECT plan FROM accounts WHERE id = account_id AND disabled_at IS NULL) AS plan
       FROM api_keys WHERE hash = ?1 AND (ends_at IS NULL OR ends_at > ?2)`,
    )
    this.#byOrigin = db.prepare<object, [string, number]>(
      `SELECT 1 FROM api_keys, json_each(origins)
       WHERE origins IS NOT NULL AND value = ?1 AND (ends_at IS NULL OR ends_at > ?2)
         AND EXISTS (SELECT 1 FROM accounts WHERE id = account_id AND disabled_at IS NULL)
       LIMIT 1`,
    )
  }

  /** The account with this key, if it is not disabled and the key is active at `now`. */
  findByKeyHash(hash: Buffer, now: number): KeyHolder | undefined {
    const found = this.#byKeyHash.get(hash, now)
    if (!found?.plan) return undefined
    const { id, plan, keyId, keyScope, perMinute } = found
    const origins = found.origins === null ? NO_ORIGINS : JSON.parse(found.origins)
    return { id, plan, keyScope, perMinute, origins, by: { keyId } }
  }

  /** Whether a key that is active at `now` may be used by pages of this origin. */
  isOriginOfKey(origin: string, now: number): boolean {
    return this.#byOrigin.get(origin, now) !== null
  }

  findByEmail(email: string): PersonRow | undefined {
    return this.#byEmail.get({ email })
  }

  findPerson(id: PersonId): PersonRow | undefined {
    return this.#personById.get({ id })
  }

  /** The first members first. */
  listMembers(accountId: AccountId): MemberRow[] {
    const { id, email, isOwner, passwordChangedAt, totpEnabledAt } = people
    const { role, createdAt } = memberships
    return this.#orm
      .select({ id, email, isOwner, passwordChangedAt, totpEnabledAt, role, createdAt })
      .from(memberships)
      .innerJoin(people, eq(id, memberships.personId))
      .where(eq(memberships.accountId, accountId))
      .orderBy(asc(createdAt), asc(id))
      .all()
  }

  /** Whether nobody can join the account. */
  isFull(accountId: AccountId): boolean {
    return this.listMembers(accountId).length >= MEMBERS_MAX
  }

  /** The accounts that a person is a member of, also disabled ones; the first joined first. */
  listAccountsOf(personId: PersonId): OwnAccountRow[] {
    return this.#accountsOf.all({ personId })
  }

  findById(id: AccountId): AccountRow | undefined {
    return this.#byId.get({ id })
  }

  /** The accounts with this name, in any letter case, or the one with this number. */
  listByName(text: string): AccountRow[] {
    const isIt = or(sql`lower(name) = lower(${text})`, sql`CAST(id AS TEXT) = ${text}`)
    const isNamed = and(isNull(accounts.deletedAt), isIt)
    return this.#orm.select().from(accounts).where(isNamed).limit(10).all()
  }

  isEmpty(): boolean {
    return this.#orm.select({ n: count() }).from(accounts).get()?.n === 0
  }

  /** Owners of the service who are members of an account that is not disabled. */
  listOwners(): PersonRow[] {
    const owners = this.#orm.select(PERSON).from(people).where(eq(people.isOwner, 1)).all()
    return owners.filter(({ hasAccount }) => hasAccount === 1)
  }

  /** Remembered once true: the last owner can be neither disabled nor deleted. */
  hasOwner(): boolean {
    this.#hasOwner ||= this.listOwners().length > 0
    return this.#hasOwner
  }

  /**
   * Every owner of the service signs in by this account only: it can be neither disabled nor
   * deleted.
   */
  isLastOwner(id: AccountId): boolean {
    const active = this.#orm
      .select({ accountId: memberships.accountId })
      .from(memberships)
      .innerJoin(people, eq(people.id, memberships.personId))
      .innerJoin(accounts, eq(accounts.id, memberships.accountId))
      .where(and(eq(people.isOwner, 1), isNull(accounts.disabledAt)))
      .all()
    return active.length > 0 && active.every(({ accountId }) => accountId === id)
  }

  /** The oldest first. `after`: an id. */
  list({ after, limit }: { after: number; limit: number }): AccountRow[] {
    const isListed = and(isNull(accounts.deletedAt), gt(accounts.id, after))
    const query = this.#orm.select().from(accounts).where(isListed)
    return query.orderBy(asc(accounts.id)).limit(limit).all()
  }

  /** Accounts whose deletion has begun and is not finished. */
  listDeleted(): AccountId[] {
    const isDeleted = sql`${accounts.deletedAt} IS NOT NULL`
    const rows = this.#orm.select({ id: accounts.id }).from(accounts).where(isDeleted).all()
    return rows.map(({ id }) => id)
  }

  /** Keys active at `now`, also those that will expire; newest first. */
  listKeys(id: AccountId, now: number): KeyRow[] {
    const { id: keyId, accountId, hash, ...shown } = getTableColumns(apiKeys)
    return this.#orm
      .select({ id: keyId, ...shown })
      .from(apiKeys)
      .where(and(eq(apiKeys.accountId, id), isActive(now)))
      .orderBy(desc(apiKeys.id))
      .all()
  }
}

/** Changes accounts, people and keys, inside a transaction of the caller. */
export class AccountStore extends AccountReads {
  readonly #db: Database
  readonly #orm

  constructor(db: Database) {
    super(db)
    this.#db = db
    this.#orm = drizzle({ client: db })
  }

  /** The id of both. Undefined, and nothing is stored, if the e-mail address is in use. */
  create(account: NewAccount): AccountId | undefined {
    const { email, plan, key, now, passwordHash = null, isOwner = false } = account
    const name = account.accountName ?? email
    return inTransaction(this.#db, () => {
      if (this.findByEmail(email)) return undefined
      const id = this.addAccount({ name, plan, createdAt: now, isOwner: isOwner ? 1 : 0 })
      const person = { id, email, accountId: id, createdAt: now, passwordHash }
      this.#addPerson({ ...person, role: 'admin', isOwner: isOwner ? 1 : 0 })
      if (key) this.addKey(id, key, now)
      return id
    })
  }

  /**
   * A new person who is a member of an existing account. Undefined, and nothing is stored, if the
   * e-mail address is in use.
   */
  createMember(member: Omit<NewPerson, 'id'>): PersonId | undefined {
    return inTransaction(this.#db, () => {
      if (this.findByEmail(member.email)) return undefined
      // Accounts and people share one sequence of ids: decision 068.
      const next = this.#db.query<{ seq: number }, []>(
        `UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'accounts' RETURNING seq`,
      )
      const id = next.get()?.seq
      assert(id, 'the account of the member has an id')
      this.#addPerson({ ...member, id })
      return id
    })
  }

  #addPerson({ role, ...person }: NewPerson): void {
    const { id: personId, accountId, createdAt } = person
    const passwordChangedAt = person.passwordHash ? createdAt : null
    this.#orm
      .insert(people)
      .values({ ...person, passwordChangedAt })
      .run()
    this.addMember({ accountId, personId, role, createdAt })
  }

  /** An account without members. */
  addAccount(account: typeof accounts.$inferInsert): AccountId {
    return this.#orm.insert(accounts).values(account).returning({ id: accounts.id }).get().id
  }

  /** Changes some columns of an account. */
  change(id: AccountId, columns: Partial<Omit<AccountRow, 'id'>>): void {
    this.#orm.update(accounts).set(columns).where(eq(accounts.id, id)).run()
  }

  /** Changes some columns of a person. */
  changePerson(id: PersonId, columns: Partial<Omit<PersonRow, 'id' | 'hasAccount'>>): void {
    this.#orm.update(people).set(columns).where(eq(people.id, id)).run()
  }

  addMember(member: typeof memberships.$inferInsert): void {
    this.#orm.insert(memberships).values(member).run()
  }

  /** Turns two-factor sign-in off and deletes its recovery codes. */
  clearSecondFactor(id: PersonId): void {
    this.changePerson(id, { totpSecret: null, totpEnabledAt: null, totpLastStep: null })
    this.#orm.delete(recoveryCodes).where(eq(recoveryCodes.personId, id)).run()
  }

  /** Ends every membership of an account. People who are in no other account are removed. */
  removeMembers(id: AccountId): void {
    const members = this.listMembers(id)
    this.#orm.delete(memberships).where(eq(memberships.accountId, id)).run()
    for (const member of members) {
      if (this.listAccountsOf(member.id).length === 0) this.removePerson(member.id)
    }
  }

  /** Deletes a person and all that belongs to them. */
  removePerson(id: PersonId): void {
    for (const table of [sessions, identities, recoveryCodes, memberships, oneTimeLinks]) {
      this.#orm.delete(table).where(eq(table.personId, id)).run()
    }
    this.#db.query('DELETE FROM settings WHERE name = ?').run(disconnectionsOf(id))
    this.#orm.delete(people).where(eq(people.id, id)).run()
  }

  /** Deletes the row of the account. What belongs to it must be deleted first. */
  remove(id: AccountId): void {
    this.#orm.delete(accounts).where(eq(accounts.id, id)).run()
  }

  /** Returns the key's id. Deletes keys of the account that expired long ago. */
  addKey(accountId: AccountId, key: NewKey, now: number): number {
    this.#db
      .query(
        `DELETE FROM api_keys WHERE account_id = ?1 AND ends_at <= ?2 AND (ends_at <= ?3
           OR id NOT IN (SELECT id FROM api_keys WHERE account_id = ?1 AND ends_at <= ?2
             ORDER BY ends_at DESC, id DESC LIMIT ?4))`,
      )
      .run(accountId, now, now - EXPIRED_KEYS_KEPT_MS, EXPIRED_KEYS_MAX)
    return this.#orm
      .insert(apiKeys)
      .values({ accountId, ...key, createdAt: now })
      .returning({ id: apiKeys.id })
      .get().id
  }

  /**
   * Every active key of the account expires at `expiresAt`, unless it expires sooner. With `name`,
   * only the keys of this name; null stands for keys without one.
   */
  revokeKeys(id: AccountId, expiresAt: number, name?: string | null): void {
    const hasName = name === null ? isNull(apiKeys.name) : eq(apiKeys.name, name ?? '')
    const isRevoked = and(
      eq(apiKeys.accountId, id),
      isActive(expiresAt),
      name === undefined ? undefined : hasName,
    )
    this.#orm.update(apiKeys).set({ endsAt: expiresAt }).where(isRevoked).run()
  }

  /** One key expires now. False if the account has no such active key. */
  expireKey(id: AccountId, keyId: number, now: number): boolean {
    const expired = this.#orm
      .update(apiKeys)
      .set({ endsAt: now })
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, id), isActive(now)))
      .returning({ id: apiKeys.id })
      .all()
    return expired.length > 0
  }

  noteKeyUse(keyId: number, at: number): void {
    this.#orm.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, keyId)).run()
  }
}

/** One for all writes on a connection. */
export const accountStore = perConnection((db) => new AccountStore(db))

/** A key without an expiry, or with a later one. */
const isActive = (at: number) => or(isNull(apiKeys.endsAt), gt(apiKeys.endsAt, at))
