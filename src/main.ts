import { OneTimeLinkStore } from './accounts/one-time-links.ts'
import * as accountCommands from './cli/accounts.ts'
import { type Command, parseCommand, USAGE, UsageError } from './cli/args.ts'
import { backup, STREAM } from './cli/backup.ts'
import { check } from './cli/check.ts'
import { CommandError } from './cli/command-error.ts'
import { health } from './cli/health.ts'
import * as linkCommands from './cli/links.ts'
import * as maintenance from './cli/maintenance.ts'
import { finishInterruptedRestore, restore } from './cli/restore.ts'
import { serve } from './cli/serve.ts'
import { ConfigError, readConfig } from './config.ts'
import { type DataFolder, openDataFolder, refuseLinks } from './data-folder.ts'
import { SettingStore } from './db/settings.ts'
import { cFunction } from './lib/c-library.ts'
import { wallClock } from './lib/clock.ts'
import { DataError } from './lib/data-error.ts'
import { diskRefusal } from './lib/disk-refusal.ts'
import { print, printError } from './lib/log.ts'
import { secureRandom } from './lib/random.ts'
import { messageOf } from './lib/thread.ts'
import { VERSION } from './lib/version.ts'
import { MaintenanceMode } from './maintenance/mode.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Without a handler they would end the process at once; other programs send them by habit. */
const IGNORED_SIGNALS = ['SIGUSR1', 'SIGUSR2'] as const

async function run(command: Command): Promise<void> {
  if (command.name === 'serve') await serveUntilSignal()
  else if (isDataCommand(command)) await tend(command)
  else print(await answer(command))
}

type DataCommand = Extract<Command, { name: 'backup' | 'restore' | 'check' }>

const isDataCommand = (command: Command): command is DataCommand =>
  ['backup', 'restore', 'check'].includes(command.name)

/** Commands on the data folder as a whole: unlike the others, they bring nothing up to date. */
async function tend(command: DataCommand): Promise<void> {
  const { dataDir } = readConfig()
  finishRestore(dataDir)
  if (command.name === 'restore') return print(await restore(dataDir, command.file, wallClock))
  if (command.name === 'backup') {
    const words = await backup(dataDir, command.file, wallClock)
    // Standard output may be the backup itself.
    return command.file === STREAM ? printError(words) : print(words)
  }
  const { ok, text } = await check(dataDir, command)
  print(text)
  if (!ok) process.exit(EXIT_FAILED)
}

function finishRestore(dataDir: string): void {
  refuseLinks(dataDir)
  const words = finishInterruptedRestore(dataDir)
  if (!words) return
  printError(`hopcode: ${words}`)
  // What it moved into place has not been looked at yet.
  refuseLinks(dataDir)
}

async function answer(command: Exclude<Command, { name: 'serve' } | DataCommand>): Promise<string> {
  if (command.name === 'help') return USAGE
  if (command.name === 'version') return VERSION
  const config = readConfig()
  if (command.name === 'health') return health(config)
  finishRestore(config.dataDir)
  const folder = openDataFolder(config.dataDir)
  try {
    return administer(command, folder, config.baseUrl)
  } finally {
    folder.db.close()
  }
}

type AdminCommand = Exclude<
  Command,
  { name: 'help' | 'version' | 'health' | 'serve' } | DataCommand
>

function administer(
  command: AdminCommand,
  { db, accounts, hasher }: DataFolder,
  baseUrl: string,
): string {
  const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
  const linkDeps = { ...deps, baseUrl, oneTimeLinks: new OneTimeLinkStore(db) }
  const mode = new MaintenanceMode(new SettingStore(db), wallClock)
  switch (command.name) {
    case 'account create':
      return accountCommands.createAccount(deps, command)
    case 'account list':
      return accountCommands.listAccounts(deps, command)
    case 'account set-plan':
      return accountCommands.setPlan(deps, command)
    case 'account reset-password':
      return accountCommands.resetPassword(linkDeps, command)
    case 'account reset-two-factor':
      return accountCommands.resetTwoFactor(deps, command)
    case 'account setup-link':
      return accountCommands.setupLink(linkDeps, command)
    case 'account disable':
      return accountCommands.disableAccount(db, deps, command)
    case 'account enable':
      return accountCommands.enableAccount(db, deps, command)
    case 'link disable':
      return linkCommands.disable(db, wallClock, command)
    case 'link enable':
      return linkCommands.enable(db, command)
    case 'link disabled':
      return linkCommands.list(db, command)
    case 'key rotate':
      return accountCommands.rotate(deps, command)
    case 'key revoke':
      return accountCommands.revoke(deps, command)
    case 'maintenance on':
      return maintenance.begin(mode, wallClock, command.until)
    case 'maintenance off':
      return maintenance.end(mode)
    case 'maintenance status':
      return maintenance.show(mode)
  }
}

async function serveUntilSignal(): Promise<void> {
  // Listened to before the start: a signal that comes during it stops the service right after it.
  const signalled = new Promise<void>((resolve) => {
    // A second signal changes nothing: the deadline ends the stop anyway.
    for (const signal of STOP_SIGNALS) process.on(signal, () => resolve())
  })
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => {})
  const config = readConfig()
  finishRestore(config.dataDir)
  const stop = await serve(config)
  await signalled
  if (await stop()) process.exit(0)
  exitAtOnce(EXIT_FAILED)
}

/**
 * Bun closes every database as it exits, and so waits for a disk that hangs. This does not: what is
 * acknowledged is on disk, and the next start finds the rest as after a crash.
 */
function exitAtOnce(code: number): never {
  cFunction<(code: number) => void>('_exit', { args: ['i32'], returns: 'void' })?.(code)
  process.exit(code)
}

function fail(error: unknown): never {
  if (error instanceof UsageError) {
    printError(`hopcode: ${error.message}\nTry: hopcode --help`)
    process.exit(EXIT_USAGE)
  }
  const refusal = diskRefusal(error)
  if (refusal) {
    printError(`hopcode: ${refusal}: ${messageOf(error)}`)
    process.exit(EXIT_FAILED)
  }
  const expected = [ConfigError, DataError, CommandError].some((kind) => error instanceof kind)
  printError(`hopcode: ${expected ? (error as Error).message : Bun.inspect(error)}`)
  process.exit(EXIT_FAILED)
}

// Of all threads: whatever this program creates is for its own user. The images set their own mode.
process.umask(0o077)
try {
  await run(parseCommand(process.argv.slice(2)))
} catch (error) {
  fail(error)
}
