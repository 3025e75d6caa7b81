import { createAccount, listAccounts, revoke, rotate, setPlan } from './cli/accounts.ts'
import { type Command, parseCommand, USAGE, UsageError } from './cli/args.ts'
import { CommandError } from './cli/command-error.ts'
import { health } from './cli/health.ts'
import * as maintenance from './cli/maintenance.ts'
import { serve } from './cli/serve.ts'
import { ConfigError, readConfig } from './config.ts'
import { type DataFolder, openDataFolder } from './data-folder.ts'
import { DataError } from './db/data-error.ts'
import { SettingStore } from './db/settings.ts'
import { wallClock } from './lib/clock.ts'
import { print, printError } from './lib/log.ts'
import { secureRandom } from './lib/random.ts'
import { VERSION } from './lib/version.ts'
import { MaintenanceMode } from './maintenance/mode.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
/** The stop as a whole, whatever a client or the disk does. */
const STOP_DEADLINE_MS = 9000

async function run(command: Command): Promise<void> {
  if (command.name === 'serve') await serveUntilSignal()
  else print(await answer(command))
}

async function answer(command: Exclude<Command, { name: 'serve' }>): Promise<string> {
  if (command.name === 'help') return USAGE
  if (command.name === 'version') return VERSION
  const config = readConfig()
  if (command.name === 'health') return health(config)
  const folder = openDataFolder(config.dataDir)
  try {
    return administer(command, folder)
  } finally {
    folder.db.close()
  }
}

type AdminCommand = Exclude<Command, { name: 'help' | 'version' | 'health' | 'serve' }>

function administer(command: AdminCommand, { db, accounts, hasher }: DataFolder): string {
  const deps = { accounts, hasher, clock: wallClock, random: secureRandom }
  const mode = new MaintenanceMode(new SettingStore(db), wallClock)
  switch (command.name) {
    case 'account create':
      return createAccount(deps, command)
    case 'account list':
      return listAccounts(deps, command)
    case 'account set-plan':
      return setPlan(deps, command)
    case 'key rotate':
      return rotate(deps, command)
    case 'key revoke':
      return revoke(deps, command)
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
    process.on('SIGTERM', () => resolve())
    process.on('SIGINT', () => resolve())
  })
  const stop = await serve(readConfig())
  await signalled
  setTimeout(() => process.exit(EXIT_FAILED), STOP_DEADLINE_MS).unref()
  await stop()
  process.exit(0)
}

function fail(error: unknown): never {
  if (error instanceof UsageError) {
    printError(`hopcode: ${error.message}\nTry: hopcode --help`)
    process.exit(EXIT_USAGE)
  }
  const expected = [ConfigError, DataError, CommandError].some((kind) => error instanceof kind)
  printError(`hopcode: ${expected ? (error as Error).message : Bun.inspect(error)}`)
  process.exit(EXIT_FAILED)
}

try {
  await run(parseCommand(process.argv.slice(2)))
} catch (error) {
  fail(error)
}
