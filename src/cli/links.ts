import type { Database } from 'bun:sqlite'
import { type Clock, isoTime } from '../lib/clock.ts'
import { type Code, toCode } from '../lib/code.ts'
import { BAD_REASON, ModerationReads, parseReason } from '../moderation/moderation.ts'
import { CommandError, UsageError } from './args.ts'
import type { CommandWriter } from './writer.ts'

/**
 * Commands that disable links and restore them. Each returns what it prints. A running service
 * applies them within a second.
 */

const LIST_MAX = 1_000_000

export async function disable(
  { writer, clock }: { writer: CommandWriter; clock: Clock },
  { code: text, reason: given }: { code: string; reason: string },
): Promise<string> {
  const code = codeOf(text)
  const reason = parseReason(given)
  if (reason === undefined) throw new UsageError(`--reason ${BAD_REASON}`)
  const found = await writer.call('disableCode', { code, reason, now: clock() })
  if (!found) throw new CommandError(`no link has the code ${code}`)
  return `${code} is disabled: visitors get 410, and nobody can claim it.`
}

export async function enable(
  { writer }: { writer: CommandWriter },
  { code: text }: { code: string },
): Promise<string> {
  const code = codeOf(text)
  const found = await writer.call('enableCode', { code })
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
  if (!code) throw new UsageError(`${text} is not a code: a code has 6 to 20 letters and digits`)
  return code
}
