import type { Database } from 'bun:sqlite'
import { and, desc, eq, gt, isNull, lte, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { oneTimeLinks as table } from '../db/schema.ts'
import { type Authored, authoredWrite, type DataOf, perConnection, subject } from '../db/subject.ts'
import { DAY } from '../lib/clock.ts'
import type { KeyDeps } from './keys.ts'
import { newToken, type SecretHasher, TOKEN_SHAPE } from './secrets.ts'
import type { AccountId, PersonId } from './store.ts'

export type OneTimeLinkRow = typeof table.$inferSelect
export type NewOneTimeLink = Omit<typeof table.$inferInsert, 'id' | 'usedAt'>
export type Purpose = OneTimeLinkRow['purpose']

/** How long a link can be used. */
const LINK_LIFE_MS: Readonly<Record<Purpose, number>> = {
  setup: DAY,
  invite: 7 * DAY,
  reset: DAY,
}

/** The page of each purpose: `/app/<page>/<token>`. */
export const LINK_PAGES = { setup: 'setup', invite: 'join', reset: 'reset' } as const

export const oneTimePath = (purpose: Purpose, token: string): string =>
  `/app/${LINK_PAGES[purpose]}/${token}`

/** A link for the person whom it is for. The path is a secret: it is shown once. */
export interface SentLink {
  path: string
  endsAt: number
}

/** A link and its stored form, which does not contain the path. */
export function issueOneTimeLink(
  { hasher, random }: Pick<KeyDeps, 'hasher' | 'random'>,
  about: Pick<NewOneTimeLink, 'purpose' | 'personId' | 'accountId' | 'role' | 'email' | 'plan'>,
  now: number,
): SentLink & { stored: NewOneTimeLink } {
  const token = newToken(random)
  const { purpose } = about
  const endsAt = now + LINK_LIFE_MS[purpose]
  return {
    path: oneTimePath(purpose, token),
    endsAt,
    stored: {
      ...about,
      hash: hasher.hash('one-time-link', token),
      createdAt: now,
      endsAt,
    },
  }
}

/** The link with this token, if it can still be used. Finding it does not use it. */
export function findOneTimeLink(
  { hasher, data }: { hasher: SecretHasher; data: DataOf<{ oneTimeLinks: typeof oneTimeLinks }> },
  purpose: Purpose,
  token: string,
  now: number,
): OneTimeLinkRow | undefined {
  if (!TOKEN_SHAPE.test(token)) return undefined
  return data.oneTimeLinks.find(purpose, hasher.hash('one-time-link', token), now)
}

/** Links that give access to one page once. Times are epoch ms. */
export class OneTimeLinkStore {
  readonly #orm

  constructor(db: Database) {
    this.#orm = drizzle({ client: db })
  }

  /** The link if it is neither used nor expired at `now`. */
  findByHash(purpose: Purpose, hash: Uint8Array, now: number): OneTimeLinkRow | undefined {
    const isThis = and(eq(table.hash, hash), isUsable(purpose, now))
    return this.#orm.select().from(table).where(isThis).get()
  }

  /**
   * Invitations to the account that can still be accepted at `now`, newest first; for null, those
   * that create an account.
   */
  listInvites(now: number, accountId: AccountId | null = null): OneTimeLinkRow[] {
    return this.#orm
      .select()
      .from(table)
      .where(and(isUsable('invite', now), isTo(accountId)))
      .orderBy(desc(table.id))
      .all()
  }

  /**
   * Stores a link. It replaces every earlier link for the set-up, or those that reset the same
   * person's password. Used and expired links are deleted.
   */
  add(link: NewOneTimeLink): void {
    const { purpose, personId, createdAt } = link
    const isSpent = or(lte(table.endsAt, createdAt), gt(table.usedAt, 0))
    this.#orm.delete(table).where(isSpent).run()
    if (purpose === 'setup') this.endAll('setup')
    if (purpose === 'reset' && personId) this.endAll('reset', personId)
    this.#orm.insert(table).values(link).run()
  }

  endAll(purpose: Purpose, personId?: PersonId): void {
    const ofPerson = personId === undefined ? undefined : eq(table.personId, personId)
    this.#orm
      .delete(table)
      .where(and(eq(table.purpose, purpose), ofPerson))
      .run()
  }

  /** Withdraws the invitations to an account. */
  endAllTo(accountId: AccountId): void {
    this.#orm.delete(table).where(eq(table.accountId, accountId)).run()
  }

  /** Withdraws an invitation to the account. False if there is none with this id. */
  endInvite(id: number, accountId: AccountId | null): boolean {
    const ended = this.#orm
      .delete(table)
      .where(and(eq(table.id, id), eq(table.purpose, 'invite'), isTo(accountId)))
      .returning({ id: table.id })
      .all()
    return ended.length > 0
  }

  markUsed(id: number, now: number): void {
    this.#orm.update(table).set({ usedAt: now }).where(eq(table.id, id)).run()
  }
}

/** One for all writes on a connection. */
export const oneTimeLinkStore = perConnection((db) => new OneTimeLinkStore(db))

/** Links that give access to one page once: the set-up, invitations, new passwords. */
export const oneTimeLinks = subject({
  reads(db) {
    const links = new OneTimeLinkStore(db)
    return {
      /** The link if it is neither used nor expired at `now`. */
      find: (purpose: Purpose, hash: Uint8Array, now: number): OneTimeLinkRow | undefined =>
        links.findByHash(purpose, hash, now),

      /** See `OneTimeLinkStore`. */
      listInvites: (now: number, accountId?: AccountId): OneTimeLinkRow[] =>
        links.listInvites(now, accountId),
    }
  },

  writes: {
    /** A link that sets up the owner, or resets a password. `members.invite` has invitations. */
    add: authoredWrite(
      'owner',
      (db) =>
        ({ link }: Authored & { link: NewOneTimeLink }): void =>
          oneTimeLinkStore(db).add(link),
    ),
  },
})

/** Whether an invitation with this address, or without one, is for the person. */
export const isFor = (invited: string | null, email: string): boolean =>
  invited === null || invited.toLowerCase() === email.toLowerCase()

const isTo = (accountId: AccountId | null) =>
  accountId === null ? isNull(table.accountId) : eq(table.accountId, accountId)

/** The link is neither used nor expired. */
const isUsable = (purpose: Purpose, now: number) =>
  and(eq(table.purpose, purpose), isNull(table.usedAt), gt(table.endsAt, now))
