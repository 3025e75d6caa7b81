/** Disabled links: the owner of the service disables them, and visitors get 410. */

import { type Event, RULES_CHANGED } from '../db/events.ts'
import { eventRecorder } from '../db/history.ts'
import { type Authored, authoredWrite, perConnection, subject } from '../db/subject.ts'
import type { Code } from '../lib/code.ts'

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

interface ModeratedLink {
  linkId: number
  accountId: number
  code: Code
}

const linksByCode = perConnection((db) => {
  const find = db.prepare<ModeratedLink, [Code]>(
    'SELECT id AS linkId, account_id AS accountId, code FROM links WHERE code = ?',
  )
  return (code: Code) => find.get(code) ?? undefined
})

const historyOf = (link: ModeratedLink | undefined) => ({
  accountId: link?.accountId ?? 0,
  links: link ? [link.linkId] : [],
})

const eventsOf =
  (kind: 'disabled' | 'enabled') =>
  (
    result: { link: ModeratedLink | undefined } | undefined,
    command: Authored | undefined,
  ): readonly Event[] => {
    if (!result?.link) return RULES_CHANGED
    const event = {
      what: 'link',
      kind,
      ...result.link,
      addresses: [],
      changed: [],
      author: command?.author,
    } as const
    return [event, ...RULES_CHANGED]
  }

/** Disabled links. Once a write has resolved, no redirect follows the old rules. */
export const moderation = subject({
  reads(db) {
    const byCode = db.prepare<DisabledCode, [Code]>(
      `SELECT ${COLUMNS} FROM disabled_codes WHERE code = ?`,
    )
    const among = db.prepare<DisabledCode, [string]>(
      `SELECT ${COLUMNS} FROM disabled_codes WHERE code IN (SELECT value FROM json_each(?))`,
    )
    const page = db.prepare<DisabledCode, [number, number]>(
      `SELECT ${COLUMNS} FROM disabled_codes ORDER BY disabled_at DESC, code LIMIT ? OFFSET ?`,
    )
    const count = db.prepare<{ n: number }, []>('SELECT count(*) AS n FROM disabled_codes')
    return {
      findByCode: (code: Code): DisabledCode | undefined => byCode.get(code) ?? undefined,

      /** The reasons of the disabled ones among the codes. */
      findReasons(codes: readonly Code[]): Map<Code, string> {
        const found = among.all(JSON.stringify(codes))
        return new Map(found.map(({ code, reason }) => [code, reason]))
      },

      /** Newest first. `total` counts all pages. */
      list({ limit, offset }: { limit: number; offset: number }): {
        total: number
        items: DisabledCode[]
      } {
        return { total: count.get()?.n ?? 0, items: page.all(limit, offset) }
      },
    }
  },

  writes: {
    /**
     * A second call changes the reason. Undefined if no link has the code, which is not disabled
     * either: it may be mistyped.
     */
    disable: authoredWrite('owner', {
      prepare(db) {
        const isDisabled = db.prepare<object, [Code]>('SELECT 1 FROM disabled_codes WHERE code = ?')
        const linkOf = linksByCode(db)
        const record = eventRecorder(db)
        const set = db.prepare<null, [Code, string, number]>(
          `INSERT INTO disabled_codes (code, reason, disabled_at) VALUES (?1, ?2, ?3)
           ON CONFLICT (code) DO UPDATE SET reason = ?2`,
        )
        return ({ author, code, reason }: Authored & { code: Code; reason: string }) => {
          const link = linkOf(code)
          if (!link && !isDisabled.get(code)) return undefined
          set.run(code, reason, author.now)
          record({ kind: 'disabled', ...historyOf(link), by: author, after: reason })
          return { link }
        }
      },
      events: eventsOf('disabled'),
    }),

    /** Undefined if the code is not disabled. */
    enable: authoredWrite('owner', {
      prepare(db) {
        const remove = db.prepare<null, [Code]>('DELETE FROM disabled_codes WHERE code = ?')
        const linkOf = linksByCode(db)
        const record = eventRecorder(db)
        return ({ author, code }: Authored & { code: Code }) => {
          if (remove.run(code).changes === 0) return undefined
          const link = linkOf(code)
          record({ kind: 'enabled', ...historyOf(link), by: author })
          return { link }
        }
      },
      events: eventsOf('enabled'),
    }),
  },
})
