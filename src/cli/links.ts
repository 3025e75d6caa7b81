import type { Command } from '@commander-js/extra-typings'
import { resolveCode } from '../addresses/resolve.ts'
import { isoTime } from '../lib/clock.ts'
import type { Code } from '../lib/code.ts'
import {
  type Administration,
  operatorOf,
  PAGE,
  type Page,
  type PageOptions,
  printing,
  printPages,
} from './administration.ts'
import { addDestinationsCommand } from './destinations.ts'
import { CommandError } from './errors.ts'
import { addLinkPasswordCommand } from './link-password.ts'
import { type Flag, JSON_LINES, JSON_OBJECT, parseReason, parseText } from './options.ts'

const LINK = ['<LINK>', 'its code, an alias or its short URL', parseText] as const

export function addLinkCommands(program: Command): void {
  const link = program.command('link').description('links that must not redirect, and their rules')
  addDestinationsCommand(link as Command)
  addLinkPasswordCommand(link as Command)
  link
    .command('disable')
    .description('answer visitors of the code with 410; nobody can claim it')
    .argument(...LINK)
    .requiredOption(
      '--reason <TEXT>',
      'shown to the account of the link, not to visitors',
      parseReason,
    )
    .option(...JSON_OBJECT)
    .action((link, options) => run('disableCode', { link, ...options }))
  link
    .command('enable')
    .description('redirect visitors of the code again')
    .argument(...LINK)
    .option(...JSON_OBJECT)
    .action((link, options) => run('enableCode', { link, ...options }))
  link
    .command('disabled')
    .description('list the disabled codes with their reasons')
    .option(...JSON_LINES)
    .action((options) => printPages(linkCommands, 'listDisabled', options))
}

/** What the commands run. Each function returns what is printed. */
export const linkCommands = { disableCode, enableCode, listDisabled }

const run = printing(linkCommands)

async function disableCode(
  administration: Administration,
  { link, reason, json }: { link: string; reason: string; json?: Flag },
): Promise<string> {
  const code = requireCode(administration, link)
  const found = await administration.data.moderation.disable({
    author: operatorOf(administration),
    code,
    reason,
  })
  if (!found) throw new CommandError(`no link has the code ${code}`)
  if (json) return JSON.stringify({ code, disabled: true, reason })
  return `${code} is disabled: visitors get 410, and nobody can claim it.`
}

async function enableCode(
  administration: Administration,
  { link, json }: { link: string; json?: Flag },
): Promise<string> {
  const code = requireCode(administration, link)
  const found = await administration.data.moderation.enable({
    author: operatorOf(administration),
    code,
  })
  if (!found) throw new CommandError(`${code} is not disabled`)
  return json ? JSON.stringify({ code, disabled: false }) : `${code} is enabled.`
}

function requireCode(administration: Administration, text: string): Code {
  const code = resolveCode(administration, text)
  if (code) return code
  throw new CommandError(`no link has the code or address ${text.slice(0, 100)}`)
}

/** One line for each code, the newest first. */
function listDisabled({ data }: Administration, { json, after = 0 }: PageOptions): Page {
  const { items } = data.moderation.list({ limit: PAGE, offset: after })
  const lines = items.map(({ code, reason, disabledAt }) => {
    const disabled_at = isoTime(disabledAt)
    return json
      ? JSON.stringify({ code, reason, disabled_at })
      : `${code}  since ${disabled_at}  ${reason}`
  })
  const next = items.length === PAGE ? after + PAGE : undefined
  return { text: lines.join('\n') || (json || after > 0 ? '' : 'No disabled codes.'), next }
}
