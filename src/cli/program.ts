import { Command, type CommandUnknownOpts, Help } from '@commander-js/extra-typings'
import { listSettings } from '../config.ts'
import { DATABASE_VERSION } from '../db/migrate.ts'
import { print, printError } from '../lib/log.ts'
import { VERSION } from '../lib/version.ts'
import { accountCommands, addAccountCommands, addKeyCommands } from './accounts.ts'
import type { Administration } from './administration.ts'
import { addBackupCommand } from './backup.ts'
import { addCertificateCommands, certificateCommands } from './certificate.ts'
import { addCheckCommand } from './check.ts'
import { addClusterCommands } from './cluster.ts'
import { addCompletionCommand } from './completion.ts'
import { addDomainCommands, domainCommands } from './domains.ts'
import { addLinkCommands, linkCommands } from './links.ts'
import { addMemberCommands, memberCommands } from './members.ts'
import { addMovingCommands, type MovingDeps, movingCommands } from './moving.ts'
import { JSON_OBJECT } from './options.ts'
import { addRemoteCommands } from './remote.ts'
import { addRestoreCommand } from './restore.ts'
import { addHealthCommand, addMaintenanceCommands, maintenanceCommands } from './service.ts'
import type { Functions } from './socket.ts'
import { addWebhookCommands, webhookCommands } from './webhooks.ts'

type ServiceFunctions = Functions<Administration & MovingDeps>

interface Group {
  title: string
  /** Commands in the order of help. */
  add: readonly ((program: Command) => void)[]
  /** Those of their functions that run in a running service. */
  functions?: ServiceFunctions
}

const GROUPS: readonly Group[] = [
  {
    title: 'Service:',
    add: [
      addHealthCommand,
      addCheckCommand,
      addMaintenanceCommands,
      addDomainCommands,
      addCertificateCommands,
      addWebhookCommands,
    ],
    functions: {
      ...maintenanceCommands,
      ...domainCommands,
      ...certificateCommands,
      ...webhookCommands,
    },
  },
  {
    title: 'Links:',
    add: [addRemoteCommands, addLinkCommands, addMovingCommands],
    functions: { ...linkCommands, ...movingCommands },
  },
  {
    title: 'Accounts, people and API keys:',
    add: [(program) => addMemberCommands(addAccountCommands(program)), addKeyCommands],
    functions: { ...accountCommands, ...memberCommands },
  },
  { title: 'Backups:', add: [addBackupCommand, addRestoreCommand] },
  { title: 'Several hosts:', add: [addClusterCommands] },
]

export const SERVICE_FUNCTIONS: ServiceFunctions = Object.assign(
  {},
  ...GROUPS.map(({ functions }) => functions),
)

/**
 * The command line. Each command has its definition, its help and its handler in one file. A wrong
 * command line is reported on standard error, and rejects `parseAsync` with a CommanderError.
 */
export function createProgram(serve: () => Promise<void>): Command {
  const program = new Command('hopcode')
    .helpCommand(false)
    .version(VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'explain the command')
    .exitOverride()
    .configureHelp({
      commandUsage: usageOf,
      commandDescription: (command) => sentence(command.description()),
      subcommandTerm: termOf,
      formatHelp,
    })
    .configureOutput({
      writeOut: (text) => print(text.trimEnd()),
      writeErr: (text) => printError(text.trimEnd()),
      outputError: (text, write) =>
        write(
          text.replace(/^error: command-argument/, 'error: the').replace(/^error:/, 'hopcode:'),
        ),
    })
    .addHelpText('beforeAll', ({ command }) => refuseUnknown(command))
    .addHelpText(
      'after',
      `\nhopcode help settings lists the settings, which come from the environment.`,
    )
  program.commandsGroup('Service:')
  program
    .command('serve')
    .summary('run the service (also without a command)')
    .description(
      'Run the service (also without a command). SIGTERM, SIGINT or SIGHUP stop it. Settings: ' +
        'hopcode help settings',
    )
    .action(serve)
  for (const group of GROUPS) {
    program.commandsGroup(group.title)
    for (const add of group.add) add(program)
  }
  program.commandsGroup('Help:')
  program
    .command('help')
    .description('explain a command, or with “settings” the settings')
    .argument('[COMMAND...]')
    .action((words) => {
      if (words[0] === 'settings') print(settingsHelp())
      else program.parse([...words, '--help'], { from: 'user' })
    })
  program
    .command('version')
    .description('print the version')
    .option(...JSON_OBJECT)
    .action(({ json }) => print(json ? JSON.stringify(versions()) : VERSION))
  addCompletionCommand(program)
  for (const command of program.commands) {
    for (const part of descendantsOf(command)) part.helpGroup(command.helpGroup())
  }
  for (const command of [program, ...descendantsOf(program)]) {
    command.showHelpAfterError(`Try: ${pathOf(command)} --help`)
  }
  return program
}

const versions = () => ({
  version: VERSION,
  database_version: DATABASE_VERSION,
  bun: Bun.version,
  platform: `${process.platform}-${process.arch}`,
})

function descendantsOf({ commands }: CommandUnknownOpts): CommandUnknownOpts[] {
  return commands.flatMap((command) => [command, ...descendantsOf(command)])
}

/** Refuses a mistyped command before `--help`, for which commander shows the help of the group. */
function refuseUnknown(group: CommandUnknownOpts): string {
  const [word] = group.args
  if (group.commands.length > 0 && word !== undefined && !word.startsWith('-')) {
    group.error(`error: unknown command '${word}'`)
  }
  return ''
}

/** `hopcode account create` */
function pathOf(command: CommandUnknownOpts): string {
  const { parent } = command
  return parent ? `${pathOf(parent)} ${command.name()}` : command.name()
}

/** `account create --email <E> --plan <P>`, without optional options. */
function termOf(command: CommandUnknownOpts): string {
  const options = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags)
  const operands = command.registeredArguments.map((operand) =>
    operand.required ? operand.name() : `[${operand.name()}]`,
  )
  return [...pathOf(command).split(' ').slice(1), ...operands, ...options].join(' ')
}

function usageOf(command: CommandUnknownOpts): string {
  const hasOptional = command.options.some(({ mandatory }) => !mandatory)
  const rest = command.commands.length > 0 ? 'COMMAND' : hasOptional ? '[options]' : ''
  return ['hopcode', termOf(command), rest].filter(Boolean).join(' ')
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/^$|\.$|: .*$/.test(text) ? '' : '.'}`

/** The commands of groups are listed one by one. */
function formatHelp(command: CommandUnknownOpts, help: Help): string {
  help.visibleCommands = (group) =>
    descendantsOf(group).filter(({ commands }) => commands.length === 0)
  return Help.prototype.formatHelp.call(help, command, help)
}

const settingsHelp = (): string =>
  [
    'Settings come from the environment. An empty variable counts as absent.',
    ...listSettings().map(
      ({ name, fallback, meaning }) => `  ${name} (${fallback})\n    ${meaning}`,
    ),
  ].join('\n\n')
