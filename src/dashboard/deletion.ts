import type { AccountId, AccountStore } from '../accounts/store.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { Log } from '../lib/log.ts'
import type { Caller } from '../lib/thread.ts'
import type { LinkWriter } from '../links/writer.ts'

/** Links deleted in one transaction. Other writes run between two batches. */
const BATCH_MAX = 500
/** Between two attempts after a failure. */
const RETRY_MS = 1000

export type DeletionWrites = Pick<AccountWrites, 'beginDeletion' | 'removeAccount'>

interface DeletionOptions {
  writer: Caller<DeletionWrites>
  accounts: AccountStore
  links: Pick<LinkWriter, 'deleteSome'>
  log: Log
}

/** Deletes accounts and all their links, in batches. Resumes interrupted deletions at a start. */
export class AccountDeletion {
  readonly #options: DeletionOptions
  #closing = false
  readonly #closed = Promise.withResolvers<void>()
  #work: Promise<void> = Promise.resolve()

  constructor(options: DeletionOptions) {
    this.#options = options
    for (const id of options.accounts.listDeleted()) this.#queue(id)
  }

  /**
   * Closes the account immediately and deletes its links in the background; `done` resolves after
   * the last one. Returns false and changes nothing for the last owner of the service.
   */
  async begin(accountId: AccountId, now: number): Promise<false | { done: Promise<void> }> {
    const isStarted = await this.#options.writer.call('beginDeletion', { accountId, now })
    return isStarted && { done: this.#queue(accountId) }
  }

  /** Stops after the current batch. The next start resumes. */
  close(): Promise<void> {
    this.#closing = true
    this.#closed.resolve()
    return this.#work
  }

  /** Resolves after the first attempt. */
  #queue(id: AccountId): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#work = this.#work.then(() => this.#deleteWithRetries(id, resolve))
    return promise
  }

  /** Tries again until it succeeds: a disk may be full, or PostgreSQL away, for a while. */
  async #deleteWithRetries(id: AccountId, onAttempt: () => void): Promise<void> {
    for (let tries = 1; !this.#closing; tries++) {
      try {
        await this.#deleteLinks(id)
        break
      } catch (error) {
        if (tries === 1) this.#options.log.error('account.not_deleted', { account_id: id }, error)
        onAttempt()
        await Promise.race([Bun.sleep(RETRY_MS), this.#closed.promise])
      }
    }
    onAttempt()
  }

  async #deleteLinks(accountId: AccountId): Promise<void> {
    const { writer, links } = this.#options
    while (!this.#closing) {
      const deleted = await links.deleteSome({ accountId, most: BATCH_MAX })
      if (deleted === 0) return writer.call('removeAccount', { accountId })
    }
  }
}
