import type { Database } from 'bun:sqlite'
import { type Clock, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { LinkWriter } from './writer.ts'

/** How long a deletion in the dashboard can be undone. */
export const DELETION_DELAY_MS = 30 * SECOND

const POLL_MS = 500
/** Links deleted in one transaction. Other writes run between two batches. */
const BATCH_MAX = 100

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
