import type { AccountId } from '../accounts/store.ts'
import type { AccountWrites } from '../accounts/writes-store.ts'
import type { Clock } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'
import type { ModerationReads, ModerationWrites } from './store.ts'

/** A change made by a command, which is another process, applies within this time. */
const POLL_MS = 500

interface ModerationOptions {
  reads: ModerationReads
  writer: Caller<ModerationWrites & AccountWrites>
  effects: { rulesChanged(): void }
  /** `version` differs after every list that was loaded. */
  blocklist: { readonly version: number }
  clock: Clock
  pollMs?: number
}

/**
 * Disables links for the owner of the service, and drops every cached destination when what is
 * disabled or blocked has changed. After a method here has resolved, no visitor is redirected by
 * the old rules.
 */
export class Moderation {
  readonly reads: ModerationReads
  readonly #options: ModerationOptions
  readonly #timer: Timer
  #seen: string | undefined

  constructor(options: ModerationOptions) {
    this.reads = options.reads
    this.#options = options
    this.poll()
    this.#timer = setInterval(() => this.poll(), options.pollMs ?? POLL_MS)
    this.#timer.unref()
  }

  /** False when no link has the code. */
  async disableCode(code: Code, reason: string): Promise<boolean> {
    const { writer, clock } = this.#options
    return this.#applied(await writer.call('disableCode', { code, reason, now: clock() }))
  }

  /** False when the code is not disabled. */
  async enableCode(code: Code): Promise<boolean> {
    return this.#applied(await this.#options.writer.call('enableCode', { code }))
  }

  /** `links`: visitors of its links get 410 too. False for the last owner of the service. */
  async disableAccount(accountId: AccountId, { links }: { links: boolean }): Promise<boolean> {
    const { writer, clock } = this.#options
    const command = { accountId, links, now: clock() }
    return this.#applied(await writer.call('disableAccount', command))
  }

  /** Its links work again too. */
  async enableAccount(accountId: AccountId): Promise<void> {
    this.#applied(await this.#options.writer.call('enableAccount', { accountId }))
  }

  /** What happens at every interval. */
  poll(): void {
    const { reads, blocklist, effects } = this.#options
    let now: string
    try {
      now = `${blocklist.version} ${reads.changes()}`
    } catch {
      // The status page reports a database that cannot be read. The next poll compares again.
      return
    }
    if (now !== this.#seen) effects.rulesChanged()
    this.#seen = now
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Nothing is awaited between the writer's result and its effects. */
  #applied<Result>(result: Result): Result {
    this.#options.effects.rulesChanged()
    return result
  }
}
