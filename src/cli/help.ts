import { listSettings } from '../config.ts'
import { membersOf, operandOf, optionsOf } from './args.ts'
import { COMMANDS, type CommandName, OPERANDS, OPTIONS, type OptionName } from './commands.ts'

const NAMES = Object.keys(COMMANDS) as CommandName[]
const INDENT = '  '

/** `topic`: a command, a group of commands, `settings`, or empty for all commands. */
export function help(topic: string): string {
  if (topic === 'settings') return settingsHelp()
  if (topic === '') return overview()
  const members = membersOf(topic)
  return members.length > 0 ? groupHelp(topic, members) : commandHelp(topic as CommandName)
}

const overview = (): string => `Usage: hopcode [command]

${table(NAMES.map(rowOf))}

hopcode COMMAND --help explains a command.
hopcode help settings lists the settings, which come from the environment.`

const groupHelp = (group: string, members: readonly CommandName[]): string =>
  `Usage: hopcode ${group} SUBCOMMAND\n\n${table(members.map(rowOf))}`

function commandHelp(command: CommandName): string {
  const info: { summary: string; more?: string } = COMMANDS[command]
  const options = optionsOf(command).map((name) => [optionText(name), OPTIONS[name].about] as const)
  const paragraphs = [
    `Usage: hopcode ${usageOf(command)}`,
    `${info.summary.charAt(0).toUpperCase()}${info.summary.slice(1)}.`,
    info.more && wrapped(info.more),
    options.length > 0 && table(options),
  ]
  return paragraphs.filter(Boolean).join('\n\n')
}

const rowOf = (name: CommandName): [string, string] => [
  usageOf(name, { isShort: true }),
  COMMANDS[name].summary,
]

/** `account create --email E --plan P [--json]`; without the optional ones if `isShort`. */
function usageOf(command: CommandName, { isShort = false } = {}): string {
  const operand = operandOf(command)
  const options = optionsOf(command).flatMap((name) => {
    const { type, isOptional } = OPTIONS[name]
    const text = optionText(name)
    if (type !== 'boolean' && !isOptional) return [text]
    return isShort ? [] : [`[${text}]`]
  })
  return [command, ...(operand ? [OPERANDS[operand].shown] : []), ...options].join(' ')
}

function optionText(name: OptionName): string {
  const { value } = OPTIONS[name]
  return value ? `--${name} ${value}` : `--${name}`
}

const LINE_MAX = 90

/** Lines of at most so many characters. */
const wrapped = (text: string): string =>
  text.replace(new RegExp(`(.{1,${LINE_MAX}})( +|$)`, 'g'), '$1\n').trimEnd()

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length))
  return rows.map(([first, second]) => `${INDENT}${first.padEnd(width)}  ${second}`).join('\n')
}

const settingsHelp = (): string =>
  [
    'Settings come from the environment. An empty variable counts as absent.',
    ...listSettings().map(
      ({ name, fallback, meaning }) =>
        `${INDENT}${name} (${fallback})\n${INDENT}${INDENT}${meaning}`,
    ),
  ].join('\n\n')
