import type { Database } from 'bun:sqlite'
import { and, asc, count, desc, eq, gt, isNull, lte, or, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { inTransaction } from '../db/open.ts'
import { accounts, apiKeys, recoveryCodes } from '../db/schema.ts'
import { HOUR } from '../lib/clock.ts'
import type { Plan } from './plans.ts'

/** How long an ended key is kept at least, so that the list of accounts tells when it was used. */
const ENDED_KEYS_KEPT_MS = 30 * 24 * HOUR

export type AccountId = number

export interface Account {
  id: AccountId
  plan: Plan
  /** The API key that the request came with; absent in the dashboard, which has sessions. */
  keyId?: number
}

/** Flags of the database are 0 and 1; see db/schema.ts for what each column means. */
export type AccountRow = typeof accounts.$inferSelect

export interface NewKey {
  hash: Buffer
  prefix: string
  lastFour: string
}

/** How the account's owner gets into the dashboard; without a password, by a one-time link. */
export interface Signing {
  passwordHash?: string | null
  isOwner?: boolean
}

/** A key as its owner may see it. */
export interface KeyRow {
  id: number
  prefix: string | null
  lastFour: string
  createdAt: number
  endsAt: number | null
  lastUsedAt: number | null
}

/**
 * Accounts and their keys. Times are epoch ms; e-mail addresses are the same in any letter case.
 */
export class AccountStore {
  readonly #db: Database
  readonly #orm
  readonly #byKeyHash
  readonly #byEmail

  constructor(db: Database) {
    this.#db = db
    this.#orm = drizzle({ client: db })
    const hasEmail = sql`lower(${accounts.email}) = lower(${sql.placeholder('email')})`
    this.#byEmail = this.#orm.select().from(accounts).where(hasEmail).prepare()
    // Raw SQL: every request with a key passes here.
    this.#byKeyHash = db.prepare<Account & { keyId: number }, [Buffer, number]>(
      `SELECT accounts.id, accounts.plan, api_keys.id AS keyId
       FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id
       WHERE api_keys.hash = ?1 AND (api_keys.ends_at IS NULL OR api_keys.ends_at > ?2)
         AND accounts.disabled_at IS NULL`,
    )
  }

  /** The account that is not disabled whose key has this hash and is in force at `now`. */
  findByKeyHash(hash: Buffer, now: number): (Account & { keyId: number }) | undefined {
    return this.#byKeyHash.get(hash, now) ?? undefined
  }

  findByEmail(email: string): AccountRow | undefined {
    return this.#byEmail.get({ email })
  }

  find(id: AccountId): AccountRow | undefined {
    return this.#orm.select().from(accounts).where(eq(accounts.id, id)).get()
  }

  isEmpty(): boolean {
    return this.#orm.select({ n: count() }).from(accounts).get()?.n === 0
  }

  /** Owners that are neither disabled nor deleted. */
  countOwners(): number {
    const isOwner = and(eq(accounts.isOwner, 1), isNull(accounts.disabledAt))
    return this.#orm.select({ n: count() }).from(accounts).where(isOwner).get()?.n ?? 0
  }

  list(): AccountRow[] {
    const there = isNull(accounts.deletedAt)
    return this.#orm.select().from(accounts).where(there).orderBy(asc(accounts.id)).all()
  }

  /** Accounts whose taking away was begun and is not finished. */
  listDeleted(): AccountId[] {
    const gone = sql`${accounts.deletedAt} IS NOT NULL`
    const rows = this.#orm.select({ id: accounts.id }).from(accounts).where(gone).all()
    return rows.map(({ id }) => id)
  }

  /** Keys in force at `now`, newest first; those that are ending too. */
  listKeys(id: AccountId, now: number): KeyRow[] {
    const { id: keyId, prefix, lastFour, createdAt, endsAt, lastUsedAt } = apiKeys
    return this.#orm
      .select({ id: keyId, prefix, lastFour, createdAt, endsAt, lastUsedAt })
      .from(apiKeys)
      .where(and(eq(apiKeys.accountId, id), or(isNull(endsAt), gt(endsAt, now))))
      .orderBy(desc(apiKeys.id))
      .all()
  }

  /** Undefined when the e-mail address has an account already; then nothing is stored. */
  create(
    email: string,
    plan: Plan,
    key: NewKey,
    now: number,
    { passwordHash = null, isOwner = false }: Signing = {},
  ): AccountId | undefined {
    return inTransaction(this.#db, () => {
      if (this.findByEmail(email)) return undefined
      const { id } = this.#orm
        .insert(accounts)
        .values({
          ...{ email, plan, passwordHash, createdAt: now },
          isOwner: isOwner ? 1 : 0,
          passwordChangedAt: passwordHash === null ? null : now,
        })
        .returning({ id: accounts.id })
        .get()
      this.#addKey(id, key, now)
      return id
    })
  }

  /** Changes some columns of an account. */
  change(id: AccountId, columns: Partial<Omit<AccountRow, 'id'>>): void {
    this.#orm.update(accounts).set(columns).where(eq(accounts.id, id)).run()
  }

  setPlan(id: AccountId, plan: Plan): void {
    this.change(id, { plan })
  }

  /** From now on the password alone is enough. */
  clearSecondFactor(id: AccountId): void {
    this.change(id, { totpSecret: null, totpEnabledAt: null, totpLastStep: null })
    this.#orm.delete(recoveryCodes).where(eq(recoveryCodes.accountId, id)).run()
  }

  /** Takes the account and its keys away for good. Its links must be gone. */
  remove(id: AccountId): void {
    this.#orm.delete(apiKeys).where(eq(apiKeys.accountId, id)).run()
    this.#orm.delete(accounts).where(eq(accounts.id, id)).run()
  }

  /**
   * Every key in force stops at `endsAt`, unless it stops sooner; `next` takes over now. Keys of
   * the account that ended 30 days ago or earlier are forgotten.
   */
  rotateKey(id: AccountId, next: NewKey, endsAt: number, now: number): void {
    inTransaction(this.#db, () => {
      const isLongOver = lte(apiKeys.endsAt, now - ENDED_KEYS_KEPT_MS)
      this.#orm
        .delete(apiKeys)
        .where(and(eq(apiKeys.accountId, id), isLongOver))
        .run()
      this.#endKeys(id, endsAt)
      this.#addKey(id, next, now)
    })
  }

  /** Every key in force stops at `endsAt`, unless it stops sooner. */
  revokeKeys(id: AccountId, endsAt: number): void {
    this.#endKeys(id, endsAt)
  }

  /** One key of the account stops at `now`. False when the account has no such key in force. */
  endKey(id: AccountId, keyId: number, now: number): boolean {
    const ended = this.#orm
      .update(apiKeys)
      .set({ endsAt: now })
      .where(
        and(
          eq(apiKeys.id, keyId),
          eq(apiKeys.accountId, id),
          or(isNull(apiKeys.endsAt), gt(apiKeys.endsAt, now)),
        ),
      )
      .returning({ id: apiKeys.id })
      .all()
    return ended.length > 0
  }

  noteKeyUse(keyId: number, at: number): void {
    this.#orm.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, keyId)).run()
  }

  #endKeys(id: AccountId, endsAt: number): void {
    this.#orm
      .update(apiKeys)
      .set({ endsAt })
      .where(and(eq(apiKeys.accountId, id), or(isNull(apiKeys.endsAt), gt(apiKeys.endsAt, endsAt))))
      .run()
  }

  #addKey(accountId: AccountId, key: NewKey, now: number): void {
    this.#orm
      .insert(apiKeys)
      .values({ accountId, ...key, createdAt: now })
      .run()
  }
}
