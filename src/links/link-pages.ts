import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkLists, ListQuery, Matches } from './lists.ts'

/** Enough for some million links; what was counted is kept, so that the next try goes on. */
const DEADLINE_MS = 10_000

interface LinkPagesOptions {
  deadlineMs?: number
  /** Throws when the account has so many long responses unsent that it gets no further page. */
  requireRoom?: (accountId: AccountId) => void
}

/** Finds pages of links on the reader thread, in slices that let other calls in between. */
export class LinkPages {
  readonly #reader: Caller<LinkLists>
  readonly #deadlineMs: number
  readonly #requireRoom: (accountId: AccountId) => void
  /** The latest page of each account that has one running or waiting. */
  readonly #latest = new Map<AccountId, Promise<Matches>>()

  constructor(
    reader: Caller<LinkLists>,
    { deadlineMs = DEADLINE_MS, requireRoom = () => {} }: LinkPagesOptions = {},
  ) {
    this.#reader = reader
    this.#deadlineMs = deadlineMs
    this.#requireRoom = requireRoom
  }

  /**
   * One page and its total, exact. An account has one at a time on the thread, so that its share
   * does not grow with its requests. Throws `search_timeout`, also when `signal` is aborted.
   */
  async find(query: ListQuery, signal?: AbortSignal): Promise<Matches> {
    const { accountId } = query
    const own = this.#findAfter(this.#latest.get(accountId), query, signal)
    this.#latest.set(accountId, own)
    try {
      return await own
    } finally {
      if (this.#latest.get(accountId) === own) this.#latest.delete(accountId)
    }
  }

  async #findAfter(
    earlier: Promise<Matches> | undefined,
    query: ListQuery,
    signal: AbortSignal | undefined,
  ): Promise<Matches> {
    const endsAt = performance.now() + this.#deadlineMs
    await earlier?.catch(() => {})
    this.#requireRoom(query.accountId)
    return this.#find(query, () => performance.now() >= endsAt || signal?.aborted === true)
  }

  async #find(query: ListQuery, isOver: () => boolean): Promise<Matches> {
    // A list without a search is found at once, nearly always: it goes before every search.
    let background = Boolean(query.search)
    while (!isOver()) {
      const matches = await this.#reader.call('listLinksSlice', query, { background })
      if (matches) return matches
      background = true
    }
    throw new AppError('search_timeout', '', { headers: { 'Retry-After': '1' } })
  }
}
