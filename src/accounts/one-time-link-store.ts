import type { Database } from 'bun:sqlite'
import { and, desc, eq, gt, isNull, lte, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { oneTimeLinks } from '../db/schema.ts'
import type { Plan } from './plans.ts'
import type { AccountId } from './store.ts'

export type Purpose = 'setup' | 'invite' | 'reset'

export interface NewOneTimeLink {
  hash: Uint8Array
  purpose: Purpose
  createdAt: number
  endsAt: number
  accountId?: AccountId
  email?: string
  plan?: Plan
}

export type OneTimeLinkRow = typeof oneTimeLinks.$inferSelect

/** Links that open one page once. Times are epoch ms. */
export class OneTimeLinkStore {
  readonly #orm

  constructor(db: Database) {
    this.#orm = drizzle({ client: db })
  }

  /** The link if it is neither used nor over at `now`. */
  find(purpose: Purpose, hash: Uint8Array, now: number): OneTimeLinkRow | undefined {
    return this.#orm
      .select()
      .from(oneTimeLinks)
      .where(
        and(
          eq(oneTimeLinks.hash, Buffer.from(hash)),
          eq(oneTimeLinks.purpose, purpose),
          isNull(oneTimeLinks.usedAt),
          gt(oneTimeLinks.endsAt, now),
        ),
      )
      .get()
  }

  /** Invitations that can still be taken up at `now`, newest first. */
  listInvites(now: number): OneTimeLinkRow[] {
    const open = and(
      eq(oneTimeLinks.purpose, 'invite'),
      isNull(oneTimeLinks.usedAt),
      gt(oneTimeLinks.endsAt, now),
    )
    return this.#orm.select().from(oneTimeLinks).where(open).orderBy(desc(oneTimeLinks.id)).all()
  }

  /**
   * Stores a link. Earlier ones end with it: every link for the set-up, and those that reset the
   * same account's password. Links that are used or over are forgotten.
   */
  add({ hash, ...link }: NewOneTimeLink): void {
    const { purpose, accountId, createdAt } = link
    const over = or(lte(oneTimeLinks.endsAt, createdAt), gt(oneTimeLinks.usedAt, 0))
    this.#orm.delete(oneTimeLinks).where(over).run()
    if (purpose === 'setup') this.endAll('setup')
    if (purpose === 'reset' && accountId !== undefined) this.endAll('reset', accountId)
    this.#orm
      .insert(oneTimeLinks)
      .values({ ...link, hash: Buffer.from(hash) })
      .run()
  }

  endAll(purpose: Purpose, accountId?: AccountId): void {
    const ofAccount = accountId === undefined ? undefined : eq(oneTimeLinks.accountId, accountId)
    this.#orm
      .delete(oneTimeLinks)
      .where(and(eq(oneTimeLinks.purpose, purpose), ofAccount))
      .run()
  }

  /** Takes an invitation back. False when there is none with this id. */
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
