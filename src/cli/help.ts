import { listSettings } from '../config.ts'
import { membersOf, operandOf } from './args.ts'
import { COMMANDS, type CommandName, OPERANDS, OPTIONS } from './commands.ts'

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

${table(NAMES.map((name) => [usageOf(name), COMMANDS[name].summary]))}

hopcode COMMAND --help explains a command.
hopcode help settings lists the settings, which come from the environment.`

const groupHelp = (group: string, members: readonly CommandName[]): string =>
  `Usage: hopcode ${group} SUBCOMMAND\n\n${table(
    members.map((name) => [usageOf(name), COMMANDS[name].summary]),
  )}`

function commandHelp(command: CommandName): string {
  const info: { summary: string; more?: string } = COMMANDS[command]
  const options = optionsOf(command).map((name): [string, string] => [
    `--${name}${valueText(name)}`,
    OPTIONS[name].about,
  ])
  const paragraphs = [
    `Usage: hopcode ${usageOf(command)}`,
    `${info.summary.charAt(0).toUpperCase()}${info.summary.slice(1)}.`,
    info.more,
    options.length > 0 && table(options),
  ]
  return paragraphs.filter(Boolean).join('\n\n')
}

const optionsOf = (command: CommandName) =>
  (COMMANDS[command].accepts as readonly string[]).filter((name): name is keyof typeof OPTIONS =>
    Object.hasOwn(OPTIONS, name),
  )

/** `account create --email E --plan P [--json]` */
function usageOf(command: CommandName): string {
  const operand = operandOf(command)
  const options = optionsOf(command).map((name) => {
    const { type, isOptional = false }: { type: string; isOptional?: boolean } = OPTIONS[name]
    const text = `--${name}${valueText(name)}`
    return type === 'boolean' || isOptional ? `[${text}]` : text
  })
  return [command, ...(operand ? [OPERANDS[operand].shown] : []), ...options].join(' ')
}

function valueText(name: keyof typeof OPTIONS): string {
  const info = OPTIONS[name]
  return 'value' in info ? ` ${info.value}` : ''
}

/** Wider first columns get a line of their own. */
const COLUMN_MAX = 36

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.min(COLUMN_MAX, Math.max(...rows.map(([first]) => first.length)))
  const lines = rows.map(([first, second]) =>
    first.length <= width
      ? `${INDENT}${first.padEnd(width)}  ${second}`
      : `${INDENT}${first}\n${INDENT}${' '.repeat(width)}  ${second}`,
  )
  return lines.join('\n')
}

const settingsHelp = (): string =>
  [
    'Settings come from the environment. An empty variable counts as absent.',
    ...listSettings().map(
      ({ name, fallback, meaning }) =>
        `${INDENT}${name} (${fallback})\n${INDENT}${INDENT}${meaning}`,
    ),
  ].join('\n\n')
