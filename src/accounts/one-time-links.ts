import type { Database } from 'bun:sqlite'
import { and, desc, eq, gt, isNull, lte, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { oneTimeLinks } from '../db/schema.ts'
import { DAY } from '../lib/clock.ts'
import type { RandomBytes } from '../lib/random.ts'
import { newToken, type SecretHasher, TOKEN_SHAPE } from './secrets.ts'
import type { AccountId } from './store.ts'

export type OneTimeLinkRow = typeof oneTimeLinks.$inferSelect
export type NewOneTimeLink = Omit<typeof oneTimeLinks.$inferInsert, 'id' | 'usedAt'>
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

interface LinkDeps {
  hasher: SecretHasher
  random: RandomBytes
}

/** A link and its stored form. The path is a secret: it is shown once and stored nowhere. */
export function issueOneTimeLink(
  { hasher, random }: LinkDeps,
  about: Pick<NewOneTimeLink, 'purpose' | 'accountId' | 'email' | 'plan'>,
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
  { hasher, links }: { hasher: SecretHasher; links: OneTimeLinkStore },
  purpose: Purpose,
  token: string,
  now: number,
): OneTimeLinkRow | undefined {
  if (!TOKEN_SHAPE.test(token)) return undefined
  return links.find(purpose, hasher.hash('one-time-link', token), now)
}

/** Links that give access to one page once. Times are epoch ms. */
export class OneTimeLinkStore {
  readonly #orm

  constructor(db: Database) {
    this.#orm = drizzle({ client: db })
  }

  /** The link if it is neither used nor expired at `now`. */
  find(purpose: Purpose, hash: Uint8Array, now: number): OneTimeLinkRow | undefined {
    const isThis = and(eq(oneTimeLinks.hash, hash), isUsable(purpose, now))
    return this.#orm.select().from(oneTimeLinks).where(isThis).get()
  }

  /** Invitations that can still be accepted at `now`, newest first. */
  listInvites(now: number): OneTimeLinkRow[] {
    return this.#orm
      .select()
      .from(oneTimeLinks)
      .where(isUsable('invite', now))
      .orderBy(desc(oneTimeLinks.id))
      .all()
  }

  /**
   * Stores a link. It replaces every earlier link for the set-up, or those that reset the same
   * account's password. Used and expired links are deleted.
   */
  add(link: NewOneTimeLink): void {
    const { purpose, accountId, createdAt } = link
    const isSpent = or(lte(oneTimeLinks.endsAt, createdAt), gt(oneTimeLinks.usedAt, 0))
    this.#orm.delete(oneTimeLinks).where(isSpent).run()
    if (purpose === 'setup') this.endAll('setup')
    if (purpose === 'reset' && accountId) this.endAll('reset', accountId)
    this.#orm.insert(oneTimeLinks).values(link).run()
  }

  endAll(purpose: Purpose, accountId?: AccountId): void {
    const ofAccount = accountId === undefined ? undefined : eq(oneTimeLinks.accountId, accountId)
    this.#orm
      .delete(oneTimeLinks)
      .where(and(eq(oneTimeLinks.purpose, purpose), ofAccount))
      .run()
  }

  /** Withdraws an invitation. False if there is none with this id. */
  endInvite(id: number): boolean {
    const ended = this.#orm
      .delete(oneTimeLinks)
      .where(and(eq(oneTimeLinks.id, id), eq(oneTimeLinks.purpose, 'invite')))
      .returning({ id: oneTimeLinks.id })
      .all()
    return ended.length > 0
  }

  markUsed(id: number, now: number): void {
    this.#orm.update(oneTimeLinks).set({ usedAt: now }).where(eq(oneTimeLinks.id, id)).run()
  }
}

/** The link is neither used nor expired. */
const isUsable = (purpose: Purpose, now: number) =>
  and(eq(oneTimeLinks.purpose, purpose), isNull(oneTimeLinks.usedAt), gt(oneTimeLinks.endsAt, now))
