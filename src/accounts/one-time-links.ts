import type { Database } from 'bun:sqlite'
import { and, desc, eq, gt, isNull, lte, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { oneTimeLinks as table } from '../db/schema.ts'
import { type DataOf, perConnection, subject, write } from '../db/subject.ts'
import { DAY } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import { newToken, type SecretHasher, TOKEN_SHAPE } from './secrets.ts'
import {
  type AccountId,
  accountStore,
  MEMBERS_MAX,
  type OwnAccountRow,
  type PersonId,
} from './store.ts'

export type OneTimeLinkRow = typeof table.$inferSelect
export type NewOneTimeLink = Omit<typeof table.$inferInsert, 'id' | 'usedAt'>
export type Purpose = OneTimeLinkRow['purpose']

/** Pending invitations that create an account, of the whole service. */
const INVITES_MAX = 100
export const NO_INVITES = `${INVITES_MAX} invitations are pending. Withdraw some first.`
export const NO_MEMBERS = `An account has at most ${MEMBERS_MAX} members and invitations.`

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

interface LinkDeps {
  hasher: SecretHasher
  random: RandomBytes
}

/** A link and its stored form. The path is a secret: it is shown once and stored nowhere. */
export function issueOneTimeLink(
  { hasher, random }: LinkDeps,
  about: Pick<NewOneTimeLink, 'purpose' | 'personId' | 'accountId' | 'role' | 'email' | 'plan'>,
  now: number,
): { path: string; stored: NewOneTimeLink } {
  const token = newToken(random)
  const { purpose } = about
  return {
    path: oneTimePath(purpose, token),
    stored: {
      ...about,
      hash: hasher.hash('one-time-link', token),
      createdAt: now,
      endsAt: now + LINK_LIFE_MS[purpose],
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
    /**
     * `not_allowed`: an invitation by a person without an active account, or to an account of which
     * the person is no admin. Owners of the service and, without a person, its operator invite to
     * every account. `full`: too many invitations, or members of the account.
     */
    add: write({
      prepare(db) {
        const accounts = accountStore(db)
        const links = oneTimeLinkStore(db)
        return (link: NewOneTimeLink): 'added' | 'not_allowed' | 'full' => {
          const { purpose, personId, accountId, createdAt } = link
          const sender = personId ? accounts.findPerson(personId) : undefined
          if (purpose === 'invite' && personId && !sender?.hasAccount) return 'not_allowed'
          const isIt = ({ id, role }: OwnAccountRow) => id === accountId && role === 'admin'
          if (
            accountId &&
            sender?.isOwner === 0 &&
            !accounts.listAccountsOf(sender.id).some(isIt)
          ) {
            return 'not_allowed'
          }
          const pending = () => links.listInvites(createdAt, accountId ?? null).length
          const members = accountId ? accounts.listMembers(accountId).length : 0
          const most = accountId ? MEMBERS_MAX : INVITES_MAX
          if (purpose === 'invite' && members + pending() >= most) return 'full'
          links.add(link)
          return 'added'
        }
      },
    }),

    endInvite: write({
      prepare(db) {
        const links = oneTimeLinkStore(db)
        return ({ id, accountId }: { id: number; accountId?: AccountId }): boolean =>
          links.endInvite(id, accountId ?? null)
      },
    }),
  },
})

const isTo = (accountId: AccountId | null) =>
  accountId === null ? isNull(table.accountId) : eq(table.accountId, accountId)

/** The link is neither used nor expired. */
const isUsable = (purpose: Purpose, now: number) =>
  and(eq(table.purpose, purpose), isNull(table.usedAt), gt(table.endsAt, now))
