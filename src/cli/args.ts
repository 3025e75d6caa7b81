import { parseArgs } from 'node:util'
import { z } from 'zod'
import { PLANS } from '../accounts/plans.ts'
import { MINUTE } from '../lib/clock.ts'
import { findClosest } from '../lib/closest.ts'
import {
  COMMANDS,
  type Command,
  type CommandName,
  OPERANDS,
  OPTIONS,
  type OptionName,
} from './commands.ts'

/**
 * The command line is wrong. The message is for the user; `topic` names the help page that explains
 * it.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly topic: string

  constructor(message: string, topic = '') {
    super(message)
    this.topic = topic
  }
}

/** A command cannot be carried out. The message is for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}

type Values = Partial<Record<string, string | true>>

/** `argv`: the words after the program's name. Throws UsageError. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, words } = parse(argv)
  if (values.help) return { command: 'help', topic: requireTopic(words) }
  if (values.version) return { command: 'version' }
  if (words[0] === 'help') return { command: 'help', topic: requireTopic(words.slice(1)) }
  const command = findCommand(words)
  const accepted: readonly string[] = COMMANDS[command].accepts
  // Before the operands: the value of an unknown option looks like one.
  for (const option of Object.keys(values)) {
    if (accepted.includes(option)) continue
    if (isOption(option)) throw new UsageError(`${command} accepts no --${option}`, command)
    const closest = findClosest(option, optionsOf(command))
    throw new UsageError(`unknown option '--${option}'${suggestion(closest, '--')}`, command)
  }
  const operand = readOperand(command, words)
  const found = accepted.map((argument) => {
    return [argument, isOption(argument) ? readOption(argument, values, command) : operand]
  })
  return { command, ...Object.fromEntries(found) } as Command
}

const suggestion = (closest: string | undefined, prefix = ''): string =>
  closest === undefined ? '' : `. Did you mean ${prefix}${closest}?`

function readOption(option: OptionName, values: Values, command: CommandName): string | boolean {
  const refuse = (problem: string): never => {
    throw new UsageError(`--${option} ${problem}`, command)
  }
  const { type, isOptional } = OPTIONS[option]
  const text = values[option]
  if (type === 'boolean') {
    return typeof text === 'string' ? refuse(`accepts no value, got ${text}`) : text === true
  }
  if (text === undefined && isOptional) return ''
  if (text === undefined) return refuse('is missing')
  if (text === true || text === '') return refuse('needs a value')
  if (option === 'email' && !z.email().max(254).safeParse(text).success) {
    return refuse(`must be an e-mail address (got ${text})`)
  }
  if (option === 'plan' && !(PLANS as readonly string[]).includes(text)) {
    return refuse(`must be one of ${PLANS.join(', ')} (got ${text})`)
  }
  return text
}

function findCommand(words: readonly string[]): CommandName {
  if (words.length === 0) return 'serve'
  const [first = '', second = ''] = words
  const found = [`${first} ${second}`, first].find(isCommand)
  if (!found) throw unknownCommand(words)
  return found
}

/** The word after the command; empty if there is none. */
function readOperand(command: CommandName, words: readonly string[]): string {
  const [operand = '', ...more] = words.slice(command.split(' ').length)
  const name = operandOf(command)
  const missing = name && OPERANDS[name].missing
  if (operand === '' && missing) throw new UsageError(`${command} needs ${missing}`, command)
  const extra = name ? more[0] : operand
  if (extra) {
    const accepts = name ? `one ${name}, not also ${extra}` : `no argument, got ${extra}`
    throw new UsageError(`${command} accepts ${accepts}`, command)
  }
  return operand
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name)

const isOption = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name)

export function operandOf(command: CommandName): keyof typeof OPERANDS | undefined {
  const accepts: readonly string[] = COMMANDS[command].accepts
  return accepts.find((name): name is keyof typeof OPERANDS => Object.hasOwn(OPERANDS, name))
}

export function optionsOf(command: CommandName): OptionName[] {
  const accepts: readonly string[] = COMMANDS[command].accepts
  return accepts.filter(isOption)
}

/** The commands of a group like `account`; empty for another word. */
export const membersOf = (group: string): CommandName[] =>
  Object.keys(COMMANDS)
    .filter(isCommand)
    .filter((name) => name.startsWith(`${group} `))

const GROUPS = [...new Set(Object.keys(COMMANDS).map((name) => name.split(' ')[0] ?? ''))]

function unknownCommand(words: readonly string[]): UsageError {
  const [group = ''] = words
  const members = membersOf(group)
  if (words.length === 1 && members.length > 0) {
    return new UsageError(`${group} needs a subcommand: ${members.join(', ')}`, group)
  }
  const typed = words.slice(0, 2).join(' ')
  const closest =
    findClosest(typed, Object.keys(COMMANDS)) ??
    (members.length > 0 ? undefined : findClosest(group, GROUPS))
  if (closest) return new UsageError(`unknown command: ${typed}${suggestion(closest)}`)
  if (members.length === 0) return new UsageError(`unknown command: ${typed}`)
  return new UsageError(`unknown command: ${typed}. There are: ${members.join(', ')}`, group)
}

/** A command, a group or `settings`; empty for all commands. Throws UsageError for another word. */
function requireTopic(words: readonly string[]): string {
  const [first = '', second = ''] = words
  const command = `${first} ${second}`
  if (isCommand(command)) return command
  if (first === '' || first === 'settings' || isCommand(first)) return first
  if (second === '' && membersOf(first).length > 0) return first
  throw unknownCommand(words)
}

/** Not strict, because the messages of `parseArgs` are for programmers. */
function parse(argv: readonly string[]): { values: Values; words: string[] } {
  const { tokens } = parseArgs({
    args: [...argv],
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const values: Values = {}
  const words: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, value, inlineValue } = token
    // Such a word is an option, and not the value of the option before it.
    const looksLikeOption = !inlineValue && /^-./.test(value ?? '')
    if (looksLikeOption) throw new UsageError(`--${name} needs a value`)
    values[name] = value ?? true
  }
  return { values, words }
}

/**
 * An ISO 8601 time, or a span from now: `30m`, `2h`, `1d`. Throws UsageError for a time in the
 * past.
 */
export function parseUntil(text: string, now: number): number {
  const span = /^(\d{1,4})([mhd])$/.exec(text)
  const minutes = { m: 1, h: 60, d: 24 * 60 }[span?.[2] ?? '']
  const until = span && minutes ? now + Number(span[1]) * minutes * MINUTE : isoMs(text)
  if (Number.isNaN(until)) {
    throw new UsageError(`--until must be an ISO 8601 time or a span like 30m or 2h, not ${text}`)
  }
  if (until <= now) throw new UsageError('--until must be in the future')
  return until
}

/** Only full dates: `Date.parse` alone would accept "1" or "May". */
function isoMs(text: string): number {
  return /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
