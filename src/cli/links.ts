import type { Database } from 'bun:sqlite'
import { inTransaction } from '../db/open.ts'
import { type Clock, isoTime } from '../lib/clock.ts'
import { type Code, toCode } from '../lib/code.ts'
import {
  BAD_REASON,
  ModerationReads,
  moderationWrites,
  parseReason,
} from '../moderation/moderation.ts'
import { CommandError, UsageError } from './args.ts'

/**
 * Commands that disable links and restore them. Each returns what it prints. A running service
 * applies them within a second.
 */

const LIST_MAX = 1_000_000

export function disable(
  db: Database,
  clock: Clock,
  { code: text, reason: given }: { code: string; reason: string },
): string {
  const code = codeOf(text)
  const reason = parseReason(given)
  if (reason === undefined) throw new UsageError(`--reason ${BAD_REASON}`)
  const command = { code, reason, now: clock() }
  const found = inTransaction(db, () => moderationWrites(db).disableCode(command))
  if (!found) throw new CommandError(`no link has the code ${code}`)
  return `${code} is disabled: visitors get 410, and nobody can claim it.`
}

export function enable(db: Database, { code: text }: { code: string }): string {
  const code = codeOf(text)
  const found = inTransaction(db, () => moderationWrites(db).enableCode({ code }))
  if (!found) throw new CommandError(`${code} is not disabled`)
  return `${code} is enabled.`
}

/** One line for each code, the newest first. */
export function list(db: Database, { json }: { json: boolean }): string {
  const { items } = new ModerationReads(db).list({ limit: LIST_MAX, offset: 0 })
  const lines = items.map(({ code, reason, disabledAt }) => {
    const disabled_at = isoTime(disabledAt)
    return json
      ? JSON.stringify({ code, reason, disabled_at })
      : `${code}  since ${disabled_at}  ${reason}`
  })
  return lines.length === 0 && !json ? 'No disabled codes.' : lines.join('\n')
}

function codeOf(text: string): Code {
  const code = toCode(text)
  if (!code) throw new UsageError(`a code has 6 to 20 letters and digits, unlike ${text}`)
  return code
}
