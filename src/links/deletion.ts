import type { Database } from 'bun:sqlite'
import type { accounts } from '../accounts/operations/accounts.ts'
import type { Account, AccountId } from '../accounts/store.ts'
import { authorOf } from '../db/author.ts'
import type { DataOf } from '../db/subject.ts'
import { AppError } from '../errors.ts'
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import type { Kit } from './kit.ts'
import { requireOwnedIds } from './update.ts'
import type { LinkWriter } from './writer.ts'

/** How long a deletion in the dashboard can be undone. */
const DELETION_DELAY_MS = 30 * SECOND

/**
 * Deletes at most `CHANGED_MAX` links of one account after `DELETION_DELAY_MS`. Their visitors get
 * 404 at once. Throws `code_not_found`.
 */
export async function scheduleDeletion(
  deps: Kit,
  account: Account,
  codes: readonly string[],
): Promise<void> {
  const ids = await deps.writer.decide(() => requireOwnedIds(deps, account, codes))
  const now = deps.clock()
  const deleteAt = now + DELETION_DELAY_MS
  await deps.links.scheduleDeletion({ ids, deleteAt, author: authorOf(account, now) })
}

/** Keeps links whose deletion was scheduled. Throws `code_not_found` if one was deleted already. */
export async function undoDeletion(
  deps: Kit,
  account: Account,
  codes: readonly string[],
): Promise<void> {
  const ids = await deps.writer.decide(() => requireOwnedIds(deps, account, codes))
  const undone = await deps.links.undoDeletion({ ids, author: authorOf(account, deps.clock()) })
  // Deleted between the check and the write.
  if (undone < new Set(ids).size) throw new AppError('code_not_found', codes.join(', '))
}

/** Links deleted in one transaction. Other writes run between two batches. */
const BATCH_MAX = 500

const POLL_MS = 500

interface DelayedDeletionOptions {
  /** Read-only. */
  db: Database
  links: Pick<LinkWriter, 'deleteDue'>
  clock: Clock
  log: Log
}

/** Deletes links whose deletion is due, also those that were scheduled before a restart. */
export class DelayedDeletion {
  readonly #options: DelayedDeletionOptions
  readonly #findDue
  readonly #timer: Timer
  #isRunning = false
  #isClosed = false
  /** The last attempt failed, and the log reports it. */
  #isFailing = false

  constructor(options: DelayedDeletionOptions) {
    this.#options = options
    this.#findDue = options.db.prepare<{ due: number }, [number]>(
      `SELECT EXISTS (SELECT 1 FROM links
                      WHERE delete_at IS NOT NULL AND delete_at <= ?) AS due`,
    )
    this.#timer = setInterval(() => void this.#poll(), POLL_MS)
    this.#timer.unref()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #poll(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      await this.#deleteDue()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#options.log.error('links.not_deleted', {}, error)
      this.#isFailing = true
    }
    this.#isRunning = false
  }

  async #deleteDue(): Promise<void> {
    const { links, clock } = this.#options
    while (!this.#isClosed && this.#findDue.get(clock())?.due === 1) {
      // 0 if another call has deleted or kept them meanwhile.
      if ((await links.deleteDue({ now: clock(), most: BATCH_MAX })) === 0) return
    }
  }
}

type AccountsData = DataOf<{ accounts: typeof accounts }>['accounts']

interface AccountDeletionOptions {
  data: {
    accounts: Pick<AccountsData, 'listDeleted' | 'remove'>
    history: { removeSome(command: { accountId: AccountId }): Promise<number> }
  }
  links: Pick<LinkWriter, 'deleteSome'>
  log: Log
  /** Interval of looking for unfinished deletions. Default: a minute. */
  resumeMs?: number
}

/**
 * Deletes closed accounts, all their links and their history, in batches. Resumes what a stop or a
 * failure has interrupted, and what another host of the cluster has not finished: if that host is
 * still deleting, both delete.
 */
export class AccountDeletion {
  readonly #options: AccountDeletionOptions
  readonly #queued = new Set<AccountId>()
  readonly #timer: Timer
  #closing = false
  #work: Promise<void> = Promise.resolve()

  constructor(options: AccountDeletionOptions) {
    this.#options = options
    this.#resume()
    this.#timer = setInterval(() => this.#resume(), options.resumeMs ?? MINUTE)
    this.#timer.unref()
  }

  /** Deletes what a closed account has left, in the background. Resolves after the last link. */
  finish(id: AccountId): Promise<void> {
    this.#queued.add(id)
    this.#work = this.#work
      .then(() => this.#deleteLinks(id))
      .catch((error: unknown) => {
        this.#options.log.error('account.not_deleted', { account_id: id }, error)
      })
      .finally(() => this.#queued.delete(id))
    return this.#work
  }

  /** Stops after the current batch. The next start resumes. */
  close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#timer)
    return this.#work
  }

  #resume(): void {
    const { data, log } = this.#options
    try {
      for (const id of data.accounts.listDeleted()) if (!this.#queued.has(id)) this.finish(id)
    } catch (error) {
      log.warn('account.deletions_not_read', { reason: messageOf(error) })
    }
  }

  async #deleteLinks(accountId: AccountId): Promise<void> {
    const { data, links } = this.#options
    while (!this.#closing) {
      if ((await links.deleteSome({ accountId, most: BATCH_MAX })) > 0) continue
      if ((await data.history.removeSome({ accountId })) > 0) continue
      return data.accounts.remove({ accountId })
    }
  }
}
