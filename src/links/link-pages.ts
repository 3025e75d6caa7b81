import type { AccountId } from '../accounts/store.ts'
import { AppError } from '../errors.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkLists, ListQuery, Matches } from './lists.ts'

/** Enough for some million links; what was counted is kept, so that the next try goes on. */
const DEADLINE_MS = 10_000

/** Finds pages of links on the reader thread, in slices that let other calls in between. */
export class LinkPages {
  readonly #reader: Caller<LinkLists>
  readonly #deadlineMs: number
  /** The latest search of each account that has one running or waiting. */
  readonly #searches = new Map<AccountId, Promise<Matches>>()

  constructor(reader: Caller<LinkLists>, { deadlineMs = DEADLINE_MS } = {}) {
    this.#reader = reader
    this.#deadlineMs = deadlineMs
  }

  /**
   * One page and its total, exact. An account has one search at a time on the thread, so that its
   * share does not grow with its requests. Throws `search_timeout`, also when `signal` is aborted.
   */
  async find(query: ListQuery, signal?: AbortSignal): Promise<Matches> {
    const endsAt = performance.now() + this.#deadlineMs
    const isOver = () => performance.now() >= endsAt || signal?.aborted === true
    if (!query.search) return this.#find(query, isOver)
    const { accountId } = query
    const own = this.#findAfter(this.#searches.get(accountId), query, isOver)
    this.#searches.set(accountId, own)
    try {
      return await own
    } finally {
      if (this.#searches.get(accountId) === own) this.#searches.delete(accountId)
    }
  }

  async #findAfter(
    earlier: Promise<Matches> | undefined,
    query: ListQuery,
    isOver: () => boolean,
  ): Promise<Matches> {
    await earlier?.catch(() => {})
    return this.#find(query, isOver)
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
