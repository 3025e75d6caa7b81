import { OneTimeLinkStore } from './accounts/one-time-links.ts'
import { finishRestore } from './backup/restore.ts'
import * as accounts from './cli/accounts.ts'
import { type Command, CommandError, parseCommand, USAGE, UsageError } from './cli/args.ts'
import { backup, STREAM } from './cli/backup.ts'
import { check } from './cli/check.ts'
import * as links from './cli/links.ts'
import * as remote from './cli/remote.ts'
import { restore } from './cli/restore.ts'
import { serve } from './cli/serve.ts'
import * as service from './cli/service.ts'
import { ConfigError, readConfig } from './config.ts'
import { type DataFolder, openDataFolder, refuseLinks } from './data-folder.ts'
import { SettingStore } from './db/settings.ts'
import { cFunction } from './lib/c-library.ts'
import { wallClock } from './lib/clock.ts'
import { DataError } from './lib/data-error.ts'
import { machineFailure } from './lib/disk-refusal.ts'
import { print, printError } from './lib/log.ts'
import { secureRandom } from './lib/random.ts'
import { messageOf } from './lib/thread.ts'
import { VERSION } from './lib/version.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { TRIAL_ARGUMENT } from './qr/trials.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Other programs send them by habit. Without a handler they would end the process at once. */
const IGNORED_SIGNALS = ['SIGUSR1', 'SIGUSR2'] as const

async function run(command: Command): Promise<void> {
  if (command.name === 'help') return print(USAGE)
  if (command.name === 'version') return print(VERSION)
  if (command.name === 'serve') return serveUntilSignal()
  const config = readConfig()
  if (command.name === 'health') return print(await service.health(config))
  if (command.name === 'shorten') return print(await remote.shorten(config.remote, command))
  if (command.name === 'links') return remote.links(config.remote, command, print)
  if (command.name === 'qr') return printError(await remote.saveQr(config.remote, command))
  const { dataDir } = config
  finishInterruptedRestore(dataDir)
  // These three work on the data folder as a whole. Unlike the others, they do not upgrade it.
  if (command.name === 'restore') return print(await restore(dataDir, command.file, wallClock))
  if (command.name === 'backup') {
    const summary = await backup(dataDir, command.file, wallClock)
    // Standard output may be the backup itself.
    return command.file === STREAM ? printError(summary) : print(summary)
  }
  if (command.name === 'check') {
    const { ok, text } = await check(dataDir, command)
    print(text)
    if (!ok) process.exit(EXIT_FAILED)
    return
  }
  const folder = openDataFolder(dataDir)
  try {
    print(administer(command, folder, config.baseUrl))
  } finally {
    folder.db.close()
  }
}

function finishInterruptedRestore(dataDir: string): void {
  refuseLinks(dataDir)
  if (!finishRestore(dataDir)) return
  printError(`hopcode: An interrupted restore of ${dataDir} was completed.`)
  // The files that it moved into place have not been checked yet.
  refuseLinks(dataDir)
}

type AdminCommand = Exclude<
  Command,
  {
    name:
      | 'help'
      | 'version'
      | 'health'
      | 'serve'
      | 'backup'
      | 'restore'
      | 'check'
      | 'shorten'
      | 'links'
      | 'qr'
  }
>

function administer(command: AdminCommand, folder: DataFolder, baseUrl: string): string {
  const { db, hasher } = folder
  const deps = { accounts: folder.accounts, hasher, clock: wallClock, random: secureRandom }
  const linkDeps = { ...deps, baseUrl, oneTimeLinks: new OneTimeLinkStore(db) }
  const maintenance = new MaintenanceMode(new SettingStore(db), wallClock)
  switch (command.name) {
    case 'account create':
      return accounts.createAccount(deps, command)
    case 'account list':
      return accounts.listAccounts(deps, command)
    case 'account set-plan':
      return accounts.setPlan(deps, command)
    case 'account reset-password':
      return accounts.resetPassword(linkDeps, command)
    case 'account reset-two-factor':
      return accounts.resetTwoFactor(deps, command)
    case 'account setup-link':
      return accounts.setupLink(linkDeps, command)
    case 'account disable':
      return accounts.disableAccount(db, deps, command)
    case 'account enable':
      return accounts.enableAccount(db, deps, command)
    case 'link disable':
      return links.disable(db, wallClock, command)
    case 'link enable':
      return links.enable(db, command)
    case 'link disabled':
      return links.list(db, command)
    case 'key rotate':
      return accounts.rotate(deps, command)
    case 'key revoke':
      return accounts.revoke(deps, command)
    case 'maintenance on':
      return service.beginMaintenance(maintenance, wallClock, command.until)
    case 'maintenance off':
      return service.endMaintenance(maintenance)
    case 'maintenance status':
      return service.showMaintenance(maintenance)
  }
}

async function serveUntilSignal(): Promise<void> {
  // Before the start: a signal that arrives during it stops the service right after it.
  const signalled = new Promise<void>((resolve) => {
    // A second signal changes nothing: the deadline ends the stop anyway.
    for (const signal of STOP_SIGNALS) process.on(signal, () => resolve())
  })
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => {})
  const config = readConfig()
  finishInterruptedRestore(config.dataDir)
  const stop = await serve(config)
  await signalled
  if (await stop()) process.exit(0)
  exitAtOnce(EXIT_FAILED)
}

/**
 * Exits without closing the databases: Bun closes them in `process.exit` and would wait for a disk
 * that hangs. Acknowledged changes are on disk, and the next start recovers as after a crash.
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
  const failure = machineFailure(error)
  if (failure) {
    printError(`hopcode: ${failure}: ${messageOf(error)}`)
    process.exit(EXIT_FAILED)
  }
  const expected = [ConfigError, DataError, CommandError].some((kind) => error instanceof kind)
  printError(`hopcode: ${expected ? (error as Error).message : Bun.inspect(error)}`)
  process.exit(EXIT_FAILED)
}

// For all threads: files are readable by this user only. Images set their own mode.
process.umask(0o077)
try {
  const argv = process.argv.slice(2)
  if (argv[0] === TRIAL_ARGUMENT) await (await import('./cli/trial.ts')).runTrial()
  else await run(parseCommand(argv))
} catch (error) {
  fail(error)
}
