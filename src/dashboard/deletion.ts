import type { AccountId, AccountStore } from '../accounts/store.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { Log } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkWriter } from '../links/writer.ts'

/** Links that go in one transaction: redirects and other writes pass between two of them. */
const BATCH = 500

export type DeletionWrites = Pick<AccountWrites, 'beginDeletion' | 'removeAccount'>

interface DeletionOptions {
  writer: Caller<DeletionWrites>
  accounts: AccountStore
  links: Pick<LinkWriter, 'deleteSome'>
  log: Log
}

/**
 * Takes accounts away with all their links, in batches. One that a stop has interrupted goes on at
 * the next start.
 */
export class AccountDeletion {
  readonly #options: DeletionOptions
  #closing = false
  #work: Promise<void> = Promise.resolve()

  constructor(options: DeletionOptions) {
    this.#options = options
    for (const id of options.accounts.listDeleted()) this.#queue(id)
  }

  /**
   * Ends the account at once and begins to take its links away; `done` resolves when all are. False
   * for the last owner of the service, and nothing is changed.
   */
  async begin(accountId: AccountId, now: number): Promise<false | { done: Promise<void> }> {
    const began = await this.#options.writer.call('beginDeletion', { accountId, now })
    return began && { done: this.#queue(accountId) }
  }

  /** Leaves what is not done for the next start. */
  close(): Promise<void> {
    this.#closing = true
    return this.#work
  }

  #queue(id: AccountId): Promise<void> {
    this.#work = this.#work
      .then(() => this.#takeAway(id))
      .catch((error: unknown) => {
        this.#options.log.error('account.not_deleted', { account_id: id }, error)
      })
    return this.#work
  }

  async #takeAway(accountId: AccountId): Promise<void> {
    const { writer, links } = this.#options
    while (!this.#closing) {
      const deleted = await links.deleteSome({ accountId, most: BATCH })
      if (deleted === 0) return writer.call('removeAccount', { accountId })
    }
  }
}
