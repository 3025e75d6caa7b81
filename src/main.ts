import { finishRestore } from './backup/restore.ts'
import * as accounts from './cli/accounts.ts'
import { CommandError, parseCommand, UsageError } from './cli/args.ts'
import { backup, STREAM } from './cli/backup.ts'
import { check } from './cli/check.ts'
import * as cluster from './cli/cluster.ts'
import { clusterStatus } from './cli/cluster-status.ts'
import type { Command } from './cli/commands.ts'
import { help } from './cli/help.ts'
import * as links from './cli/links.ts'
import * as remote from './cli/remote.ts'
import { restore } from './cli/restore.ts'
import { findRunning } from './cli/running.ts'
import * as service from './cli/service.ts'
import { type CommandWriter, localWriter, openWriter } from './cli/writer.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { type DataFolder, openDataFolder, refuseLinks, requireDatabase } from './data-folder.ts'
import { SettingStore } from './db/settings.ts'
import { cFunction } from './lib/c-library.ts'
import { wallClock } from './lib/clock.ts'
import { DataError } from './lib/data-error.ts'
import { machineFailure } from './lib/disk-refusal.ts'
import { ListenError } from './lib/listen-error.ts'
import { print, printError } from './lib/log.ts'
import { secureRandom } from './lib/random.ts'
import { messageOf } from './lib/thread.ts'
import { VERSION } from './lib/version.ts'
import { MaintenanceMode } from './maintenance/mode.ts'
import { TRIAL_ARGUMENT } from './qr/trials.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Some tools send these signals. Without a handler they would end the process at once. */
const IGNORED_SIGNALS = ['SIGUSR1', 'SIGUSR2'] as const

async function run(command: Command): Promise<void> {
  if (command.command === 'help') return print(help(command.topic))
  if (command.command === 'version') return print(VERSION)
  if (command.command === 'serve') return serveUntilSignal()
  const config = readConfig()
  const { dataDir } = config
  // Its host is correct even if the settings of this command differ from those of the service.
  const running = findRunning(dataDir)
  const target = { ...config.remote, url: config.remote.url ?? running?.address ?? config.baseUrl }
  if (command.command === 'health') return print(await service.health(config, running?.address))
  if (command.command === 'shorten') return print(await remote.shorten(target, command))
  if (command.command === 'links') return remote.links(target, command, print)
  if (command.command === 'qr') return printError(await remote.saveQr(target, command))
  finishInterruptedRestore(dataDir)
  if (isClusterCommand(command)) return runClusterCommand(command, config)
  // These three work on the data folder as a whole. Unlike the others, they do not upgrade it.
  if (command.command === 'restore') return print(await restore(dataDir, command.file, wallClock))
  if (command.command === 'backup') {
    const { file, 'for-join': forJoin } = command
    const summary = await backup(dataDir, { file, forJoin }, wallClock)
    // Standard output may be the backup itself.
    return command.file === STREAM ? printError(summary) : print(summary)
  }
  if (command.command === 'check') return report(await check(dataDir, command))
  if (!CREATORS.includes(command.command)) requireDatabase(dataDir)
  print(await administer(command, config, running?.base_url ?? config.baseUrl))
}

type ClusterCommand = Extract<Command, { command: `cluster ${string}` }>

const isClusterCommand = (command: Command): command is ClusterCommand =>
  command.command.startsWith('cluster ')

async function runClusterCommand(command: ClusterCommand, config: Config): Promise<void> {
  switch (command.command) {
    case 'cluster init':
      return print(await cluster.init(config))
    case 'cluster join':
      return print(await cluster.join(config, command, wallClock))
    case 'cluster leave':
      return print(
        command.host ? await cluster.removeLost(config, command) : await cluster.leave(config),
      )
    case 'cluster status':
      return report(await clusterStatus(config, command))
  }
}

function report({ ok, text }: { ok: boolean; text: string }): void {
  print(text)
  if (!ok) process.exit(EXIT_FAILED)
}

/** Commands that create the data folder if it is missing. */
const CREATORS: readonly string[] = ['account create', 'account setup-link']

function finishInterruptedRestore(dataDir: string): void {
  refuseLinks(dataDir)
  if (!finishRestore(dataDir)) return
  printError(`hopcode: An interrupted restore of ${dataDir} was completed.`)
  // The files that it moved into place have not been checked yet.
  refuseLinks(dataDir)
}

/** All others of two words, such as `account create`. */
type AdminCommand = Exclude<Extract<Command, { command: `${string} ${string}` }>, ClusterCommand>

/** Commands that change nothing. */
const READERS: readonly string[] = ['account list', 'link disabled', 'maintenance status']

/** Returns what the command prints. `baseUrl`: of the service. */
async function administer(
  command: AdminCommand,
  { dataDir, clusterUrl }: Config,
  baseUrl: string,
): Promise<string> {
  const folder = openDataFolder(dataDir)
  const { db } = folder
  try {
    const isReader = READERS.includes(command.command)
    const writer = isReader ? localWriter(db) : await openWriter({ db, dataDir, clusterUrl })
    return await carryOut(command, { folder, writer, baseUrl })
  } finally {
    db.close()
  }
}

interface Administration {
  folder: DataFolder
  writer: CommandWriter
  baseUrl: string
}

function carryOut(
  command: AdminCommand,
  { folder, writer, baseUrl }: Administration,
): string | Promise<string> {
  const { db, accounts: store, hasher } = folder
  const deps = {
    accounts: store,
    hasher,
    writer,
    baseUrl,
    clock: wallClock,
    random: secureRandom,
  }
  switch (command.command) {
    case 'account create':
      return accounts.createAccount(deps, command)
    case 'account list':
      return accounts.listAccounts(deps, command)
    case 'account set-plan':
      return accounts.setPlan(deps, command)
    case 'account reset-password':
      return accounts.resetPassword(deps, command)
    case 'account reset-two-factor':
      return accounts.resetTwoFactor(deps, command)
    case 'account setup-link':
      return accounts.setupLink(deps, command)
    case 'account disable':
      return accounts.disableAccount(deps, command)
    case 'account enable':
      return accounts.enableAccount(deps, command)
    case 'link disable':
      return links.disable(deps, command)
    case 'link enable':
      return links.enable(deps, command)
    case 'link disabled':
      return links.list(db, command)
    case 'key rotate':
      return accounts.rotate(deps, command)
    case 'key revoke':
      return accounts.revoke(deps, command)
    case 'maintenance on':
      return service.beginMaintenance(deps, command)
    case 'maintenance off':
      return service.endMaintenance(deps)
    case 'maintenance status':
      return service.showMaintenance(new MaintenanceMode(new SettingStore(db), wallClock))
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
  // The other commands start faster without loading the service.
  const { serve } = await import('./cli/serve.ts')
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
    const topic = error.topic === '' ? '' : `${error.topic} `
    printError(`hopcode: ${error.message}\nTry: hopcode ${topic}--help`)
    process.exit(EXIT_USAGE)
  }
  const failure = machineFailure(error)
  if (failure) {
    printError(`hopcode: ${failure}: ${messageOf(error)}`)
    process.exit(EXIT_FAILED)
  }
  const expected = [ConfigError, DataError, CommandError, ListenError].some(
    (kind) => error instanceof kind,
  )
  printError(`hopcode: ${expected ? (error as Error).message : Bun.inspect(error)}`)
  process.exit(EXIT_FAILED)
}

// For all threads: files are readable by this user only. Images set their own mode.
process.umask(0o077)
try {
  const argv = process.argv.slice(2)
  if (argv[0] === TRIAL_ARGUMENT) await (await import('./cli/trial.ts')).runTrial()
  else {
    await run(parseCommand(argv))
    // A connection to PostgreSQL that is not closed yet would keep the process alive.
    process.exit(0)
  }
} catch (error) {
  fail(error)
}
