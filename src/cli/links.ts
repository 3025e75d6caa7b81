import type { Command } from '@commander-js/extra-typings'
import { isoTime } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import { ModerationReads } from '../moderation/moderation.ts'
import { type Administration, administer } from './administration.ts'
import { CommandError } from './errors.ts'
import { type Flag, JSON_LINES, parseCode, parseReason } from './options.ts'

/** Commands that disable links. A running service applies them within a second. */
export function addLinkCommands(program: Command): void {
  const link = program.command('link').description('links that must not redirect')
  link
    .command('disable')
    .description('answer visitors of the code with 410; nobody can claim it')
    .argument('<CODE>', 'of the link', parseCode)
    .requiredOption(
      '--reason <TEXT>',
      'shown to the account of the link, not to visitors',
      parseReason,
    )
    .action((code, { reason }) => administer((deps) => disable(deps, { code, reason })))
  link
    .command('enable')
    .description('redirect visitors of the code again')
    .argument('<CODE>', 'of the link', parseCode)
    .action((code) => administer((deps) => enable(deps, { code })))
  link
    .command('disabled')
    .description('list the disabled codes with their reasons')
    .option(...JSON_LINES)
    .action((options) => administer(({ db }) => list(db, options), { reads: true }))
}

const LIST_MAX = 1_000_000

export async function disable(
  { writer, clock }: Pick<Administration, 'writer' | 'clock'>,
  { code, reason }: { code: Code; reason: string },
): Promise<string> {
  const found = await writer.call('disableCode', { code, reason, now: clock() })
  if (!found) throw new CommandError(`no link has the code ${code}`)
  return `${code} is disabled: visitors get 410, and nobody can claim it.`
}

export async function enable(
  { writer }: Pick<Administration, 'writer'>,
  { code }: { code: Code },
): Promise<string> {
  const found = await writer.call('enableCode', { code })
  if (!found) throw new CommandError(`${code} is not disabled`)
  return `${code} is enabled.`
}

/** One line for each code, the newest first. */
export function list(db: Administration['db'], { json }: { json?: Flag }): string {
  const { items } = new ModerationReads(db).list({ limit: LIST_MAX, offset: 0 })
  const lines = items.map(({ code, reason, disabledAt }) => {
    const disabled_at = isoTime(disabledAt)
    return json
      ? JSON.stringify({ code, reason, disabled_at })
      : `${code}  since ${disabled_at}  ${reason}`
  })
  return lines.length === 0 && !json ? 'No disabled codes.' : lines.join('\n')
}
