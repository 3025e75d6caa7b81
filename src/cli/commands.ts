import type { Plan } from '../accounts/plans.ts'

/** The commands, their arguments and their help. */

interface CommandInfo {
  /** In the order in which missing arguments are reported. */
  accepts: readonly ArgumentName[]
  summary: string
  /** Further sentences for `hopcode COMMAND --help`. */
  more?: string
}

interface Arguments {
  /** These follow the name of the command; the others are options. */
  file: string
  code: string
  url: string
  /** Empty if absent. */
  text: string
  /** Of `help`: a command, a group of commands, or `settings`. Empty for all commands. */
  topic: string
  /** A file, or - for standard output. Empty if absent. */
  out: string
  email: string
  plan: Plan
  /** Of an API key. Empty if absent. */
  name: string
  until: string
  reason: string
  links: boolean
  another: boolean
  /** A file with a backup; empty or - for standard input. */
  source: string
  /** The id or name of a host of a cluster. Empty if absent. */
  host: string
  /** Removes a host that was in contact a moment ago. */
  force: boolean
  'for-join': boolean
  now: boolean
  json: boolean
}

type ArgumentName = keyof Arguments

/** `missing`: the end of "needs …"; undefined if the argument may be absent. */
export const OPERANDS = {
  file: { shown: 'FILE', missing: 'a file, or - for a pipe' },
  code: { shown: 'CODE', missing: 'a code' },
  url: { shown: 'URL', missing: 'a URL' },
  text: { shown: '[TEXT]', missing: undefined },
  source: { shown: '[FILE]', missing: undefined },
  topic: { shown: '[COMMAND]', missing: undefined },
} as const

export type OptionName = Exclude<ArgumentName, keyof typeof OPERANDS> | 'help' | 'version'

interface OptionInfo {
  type: 'string' | 'boolean'
  short?: string
  /** The value as help shows it. */
  value?: string
  /** May be absent, although it has a value. */
  isOptional?: boolean
  about: string
}

export const OPTIONS: Readonly<Record<OptionName, OptionInfo>> = {
  email: { type: 'string', value: 'E', about: 'the e-mail address of the account' },
  plan: { type: 'string', value: 'P', about: 'free, pro or enterprise' },
  name: {
    type: 'string',
    value: 'N',
    isOptional: true,
    about: 'the name of the API key; needed if the account has several',
  },
  until: { type: 'string', value: 'T', about: 'an ISO 8601 time, or 30m, 2h, 1d from now' },
  reason: { type: 'string', value: 'TEXT', about: 'shown to the link’s account, not to visitors' },
  out: {
    type: 'string',
    value: 'FILE',
    isOptional: true,
    about: 'the file to write: PNG, or SVG if it ends with .svg; - is standard output',
  },
  host: {
    type: 'string',
    value: 'ID',
    isOptional: true,
    about: 'remove a lost host instead of this one, by its id or name',
  },
  force: {
    type: 'boolean',
    about: 'with --host: also if it was in contact in the last ten minutes',
  },
  'for-join': {
    type: 'boolean',
    about: 'for “hopcode cluster join”: the copy continues with the log of the cluster',
  },
  links: { type: 'boolean', about: 'disable its links too: visitors get 410' },
  another: { type: 'boolean', about: 'create a further owner account beside the existing one' },
  now: { type: 'boolean', about: 'the old key expires immediately, not in 24 hours' },
  json: { type: 'boolean', about: 'print JSON, one object per line' },
  help: { type: 'boolean', short: 'h', about: 'explain the command' },
  version: { type: 'boolean', short: 'v', about: 'print the version' },
}

const ANY_KEY =
  'With several keys, --name chooses one; without it the command changes nothing and lists the ' +
  'names. With one key, --name is not needed.'
const REMOTE =
  'It calls the service at HOPCODE_URL with the API key HOPCODE_API_KEY. Without HOPCODE_URL, it ' +
  'calls the service that uses DATA_DIR on this machine.'

export const COMMANDS = {
  serve: {
    accepts: [],
    summary: 'run the service (also without a command)',
    more: 'SIGTERM, SIGINT or SIGHUP stop it. Settings: hopcode help settings',
  },
  'account create': {
    accepts: ['email', 'plan', 'json'],
    summary: 'create an account and show its API key',
  },
  'account list': { accepts: ['json'], summary: 'list the accounts with their plans' },
  'account set-plan': { accepts: ['email', 'plan'], summary: 'change the plan of an account' },
  'account reset-password': {
    accepts: ['email', 'json'],
    summary: 'show a link that sets a new password, once',
  },
  'account reset-two-factor': {
    accepts: ['email'],
    summary: 'turn two-factor sign-in off if the device is lost',
  },
  'account setup-link': {
    accepts: ['another', 'json'],
    summary: 'show a link that creates the owner account, once',
    more: 'If there is an owner already, it needs --another.',
  },
  'account disable': {
    accepts: ['email', 'links'],
    summary: 'refuse the API keys and the sign-in of an account',
  },
  'account enable': {
    accepts: ['email'],
    summary: 'accept its keys and sign-in again; its links work too',
  },
  'link disable': {
    accepts: ['code', 'reason'],
    summary: 'answer visitors of the code with 410; nobody can claim it',
  },
  'link enable': { accepts: ['code'], summary: 'redirect visitors of the code again' },
  'link disabled': { accepts: ['json'], summary: 'list the disabled codes with their reasons' },
  'key rotate': {
    accepts: ['email', 'name', 'now', 'json'],
    summary: 'show a new API key; the old one works for 24 more hours',
    more: `The new key has the name and the access of the old one. ${ANY_KEY}`,
  },
  'key revoke': {
    accepts: ['email', 'name', 'now'],
    summary: 'let an API key expire in 24 hours, without a new one',
    more: ANY_KEY,
  },
  'maintenance on': {
    accepts: ['until'],
    summary: 'answer API requests with 503; short links still work',
  },
  'maintenance off': { accepts: [], summary: 'end maintenance' },
  'maintenance status': { accepts: [], summary: 'show whether maintenance is on' },
  'cluster init': {
    accepts: [],
    summary: 'create a cluster with the data of this host',
    more:
      'It creates the tables in the PostgreSQL database of CLUSTER_URL. Run it again after an ' +
      'upgrade that says so. Stop the service first.',
  },
  'cluster join': {
    accepts: ['source'],
    summary: 'add this host to a cluster, with a copy of another host',
    more:
      'On the new host: ssh HOST hopcode backup --for-join - | hopcode cluster join. DATA_DIR is ' +
      'empty, or the host belongs to the cluster: then its database is replaced. Stop it first.',
  },
  'cluster status': {
    accepts: ['json'],
    summary: 'show the hosts of the cluster, its log, and what to do',
    more: 'Exit 1 if something needs attention.',
  },
  'cluster leave': {
    accepts: ['host', 'force'],
    summary: 'remove this host, or a lost one, from its cluster',
    more:
      'This host keeps its data and works alone again: stop its service first, and start it ' +
      'without CLUSTER_URL. If PostgreSQL is lost, run it without CLUSTER_URL.',
  },
  backup: {
    accepts: ['file', 'for-join'],
    summary: 'write a backup (safe while running); - is standard output',
    more: 'The file contains the secret key: keep it as safe as the service.',
  },
  restore: {
    accepts: ['file'],
    summary: 'restore a backup; - is standard input',
    more: 'Stop the service first. The old files of DATA_DIR are kept in a folder of their own.',
  },
  check: { accepts: ['json'], summary: 'check data integrity (safe while running)' },
  health: { accepts: [], summary: 'exit 0 if the service on this machine is ready' },
  shorten: {
    accepts: ['url', 'json'],
    summary: 'shorten a URL with a service',
    more: REMOTE,
  },
  links: {
    accepts: ['text', 'json'],
    summary: 'list your links, or those that contain the text',
    more: REMOTE,
  },
  qr: { accepts: ['code', 'out'], summary: 'save the QR code as CODE.png', more: REMOTE },
  help: { accepts: ['topic'], summary: 'explain a command, or with “settings” the settings' },
  version: { accepts: [], summary: 'print the version' },
} as const satisfies Record<string, CommandInfo>

export type CommandName = keyof typeof COMMANDS

/** A command line: the command's name and its arguments. */
export type Command = {
  [Name in CommandName]: { command: Name } & Pick<
    Arguments,
    (typeof COMMANDS)[Name]['accepts'][number]
  >
}[CommandName]
