import { parseArgs } from 'node:util'
import { z } from 'zod'
import { PLANS, type Plan } from '../accounts/plans.ts'
import { MINUTE } from '../lib/clock.ts'

/** What each command accepts, in the order in which missing arguments are reported. */
const COMMANDS = {
  serve: [],
  help: [],
  version: [],
  health: [],
  'account create': ['email', 'plan', 'json'],
  'account list': ['json'],
  'account set-plan': ['email', 'plan'],
  'account reset-password': ['email', 'json'],
  'account reset-two-factor': ['email'],
  'account setup-link': ['json'],
  'account disable': ['email', 'links'],
  'account enable': ['email'],
  'link disable': ['code', 'reason'],
  'link enable': ['code'],
  'link disabled': ['json'],
  'key rotate': ['email', 'now', 'json'],
  'key revoke': ['email', 'now'],
  'maintenance on': ['until'],
  'maintenance off': [],
  'maintenance status': [],
  backup: ['file'],
  restore: ['file'],
  check: ['json'],
  shorten: ['url', 'json'],
  links: ['text', 'json'],
  qr: ['code', 'out'],
} as const

type CommandName = keyof typeof COMMANDS

interface Arguments {
  /** These follow the name of the command; the others are options. */
  file: string
  code: string
  url: string
  /** Empty if absent. */
  text: string
  /** A file, or - for standard output. Empty if absent. */
  out: string
  email: string
  plan: Plan
  until: string
  reason: string
  links: boolean
  now: boolean
  json: boolean
}

/** A command line: the command's name and its arguments. */
export type Command = {
  [Name in CommandName]: { name: Name } & Pick<Arguments, (typeof COMMANDS)[Name][number]>
}[CommandName]

/** The command line makes no sense. The message is for the person who typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command cannot be carried out. The message is for the person who typed it. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
}

export const USAGE = `Usage: hopcode [command]

  serve                                   run the service (also without a command)
  account create --email E --plan P       create an account, show its API key; --json for one line
  account list                            accounts with their plans; --json for one line each
  account set-plan --email E --plan P     change a plan (free, pro, enterprise)
  account reset-password --email E        show a link that sets a new password, once; --json
  account reset-two-factor --email E      turn two-factor sign-in off, when the device is lost
  account setup-link                      show a link that creates the owner account, once; --json
  account disable --email E               refuse its keys and its sign-in; --links stops its links
  account enable --email E                accept its keys and sign-in again; its links work too
  link disable CODE --reason TEXT         answer visitors of the code 410; nobody can claim it
  link enable CODE                        redirect its visitors again
  link disabled                           disabled codes with reasons; --json for one line each
  key rotate --email E                    show a new key; the old one works for 24 more hours
  key revoke --email E                    the key expires in 24 hours, without a new one
      --now                               the old key expires immediately; rotate accepts --json too
  maintenance on --until T                answer 503 until T: an ISO 8601 time, or 30m, 2h from now
  maintenance off | status
  backup FILE                             write a backup (safe while running); - is standard output
  restore FILE                            restore a backup; - is standard input
  check                                   check data integrity (safe while running); --json
  health                                  exit 0 if the service on this machine is ready
  shorten URL                             shorten a URL with a remote service; --json
  links [TEXT]                            your links, or those that contain the text; --json
  qr CODE                                 save the QR code as CODE.png; --out FILE.svg, or --out -
  --help, --version

The last three call the service at HOPCODE_URL (default: BASE_URL) with the key HOPCODE_API_KEY.
Settings come from the environment: PORT, HOST, BASE_URL, DATA_DIR and more, see the README.`

const OPTIONS = {
  email: { type: 'string' },
  plan: { type: 'string' },
  until: { type: 'string' },
  reason: { type: 'string' },
  out: { type: 'string' },
  links: { type: 'boolean' },
  now: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

/** What a command says when it is missing. */
const OPERANDS = {
  file: 'a file, or - for a pipe',
  code: 'a code',
  url: 'a URL',
  text: undefined,
} as const

/** `argv`: the words after the program's name. Throws UsageError. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, positionals } = parse(argv)
  if (values.help) return { name: 'help' }
  if (values.version) return { name: 'version' }
  const { name, operand } = nameAndOperand(positionals)
  const accepted: readonly string[] = COMMANDS[name]
  for (const option of Object.keys(values)) {
    if (!accepted.includes(option)) throw new UsageError(`${name} accepts no --${option}`)
  }
  const read = (argument: string) => {
    if (argument in OPERANDS) return operand
    return readOption(argument as keyof typeof values, values)
  }
  const found = accepted.map((argument) => [argument, read(argument)])
  return { name, ...Object.fromEntries(found) } as Command
}

function readOption(option: keyof typeof OPTIONS, values: ReturnType<typeof parse>['values']) {
  if (OPTIONS[option].type === 'boolean') return values[option] === true
  const text = values[option]
  if (option === 'out') return text ?? ''
  if (typeof text !== 'string') throw new UsageError(`--${option} is missing`)
  if (option === 'email' && !z.email().max(254).safeParse(text).success) {
    throw new UsageError(`--email must be an e-mail address, not ${text}`)
  }
  if (option === 'plan' && !(PLANS as readonly string[]).includes(text)) {
    throw new UsageError(`--plan must be one of ${PLANS.join(', ')}, not ${text}`)
  }
  return text
}

function nameAndOperand(words: readonly string[]): { name: CommandName; operand: string } {
  for (const count of [2, 1]) {
    const name = words.slice(0, count).join(' ')
    const operandName = operandOf(name)
    if (!operandName || !isCommand(name)) continue
    const [operand, ...more] = words.slice(count)
    const missing = OPERANDS[operandName]
    if (!operand && missing) throw new UsageError(`${name} needs ${missing}`)
    if (more.length > 0) {
      throw new UsageError(`${name} accepts one ${operandName}, not also ${more[0]}`)
    }
    return { name, operand: operand ?? '' }
  }
  const name = words.join(' ') || 'serve'
  if (isCommand(name)) return { name, operand: '' }
  const members = Object.keys(COMMANDS).filter((known) => known.startsWith(`${words[0]} `))
  if (members.length === 0) throw new UsageError(`unknown command: ${name}`)
  throw new UsageError(`unknown command: ${name}. There are: ${members.join(', ')}`)
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name)

const isOperand = (argument: string | undefined): argument is keyof typeof OPERANDS =>
  argument !== undefined && Object.hasOwn(OPERANDS, argument)

function operandOf(name: string): keyof typeof OPERANDS | undefined {
  const [first] = isCommand(name) ? COMMANDS[name] : []
  return isOperand(first) ? first : undefined
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    // The first sentence names the option; the others are about positional arguments.
    const [sentence = ''] = (error as Error).message.split('. ')
    throw new UsageError(sentence.replace(/^Unknown option/, 'unknown option'))
  }
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
