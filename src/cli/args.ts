import { parseArgs } from 'node:util'
import { z } from 'zod'
import { PLANS, type Plan } from '../accounts/plans.ts'
import { MINUTE } from '../lib/clock.ts'

/** What a command line asks for. */
export type Command =
  | { name: 'serve' }
  | { name: 'help' }
  | { name: 'version' }
  | { name: 'health' }
  | { name: 'account create'; email: string; plan: Plan; json: boolean }
  | { name: 'account list'; json: boolean }
  | { name: 'account set-plan'; email: string; plan: Plan }
  | { name: 'account reset-password'; email: string; json: boolean }
  | { name: 'account reset-two-factor'; email: string }
  | { name: 'account setup-link'; json: boolean }
  | { name: 'account disable'; email: string; links: boolean }
  | { name: 'account enable'; email: string }
  | { name: 'link disable'; code: string; reason: string }
  | { name: 'link enable'; code: string }
  | { name: 'link disabled'; json: boolean }
  | { name: 'key rotate'; email: string; now: boolean; json: boolean }
  | { name: 'key revoke'; email: string; now: boolean }
  | { name: 'maintenance on'; until: string }
  | { name: 'maintenance off' }
  | { name: 'maintenance status' }
  | { name: 'backup'; file: string }
  | { name: 'restore'; file: string }
  | { name: 'check'; json: boolean }

/** The command line makes no sense. The message is for the person who typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const USAGE = `Usage: hopcode [command]

  serve                                   run the service (also without a command)
  account create --email E --plan P       make an account and show its API key; --json for one line
  account list                            accounts with their plans; --json for one line each
  account set-plan --email E --plan P     change a plan (free, pro, enterprise)
  account reset-password --email E        show a link that sets a new password, once; --json
  account reset-two-factor --email E      turn two-factor sign-in off, when the device is lost
  account setup-link                      show a link that sets up the owner's account, once; --json
  account disable --email E               refuse its keys and its sign-in; --links stops its links
  account enable --email E                let it in again; its links work too
  link disable CODE --reason TEXT         answer visitors of the code 410; nobody can claim it
  link enable CODE                        redirect its visitors again
  link disabled                           disabled codes with reasons; --json for one line each
  key rotate --email E                    show a new key; the old one works 24 hours more
  key revoke --email E                    end the key in 24 hours, without a new one
      --now                               end the old key at once; rotate takes --json too
  maintenance on --until T                answer 503 until T: an ISO 8601 time, or 30m, 2h from now
  maintenance off | status
  backup FILE                             write a backup (safe while running); - is standard output
  restore FILE                            restore a backup; - is standard input
  check                                   check data integrity (safe while running); --json
  health                                  exit 0 if the service on this machine is ready
  --help, --version

Settings come from the environment: PORT, HOST, BASE_URL, DATA_DIR and more, see the README.`

const OPTIONS = {
  email: { type: 'string' },
  plan: { type: 'string' },
  until: { type: 'string' },
  reason: { type: 'string' },
  links: { type: 'boolean' },
  now: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

type Values = ReturnType<typeof parse>['values']
type OptionName = keyof typeof OPTIONS

/** What a command says when it is missing. */
const OPERANDS = { file: 'a file, or - for a pipe', code: 'a code' } as const

const COMMANDS: Record<
  string,
  {
    takes: readonly OptionName[]
    /** What follows the command's name. */
    operand?: keyof typeof OPERANDS
    read: (values: Values, operand: string) => Command
  }
> = {
  serve: { takes: [], read: () => ({ name: 'serve' }) },
  help: { takes: [], read: () => ({ name: 'help' }) },
  health: { takes: [], read: () => ({ name: 'health' }) },
  'account create': {
    takes: ['email', 'plan', 'json'],
    read: (values) => ({
      name: 'account create',
      email: emailOf(values),
      plan: planOf(values),
      json: values.json === true,
    }),
  },
  'account list': {
    takes: ['json'],
    read: (values) => ({ name: 'account list', json: values.json === true }),
  },
  'account set-plan': {
    takes: ['email', 'plan'],
    read: (values) => ({
      name: 'account set-plan',
      email: emailOf(values),
      plan: planOf(values),
    }),
  },
  'account reset-password': {
    takes: ['email', 'json'],
    read: (values) => ({
      name: 'account reset-password',
      email: emailOf(values),
      json: values.json === true,
    }),
  },
  'account reset-two-factor': {
    takes: ['email'],
    read: (values) => ({ name: 'account reset-two-factor', email: emailOf(values) }),
  },
  'account setup-link': {
    takes: ['json'],
    read: (values) => ({ name: 'account setup-link', json: values.json === true }),
  },
  'account disable': {
    takes: ['email', 'links'],
    read: (values) => ({
      name: 'account disable',
      email: emailOf(values),
      links: values.links === true,
    }),
  },
  'account enable': {
    takes: ['email'],
    read: (values) => ({ name: 'account enable', email: emailOf(values) }),
  },
  'link disable': {
    takes: ['reason'],
    operand: 'code',
    read: ({ reason }, code) => {
      if (reason === undefined) throw new UsageError('--reason is missing')
      return { name: 'link disable', code, reason }
    },
  },
  'link enable': {
    takes: [],
    operand: 'code',
    read: (_, code) => ({ name: 'link enable', code }),
  },
  'link disabled': {
    takes: ['json'],
    read: ({ json }) => ({ name: 'link disabled', json: json === true }),
  },
  'key rotate': {
    takes: ['email', 'now', 'json'],
    read: (values) => ({
      name: 'key rotate',
      email: emailOf(values),
      now: values.now === true,
      json: values.json === true,
    }),
  },
  'key revoke': {
    takes: ['email', 'now'],
    read: (values) => ({
      name: 'key revoke',
      email: emailOf(values),
      now: values.now === true,
    }),
  },
  'maintenance on': {
    takes: ['until'],
    read: ({ until }) => {
      if (until === undefined) throw new UsageError('--until is missing')
      return { name: 'maintenance on', until }
    },
  },
  'maintenance off': { takes: [], read: () => ({ name: 'maintenance off' }) },
  'maintenance status': { takes: [], read: () => ({ name: 'maintenance status' }) },
  backup: { takes: [], operand: 'file', read: (_, file) => ({ name: 'backup', file }) },
  restore: { takes: [], operand: 'file', read: (_, file) => ({ name: 'restore', file }) },
  check: {
    takes: ['json'],
    read: ({ json }) => ({ name: 'check', json: json === true }),
  },
}

/** `argv`: the words after the program's name. Throws UsageError. */
export function parseCommand(argv: readonly string[]): Command {
  const { values, positionals } = parse(argv)
  if (values.help) return { name: 'help' }
  if (values.version) return { name: 'version' }
  const { name, operand } = nameAndOperand(positionals)
  const command = findCommand(name)
  if (!command) throw new UsageError(`unknown command: ${name}`)
  for (const option of Object.keys(values) as OptionName[]) {
    if (!command.takes.includes(option)) throw new UsageError(`${name} takes no --${option}`)
  }
  return command.read(values, operand)
}

function nameAndOperand(positionals: readonly string[]): { name: string; operand: string } {
  for (const words of [2, 1]) {
    const name = positionals.slice(0, words).join(' ')
    const needed = findCommand(name)?.operand
    if (!needed) continue
    const [operand, ...more] = positionals.slice(words)
    if (!operand) throw new UsageError(`${name} needs ${OPERANDS[needed]}`)
    if (more.length > 0) throw new UsageError(`${name} takes one ${needed}, not also ${more[0]}`)
    return { name, operand }
  }
  return { name: positionals.join(' ') || 'serve', operand: '' }
}

const findCommand = (name: string) => (Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined)

/**
 * An ISO 8601 time, or a span from now: `30m`, `2h`, `1d`. Throws UsageError unless it lies ahead.
 */
export function parseUntil(text: string, now: number): number {
  const span = /^(\d{1,4})([mhd])$/.exec(text)
  const minutes = { m: 1, h: 60, d: 24 * 60 }[span?.[2] ?? '']
  const until = span && minutes ? now + Number(span[1]) * minutes * MINUTE : isoMs(text)
  if (Number.isNaN(until)) {
    throw new UsageError(`--until must be an ISO 8601 time or a span like 30m or 2h, not ${text}`)
  }
  if (until <= now) throw new UsageError('--until must lie ahead')
  return until
}

/** Only full dates: `Date.parse` alone would take "1" or "May". */
function isoMs(text: string): number {
  return /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function emailOf({ email }: Values): string {
  if (email === undefined) throw new UsageError('--email is missing')
  const parsed = z.email().max(254).safeParse(email)
  if (!parsed.success) throw new UsageError(`--email must be an e-mail address, not ${email}`)
  return parsed.data
}

function planOf({ plan }: Values): Plan {
  const found = PLANS.find((name) => name === plan)
  if (!found) throw new UsageError(`--plan must be one of ${PLANS.join(', ')}`)
  return found
}
