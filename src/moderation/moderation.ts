/** Disabled links: the owner of the service disables them, and visitors get 410. */

import type { Database } from 'bun:sqlite'
import type { AccountId } from '../accounts/store.ts'
import type { AccountWrites, JoinResult } from '../accounts/writes.ts'
import type { Clock } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import type { Caller } from '../lib/thread.ts'

/** Fits in one line of a table. */
export const REASON_LENGTH_MAX = 200

/** Why a reason is refused, for the form and the command line. */
export const BAD_REASON = `must be one line of 1 to ${REASON_LENGTH_MAX} characters`

/** The reason for disabling a link, as it is stored; undefined for a text that is refused. */
export function parseReason(text: string): string | undefined {
  const reason = text.trim()
  if (reason === '' || reason.length > REASON_LENGTH_MAX) return undefined
  return reason.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(reason) ? reason : undefined
}

/** A code that answers 410 and that nobody can claim. */
export interface DisabledCode {
  code: Code
  reason: string
  disabledAt: number
}

const COLUMNS = 'code, reason, disabled_at AS disabledAt'

/** Lookups on a read-only connection. */
export class ModerationReads {
  readonly #find
  readonly #among
  readonly #list
  readonly #count

  constructor(db: Database) {
    this.#find = db.prepare<DisabledCode, [Code]>(
      `SELECT ${COLUMNS} FROM disabled_codes WHERE code = ?`,
    )
    this.#among = db.prepare<DisabledCode, [string]>(
      `SELECT ${COLUMNS} FROM disabled_codes WHERE code IN (SELECT value FROM json_each(?))`,
    )
    this.#list = db.prepare<DisabledCode, [number, number]>(
      `SELECT ${COLUMNS} FROM disabled_codes ORDER BY disabled_at DESC, code LIMIT ? OFFSET ?`,
    )
    this.#count = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM disabled_codes')
  }

  find(code: Code): DisabledCode | undefined {
    return this.#find.get(code) ?? undefined
  }

  /** The reasons of the disabled ones among the codes. */
  findReasons(codes: readonly Code[]): Map<Code, string> {
    const found = this.#among.all(JSON.stringify(codes))
    return new Map(found.map(({ code, reason }) => [code, reason]))
  }

  /** Newest first. `total` counts all pages. */
  list({ limit, offset }: { limit: number; offset: number }): {
    total: number
    items: DisabledCode[]
  } {
    return { total: this.#count.get()?.n ?? 0, items: this.#list.all(limit, offset) }
  }
}

/** Runs on the writer thread, inside the transaction of its batch. */
export function moderationWrites(db: Database) {
  const isKnown = db.prepare<{ known: number }, [Code]>(
    `SELECT EXISTS (SELECT 1 FROM links WHERE code = ?1)
       OR EXISTS (SELECT 1 FROM disabled_codes WHERE code = ?1) AS known`,
  )
  const disable = db.prepare<null, [Code, string, number]>(
    `INSERT INTO disabled_codes (code, reason, disabled_at) VALUES (?1, ?2, ?3)
     ON CONFLICT (code) DO UPDATE SET reason = ?2`,
  )
  const enable = db.prepare<null, [Code]>('DELETE FROM disabled_codes WHERE code = ?')

  return {
    /** A second call changes the reason. False if no link has the code: it may be mistyped. */
    disableCode({ code, reason, now }: { code: Code; reason: string; now: number }): boolean {
      if (!isKnown.get(code)?.known) return false
      disable.run(code, reason, now)
      return true
    },

    /** False if the code is not disabled. */
    enableCode: ({ code }: { code: Code }): boolean => enable.run(code).changes > 0,
  }
}

type ModerationWrites = ReturnType<typeof moderationWrites>

interface ModerationOptions {
  reads: ModerationReads
  writer: Caller<ModerationWrites & AccountWrites>
  effects: { rulesChanged(): void }
  clock: Clock
}

/**
 * Disables links for the owner of the service, and clears the cache of destinations. Once a method
 * here has resolved, no redirect follows the old rules.
 */
export class Moderation {
  readonly reads: ModerationReads
  readonly #options: ModerationOptions

  constructor(options: ModerationOptions) {
    this.reads = options.reads
    this.#options = options
  }

  /** False if no link has the code. */
  async disableCode(code: Code, reason: string): Promise<boolean> {
    const { writer, clock } = this.#options
    return this.#applied(await writer.call('disableCode', { code, reason, now: clock() }))
  }

  /** False if the code is not disabled. */
  async enableCode(code: Code): Promise<boolean> {
    return this.#applied(await this.#options.writer.call('enableCode', { code }))
  }

  /** `links`: its links answer 410 too. False for the last owner of the service. */
  async disableAccount(accountId: AccountId, { links }: { links: boolean }): Promise<boolean> {
    const { writer, clock } = this.#options
    const command = { accountId, links, now: clock() }
    return this.#applied(await writer.call('disableAccount', command))
  }

  /** Enables its links too. */
  async enableAccount(accountId: AccountId): Promise<void> {
    this.#applied(await this.#options.writer.call('enableAccount', { accountId }))
  }

  /** Creates the owner account, or enables an existing account with its links and makes it one. */
  async setUpOwner(command: Parameters<AccountWrites['setUpOwner']>[0]): Promise<JoinResult> {
    return this.#applied(await this.#options.writer.call('setUpOwner', command))
  }

  /** No `await` between the writer's answer and this: a redirect could follow the old rules. */
  #applied<Result>(result: Result): Result {
    this.#options.effects.rulesChanged()
    return result
  }
}
