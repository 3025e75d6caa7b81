import type { Database } from 'bun:sqlite'
import { and, desc, eq, isNull, lte, ne, or, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { accounts, sessions } from '../db/schema.ts'
import type { Plan } from './plans.ts'
import { type Factor, secondFactorWrites } from './second-factor-store.ts'
import type { AccountId } from './store.ts'

export interface NewSession {
  hash: Uint8Array
  accountId: AccountId
  createdAt: number
  address: string
  agent: string
}

/** Who is signed in. */
export interface SessionRow {
  id: number
  createdAt: number
  seenAt: number
  /** When the password was last entered in this session. */
  provedAt: number
  accountId: AccountId
  email: string
  plan: Plan
  isOwner: number
}

export interface SessionView {
  id: number
  createdAt: number
  seenAt: number
  address: string
  agent: string
}

/** One-row look-ups of sessions, on the HTTP thread's own connection. */
export class SessionReads {
  readonly #orm
  readonly #byHash

  constructor(db: Database) {
    this.#orm = drizzle({ client: db })
    this.#byHash = this.#orm
      .select({
        id: sessions.id,
        createdAt: sessions.createdAt,
        seenAt: sessions.seenAt,
        provedAt: sessions.provedAt,
        accountId: sessions.accountId,
        email: accounts.email,
        plan: accounts.plan,
        isOwner: accounts.isOwner,
      })
      .from(sessions)
      .innerJoin(accounts, eq(accounts.id, sessions.accountId))
      .where(and(eq(sessions.hash, sql.placeholder('hash')), isNull(accounts.disabledAt)))
      .prepare()
  }

  /** The session of an account that is not disabled, however old. */
  findByHash(hash: Buffer): SessionRow | undefined {
    return this.#byHash.get({ hash })
  }

  /** Latest first. */
  list(accountId: AccountId): SessionView[] {
    const { id, createdAt, seenAt, address, agent } = sessions
    return this.#orm
      .select({ id, createdAt, seenAt, address, agent })
      .from(sessions)
      .where(eq(sessions.accountId, accountId))
      .orderBy(desc(seenAt), desc(id))
      .all()
  }
}

/** An account's sessions beyond this end, the longest unseen first. */
const SESSIONS_PER_ACCOUNT_MAX = 100

/** Runs on the writer thread, inside the transaction of its batch. */
export function sessionWrites(db: Database) {
  const orm = drizzle({ client: db })
  const active = db.prepare<
    Pick<SessionRow, 'email' | 'plan' | 'isOwner'> & { totpEnabledAt: number | null },
    [AccountId, string]
  >(
    `SELECT email, plan, is_owner AS isOwner, totp_enabled_at AS totpEnabledAt FROM accounts
     WHERE id = ? AND password_hash = ? AND disabled_at IS NULL`,
  )
  const { useFactor } = secondFactorWrites(db)
  return {
    /**
     * Starts a session in place of the one whose cookie the browser had, if any. Sessions that are
     * over go with it: those begun before `startedBefore`, or not seen since `seenBefore`.
     * Undefined, and nothing is changed, unless `passwordHash` is still the password of an active
     * account, and `factor`, where the account asks for one, was not used before.
     */
    startSession(order: {
      session: NewSession
      passwordHash: string
      factor?: Factor | undefined
      replaces: Uint8Array | undefined
      startedBefore: number
      seenBefore: number
    }): SessionRow | undefined {
      const { passwordHash, factor, replaces, startedBefore, seenBefore } = order
      const { hash, ...session } = order.session
      const { accountId, createdAt } = session
      const found = active.get(accountId, passwordHash)
      if (!found) return undefined
      const { totpEnabledAt, ...account } = found
      if (totpEnabledAt !== null && !(factor && useFactor(accountId, factor, createdAt))) {
        return undefined
      }
      const isOver = or(lte(sessions.createdAt, startedBefore), lte(sessions.seenAt, seenBefore))
      orm.delete(sessions).where(isOver).run()
      if (replaces)
        orm
          .delete(sessions)
          .where(eq(sessions.hash, Buffer.from(replaces)))
          .run()
      const { id } = orm
        .insert(sessions)
        .values({ ...session, hash: Buffer.from(hash), seenAt: createdAt, provedAt: createdAt })
        .returning({ id: sessions.id })
        .get()
      // Never the new one, which a clock that was set back makes look the oldest.
      db.query(
        `DELETE FROM sessions WHERE account_id = ?1 AND id <> ?2 AND id NOT IN (
           SELECT id FROM sessions WHERE account_id = ?1 AND id <> ?2
           ORDER BY seen_at DESC, id DESC LIMIT ?3)`,
      ).run(accountId, id, SESSIONS_PER_ACCOUNT_MAX - 1)
      return { id, createdAt, seenAt: createdAt, provedAt: createdAt, accountId, ...account }
    },

    touchSession({ id, seenAt }: { id: number; seenAt: number }): void {
      orm.update(sessions).set({ seenAt }).where(eq(sessions.id, id)).run()
    },

    /** The password was entered in the session. False when the session has ended. */
    proveSession({
      id,
      accountId,
      provedAt,
    }: {
      id: number
      accountId: AccountId
      provedAt: number
    }): boolean {
      const proved = orm
        .update(sessions)
        .set({ provedAt })
        .where(and(eq(sessions.id, id), eq(sessions.accountId, accountId)))
        .returning({ id: sessions.id })
        .all()
      return proved.length > 0
    },

    /** Gives the session another token: copies of the old one open nothing from now on. */
    renewSession({ id, hash, provedAt }: { id: number; hash: Uint8Array; provedAt: number }): void {
      orm
        .update(sessions)
        .set({ hash: Buffer.from(hash), provedAt })
        .where(eq(sessions.id, id))
        .run()
    },

    hasSession: ({ id, accountId }: { id: number; accountId: AccountId }): boolean =>
      orm
        .select({ id: sessions.id })
        .from(sessions)
        .where(and(eq(sessions.id, id), eq(sessions.accountId, accountId)))
        .get() !== undefined,

    /** Only a session of this account: the id comes from a form. */
    endSession({ id, accountId }: { id: number; accountId: AccountId }): void {
      orm
        .delete(sessions)
        .where(and(eq(sessions.id, id), eq(sessions.accountId, accountId)))
        .run()
    },

    /** All sessions of the account but `keep`. */
    endSessions({ accountId, keep }: { accountId: AccountId; keep?: number }): void {
      const others = keep === undefined ? undefined : ne(sessions.id, keep)
      orm
        .delete(sessions)
        .where(and(eq(sessions.accountId, accountId), others))
        .run()
    },
  }
}

export type SessionWrites = ReturnType<typeof sessionWrites>
