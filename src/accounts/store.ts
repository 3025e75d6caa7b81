import type { Database } from 'bun:sqlite'
import { and, asc, count, eq, gt, isNull, or, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { inTransaction } from '../db/open.ts'
import { accounts, apiKeys } from '../db/schema.ts'
import type { Plan } from './plans.ts'

export type AccountId = number

export interface Account {
  id: AccountId
  plan: Plan
}

export interface AccountRow extends Account {
  email: string
  linkCount: number
  createdAt: number
}

export interface NewKey {
  hash: Buffer
  lastFour: string
}

/**
 * Accounts and their keys. Times are epoch ms; e-mail addresses are the same in any letter case.
 */
export class AccountStore {
  readonly #db: Database
  readonly #orm
  readonly #byKeyHash

  constructor(db: Database) {
    this.#db = db
    this.#orm = drizzle({ client: db })
    this.#byKeyHash = this.#orm
      .select({ id: accounts.id, plan: accounts.plan })
      .from(apiKeys)
      .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
      .where(
        and(
          eq(apiKeys.hash, sql.placeholder('hash')),
          or(isNull(apiKeys.endsAt), gt(apiKeys.endsAt, sql.placeholder('now'))),
        ),
      )
      .prepare()
  }

  /** The account whose key has this hash and is in force at `now`. */
  findByKeyHash(hash: Buffer, now: number): Account | undefined {
    return this.#byKeyHash.get({ hash, now })
  }

  findByEmail(email: string): AccountRow | undefined {
    return this.#orm.select().from(accounts).where(hasEmail(email)).get()
  }

  isEmpty(): boolean {
    return this.#orm.select({ n: count() }).from(accounts).get()?.n === 0
  }

  list(): AccountRow[] {
    return this.#orm.select().from(accounts).orderBy(asc(accounts.id)).all()
  }

  /** Undefined when the e-mail address has an account already; then nothing is stored. */
  create(email: string, plan: Plan, key: NewKey, now: number): AccountId | undefined {
    return inTransaction(this.#db, () => {
      if (this.findByEmail(email)) return undefined
      const row = this.#orm
        .insert(accounts)
        .values({ email, plan, createdAt: now })
        .returning({ id: accounts.id })
        .get()
      this.#addKey(row.id, key, now)
      return row.id
    })
  }

  setPlan(id: AccountId, plan: Plan): void {
    this.#orm.update(accounts).set({ plan }).where(eq(accounts.id, id)).run()
  }

  /** Every key in force stops at `endsAt`, unless it stops sooner; `next` takes over now. */
  rotateKey(id: AccountId, next: NewKey, endsAt: number, now: number): void {
    inTransaction(this.#db, () => {
      this.#endKeys(id, endsAt)
      this.#addKey(id, next, now)
    })
  }

  /** Every key in force stops at `endsAt`, unless it stops sooner. */
  revokeKeys(id: AccountId, endsAt: number): void {
    this.#endKeys(id, endsAt)
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

const hasEmail = (email: string) => sql`lower(${accounts.email}) = lower(${email})`
