import type { Database } from 'bun:sqlite'
import { moderationCount, moderationCounter } from '../db/settings.ts'
import type { Code } from '../lib/code.ts'

/** A code whose visitors get 410, and that nobody can claim. */
export interface DisabledCode {
  code: Code
  reason: string
  disabledAt: number
}

const COLUMNS = 'code, reason, disabled_at AS disabledAt'

/** Look-ups on a connection that only reads. */
export class ModerationReads {
  readonly #find
  readonly #among
  readonly #list
  readonly #count
  /** Differs after every change, made by any process. */
  readonly changes: () => string

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
    this.changes = moderationCount(db)
  }

  find(code: Code): DisabledCode | undefined {
    return this.#find.get(code) ?? undefined
  }

  /** The reasons of those of the codes that are disabled. */
  findReasons(codes: readonly Code[]): Map<Code, string> {
    const found = this.#among.all(JSON.stringify(codes))
    return new Map(found.map(({ code, reason }) => [code, reason]))
  }

  /** The newest first. `total` counts all of them. */
  list({ limit, offset }: { limit: number; offset: number }): {
    total: number
    items: DisabledCode[]
  } {
    return { total: this.#count.get()?.n ?? 0, items: this.#list.all(limit, offset) }
  }
}

/** Runs on the writer thread, inside the transaction of its batch, or in a command's own. */
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
  const noteChange = moderationCounter(db)

  return {
    /** Doing it again changes the reason. False when no link has the code: it may be mistyped. */
    disableCode({ code, reason, now }: { code: Code; reason: string; now: number }): boolean {
      if (!isKnown.get(code)?.known) return false
      disable.run(code, reason, now)
      noteChange()
      return true
    },

    /** False when the code is not disabled. */
    enableCode({ code }: { code: Code }): boolean {
      if (enable.run(code).changes === 0) return false
      noteChange()
      return true
    },
  }
}

export type ModerationWrites = ReturnType<typeof moderationWrites>
