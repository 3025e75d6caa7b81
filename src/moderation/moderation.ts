/** Disabled links: the owner of the service disables them, and visitors get 410. */

import type { Database } from 'bun:sqlite'
import type { AccountWrites } from '../accounts/writes.ts'
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

type ModerationCalls = ReturnType<typeof moderationWrites> &
  Pick<AccountWrites, 'disableAccount' | 'enableAccount' | 'setUpOwner'>

interface ModerationOptions {
  reads: ModerationReads
  writer: Caller<ModerationCalls>
  effects: { rulesChanged(): void }
}

/**
 * Disables links for the owner of the service, and clears the cache of destinations. Once a call
 * has resolved, no redirect follows the old rules.
 */
export class Moderation {
  readonly reads: ModerationReads
  readonly #options: ModerationOptions

  constructor(options: ModerationOptions) {
    this.reads = options.reads
    this.#options = options
  }

  async call<Name extends keyof ModerationCalls>(
    name: Name,
    args: Parameters<ModerationCalls[Name]>[0],
  ): Promise<Awaited<ReturnType<ModerationCalls[Name]>>> {
    const result = await this.#options.writer.call(name, args)
    // No `await` between the writer's answer and this: a redirect could follow the old rules.
    this.#options.effects.rulesChanged()
    return result
  }
}
