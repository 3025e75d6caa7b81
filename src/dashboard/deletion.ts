import type { AccountId, AccountStore } from '../accounts/store.ts'
import type { AccountWrites } from '../accounts/writes.ts'
import type { Log } from '../lib/log.ts'
import { type Caller, messageOf } from '../lib/thread.ts'
import type { LinkWriter } from '../links/writer.ts'

/** Links deleted in one transaction. Other writes run between two batches. */
const BATCH_MAX = 500

export type DeletionWrites = Pick<AccountWrites, 'beginDeletion' | 'removeAccount'>

interface DeletionOptions {
  writer: Caller<DeletionWrites>
  accounts: AccountStore
  links: Pick<LinkWriter, 'deleteSome'>
  log: Log
  /**
   * In a cluster: interval of looking for deletions that another host has begun and not finished.
   * If that host is still deleting, both delete.
   */
  takeOverMs?: number | undefined
}

/** Deletes accounts and all their links, in batches. Resumes interrupted deletions at a start. */
export class AccountDeletion {
  readonly #options: DeletionOptions
  readonly #queued = new Set<AccountId>()
  readonly #timer: Timer | undefined
  #closing = false
  #work: Promise<void> = Promise.resolve()

  constructor(options: DeletionOptions) {
    this.#options = options
    this.#resume()
    if (options.takeOverMs === undefined) return
    this.#timer = setInterval(() => this.#resume(), options.takeOverMs)
    this.#timer.unref()
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
    clearInterval(this.#timer)
    return this.#work
  }

  #resume(): void {
    const { accounts, log } = this.#options
    try {
      for (const id of accounts.listDeleted()) if (!this.#queued.has(id)) this.#queue(id)
    } catch (error) {
      log.warn('account.deletions_not_read', { reason: messageOf(error) })
    }
  }

  #queue(id: AccountId): Promise<void> {
    this.#queued.add(id)
    this.#work = this.#work
      .then(() => this.#deleteLinks(id))
      .catch((error: unknown) => {
        this.#options.log.error('account.not_deleted', { account_id: id }, error)
      })
      .finally(() => this.#queued.delete(id))
    return this.#work
  }

  async #deleteLinks(accountId: AccountId): Promise<void> {
    const { writer, links } = this.#options
    while (!this.#closing) {
      const deleted = await links.deleteSome({ accountId, most: BATCH_MAX })
      if (deleted === 0) return writer.call('removeAccount', { accountId })
    }
  }
}
