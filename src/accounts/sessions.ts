import type { Database } from 'bun:sqlite'
import { and, desc, eq, isNull, ne, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { accounts, memberships, people, sessions as table } from '../db/schema.ts'
import { type DataOf, perConnection, subject, write } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { type Clock, DAY, MINUTE } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import { type Factor, factorUser } from './second-factor.ts'
import { newToken, type SecretHasher, TOKEN_SHAPE } from './secrets.ts'
import type { AccountId, AccountRow, PersonId, PersonRow, Role } from './store.ts'

const AGENT_MAX_LENGTH = 200
/** Lifetime of a long session, independent of use. */
export const LONG_SESSION_MS = 30 * DAY
/** Writes of `touch` in flight at once. Beyond this, the next request writes the time. */
const TOUCHES_MAX = 1000

/**
 * The stored hash that the password was verified against, or the identity of the provider.
 * `provedAt`: when its user has signed in there, in epoch ms; absent if the provider does not say.
 */
export type FirstProof =
  | { passwordHash: string }
  | { identityId: number; provedAt?: number | undefined }

/**
 * How a person has proved who they are. With two-factor sign-in, the first proof alone is not
 * enough. The writer thread checks the proof again when it starts the session.
 */
export type SignInProof = FirstProof & ({ kind: 'one' } | Factor)

interface SessionsOptions {
  data: DataOf<{ sessions: typeof sessions }>
  hasher: SecretHasher
  clock: Clock
  random: RandomBytes
  /** Time without use after which a session that is not long expires. */
  idleMs: number
  /** Lifetime of a session that is not long, independent of use. */
  maxMs: number
}

/**
 * Sessions of the dashboard. Only the browser knows the token, 256 random bits: the database stores
 * a keyed hash of it. The last use of a session is stored to the minute, so that a page costs no
 * write; an idle session may expire up to a minute early, never late.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #touching = new Set<number>()

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  /**
   * Starts a session in the account that the person has opened last, and returns it with its token.
   * `replaces`: the token that the browser had.
   */
  async start(
    personId: PersonId,
    proof: SignInProof,
    from: { address: string; agent: string; replaces: string | undefined; isLong: boolean },
  ): Promise<{ session: SessionRow; token: string }> {
    const { data, clock, idleMs, maxMs } = this.#options
    const { token, hash } = this.newToken()
    const now = clock()
    const session = await data.sessions.start({
      proof,
      session: {
        hash,
        personId,
        createdAt: now,
        address: from.address,
        agent: from.agent.slice(0, AGENT_MAX_LENGTH),
        isLong: from.isLong ? 1 : 0,
      },
      replaces: from.replaces === undefined ? undefined : this.#hash(from.replaces),
      startedBefore: now - maxMs,
      seenBefore: now - idleMs,
      // Short sessions that started before it are deleted, too.
      longBefore: now - Math.max(LONG_SESSION_MS, maxMs),
    })
    if (!session) throw new AppError('sign_in_needed')
    return { session, token }
  }

  /** Undefined for an unknown or expired token. Stores that the session is in use. */
  findByToken(token: string | undefined): SessionRow | undefined {
    if (token === undefined || !TOKEN_SHAPE.test(token)) return undefined
    const session = this.#options.data.sessions.findByHash(this.#hash(token))
    const now = this.#options.clock()
    if (!session || this.#isExpired(session, now)) return undefined
    this.#touch(session, now)
    return session
  }

  /** The sessions of a person that have not expired, last used first. */
  list(personId: PersonId): SessionView[] {
    const now = this.#options.clock()
    return this.#options.data.sessions
      .list(personId)
      .filter((session) => !this.#isExpired(session, now))
  }

  /** A token that replaces a session's own, and the hash to store of it. */
  newToken(): { token: string; hash: Buffer } {
    const token = newToken(this.#options.random)
    return { token, hash: this.#hash(token) }
  }

  end(id: number, personId: PersonId): Promise<void> {
    return this.#options.data.sessions.end({ id, personId })
  }

  endOthers(personId: PersonId, keep: number): Promise<void> {
    return this.#options.data.sessions.endAll({ personId, keep })
  }

  #isExpired({ createdAt, seenAt, isLong }: SessionView | SessionRow, now: number): boolean {
    if (isLong) return now - createdAt >= LONG_SESSION_MS
    const { idleMs, maxMs } = this.#options
    return now - createdAt >= maxMs || now - seenAt >= idleMs
  }

  #touch({ id, seenAt }: SessionRow, now: number): void {
    const { data, idleMs } = this.#options
    if (now - seenAt < Math.min(MINUTE, idleMs / 4)) return
    if (this.#touching.has(id) || this.#touching.size >= TOUCHES_MAX) return
    this.#touching.add(id)
    const written = data.sessions.touch({ id, seenAt: now }, { background: true })
    // The service's health reports a failing disk; the page does not depend on this write.
    written.catch(() => {}).finally(() => this.#touching.delete(id))
  }

  #hash(token: string): Buffer {
    return this.#options.hasher.hash('session', token)
  }
}

/** db/schema.ts explains each column. */
type Session = typeof table.$inferSelect

export type NewSession = Omit<Session, 'id' | 'accountId' | 'seenAt' | 'provedAt' | 'identityId'>

export type SessionRow = Omit<Session, 'hash' | 'address' | 'agent'> &
  Pick<AccountRow, 'name' | 'plan' | 'timeZone'> &
  Pick<PersonRow, 'email' | 'isOwner'> & { role: Role }

export type SessionView = Omit<Session, 'hash' | 'accountId' | 'personId' | 'provedAt'>

function sessionReads(db: Database) {
  const orm = drizzle({ client: db })
  const { id, createdAt, seenAt, provedAt, isLong, accountId, personId, address, agent } = table
  const { identityId } = table
  const { name, plan, timeZone } = accounts
  const { email, isOwner } = people
  const user = { name, plan, timeZone, email, isOwner, role: memberships.role }
  const isMember = and(eq(memberships.accountId, accountId), eq(memberships.personId, personId))
  const byHash = orm
    .select({ id, createdAt, seenAt, provedAt, isLong, accountId, personId, identityId, ...user })
    .from(table)
    .innerJoin(memberships, isMember)
    .innerJoin(people, eq(people.id, personId))
    .innerJoin(accounts, eq(accounts.id, accountId))
    .where(and(eq(table.hash, sql.placeholder('hash')), isNull(accounts.disabledAt)))
    .prepare()
  return {
    /** The session of a member of an account that is not disabled, however old. */
    findByHash: (hash: Buffer): SessionRow | undefined => byHash.get({ hash }),

    /** Last used first. */
    list: (ofPerson: PersonId): SessionView[] =>
      orm
        .select({ id, createdAt, seenAt, address, agent, isLong, identityId })
        .from(table)
        .where(eq(personId, ofPerson))
        .orderBy(desc(seenAt), desc(id))
        .all(),
  }
}

/** Beyond this, the least recently used session of a person is ended. */
const SESSIONS_PER_PERSON_MAX = 100

/** With the person, because the id comes from a form. */
interface SessionKey {
  id: number
  personId: PersonId
}

const isSession = ({ id, personId }: SessionKey) =>
  and(eq(table.id, id), eq(table.personId, personId))

interface StartCommand {
  session: NewSession
  proof: SignInProof
  replaces: Uint8Array | undefined
  startedBefore: number
  seenBefore: number
  longBefore: number
}

function sessionStarter(db: Database) {
  const orm = drizzle({ client: db })
  // The account that was opened last, else the one that was joined first.
  const active = db.prepare<
    Omit<SessionRow, keyof Session> &
      Pick<SessionRow, 'accountId'> &
      Pick<PersonRow, 'totpEnabledAt' | 'passwordHash'>,
    [PersonId]
  >(
    `SELECT accounts.id AS accountId, name, plan, time_zone AS timeZone, role, email,
       people.is_owner AS isOwner, totp_enabled_at AS totpEnabledAt, password_hash AS passwordHash
     FROM people JOIN memberships ON person_id = people.id
       JOIN accounts ON accounts.id = memberships.account_id
     WHERE people.id = ? AND disabled_at IS NULL
     ORDER BY accounts.id = people.account_id DESC, memberships.created_at, accounts.id LIMIT 1`,
  )
  const endExpired = db.prepare<null, [number, number, number, Uint8Array | null]>(
    `DELETE FROM sessions WHERE (is_long = 0 AND (created_at <= ?1 OR seen_at <= ?2))
       OR created_at <= ?3 OR hash = ?4`,
  )
  // Never the new session, which looks like the oldest if the clock was set back.
  const endOldest = db.prepare<null, [PersonId, number, number]>(
    `DELETE FROM sessions WHERE person_id = ?1 AND id <> ?2 AND id NOT IN (
       SELECT id FROM sessions WHERE person_id = ?1 AND id <> ?2
       ORDER BY seen_at DESC, id DESC LIMIT ?3)`,
  )
  const useFactor = factorUser(db)
  const identity = db.prepare<object, [number, PersonId]>(
    'SELECT 1 FROM identities WHERE id = ? AND person_id = ?',
  )
  const noteUse = db.prepare<null, [number, number]>(
    'UPDATE identities SET last_used_at = ? WHERE id = ?',
  )

  return (command: StartCommand): SessionRow | undefined => {
    const { session, proof, replaces } = command
    const { startedBefore, seenBefore, longBefore } = command
    const { personId, createdAt, isLong } = session
    const found = active.get(personId)
    if (!found) return undefined
    const { totpEnabledAt, passwordHash, ...user } = found
    const identityId = 'identityId' in proof ? proof.identityId : null
    const isProved =
      'passwordHash' in proof
        ? passwordHash === proof.passwordHash
        : identity.get(proof.identityId, personId) !== null
    if (!isProved) return undefined
    const isSecondNeeded = totpEnabledAt !== null
    if (isSecondNeeded && (proof.kind === 'one' || !useFactor(personId, proof, createdAt))) {
      return undefined
    }
    endExpired.run(startedBefore, seenBefore, longBefore, replaces ?? null)
    // A session at the provider may be old.
    const { provedAt: at = createdAt } = 'identityId' in proof ? proof : {}
    const provedAt = Math.min(at, createdAt)
    const times = { createdAt, seenAt: createdAt, provedAt }
    const { id } = orm
      .insert(table)
      .values({ ...session, accountId: user.accountId, identityId, ...times })
      .returning({ id: table.id })
      .get()
    endOldest.run(personId, id, SESSIONS_PER_PERSON_MAX - 1)
    if (identityId !== null) noteUse.run(createdAt, identityId)
    return { id, ...times, isLong, personId, identityId, ...user }
  }
}

/** Changes sessions, for writes of this and other subjects. */
export const sessionRows = perConnection((db) => {
  const orm = drizzle({ client: db })
  return {
    isActive: (session: SessionKey): boolean =>
      orm.select({ id: table.id }).from(table).where(isSession(session)).get() !== undefined,

    /** Replaces the session's token: copies of the old one are worthless from now on. */
    renew({ id, hash, provedAt }: { id: number; hash: Uint8Array; provedAt: number }): void {
      orm.update(table).set({ hash, provedAt }).where(eq(table.id, id)).run()
    },

    /** All sessions of the person but `keep`. */
    endAll({ personId, keep }: { personId: PersonId; keep?: number }): void {
      const others = keep === undefined ? undefined : ne(table.id, keep)
      orm
        .delete(table)
        .where(and(eq(table.personId, personId), others))
        .run()
    },

    /** The sessions whose pages show the account. */
    endAllIn(accountId: AccountId): void {
      orm.delete(table).where(eq(table.accountId, accountId)).run()
    },
  }
})

/** Sessions of the dashboard. The class `Sessions` has their rules. */
export const sessions = subject({
  reads: sessionReads,
  writes: {
    /**
     * Starts a session in place of the one whose cookie the browser had, if any. Also deletes all
     * expired sessions: short ones that were started before `startedBefore` or not used since
     * `seenBefore`, and all that were started before `longBefore`. Undefined, and nothing is
     * changed, unless `proof` has the present password of a member of an active account and, where
     * the person needs it, a second factor that was not used before.
     */
    start: write(sessionStarter),

    touch: write((db) => {
      const orm = drizzle({ client: db })
      return ({ id, seenAt }: { id: number; seenAt: number }): void =>
        void orm.update(table).set({ seenAt }).where(eq(table.id, id)).run()
    }),

    /** The password was entered in the session. False when the session has ended. */
    prove: write((db) => {
      const orm = drizzle({ client: db })
      return ({ provedAt, ...session }: SessionKey & { provedAt: number }): boolean => {
        const proved = orm
          .update(table)
          .set({ provedAt })
          .where(isSession(session))
          .returning({ id: table.id })
          .all()
        return proved.length > 0
      }
    }),

    end: write((db) => {
      const orm = drizzle({ client: db })
      return (session: SessionKey): void => void orm.delete(table).where(isSession(session)).run()
    }),

    /** All sessions of the person but `keep`. */
    endAll: write((db) => sessionRows(db).endAll),
  },
})
