import { CommanderError } from '@commander-js/extra-typings'
import { CommandError, ProblemsFound } from './cli/errors.ts'
import { readConfigOfFolder } from './cli/folder.ts'
import { createProgram } from './cli/program.ts'
import { ConfigError } from './config.ts'
import { AppError } from './errors.ts'
import { READER_COMMAND } from './import/reader.ts'
import { cFunction } from './lib/c-library.ts'
import { DataError } from './lib/data-error.ts'
import { machineFailure } from './lib/disk-refusal.ts'
import { ListenError } from './lib/listen-error.ts'
import { printError } from './lib/log.ts'
import { messageOf } from './lib/thread.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
/** Some tools send these signals. Without a handler they would end the process at once. */
const IGNORED_SIGNALS = ['SIGUSR1', 'SIGUSR2'] as const

async function serveUntilSignal(): Promise<void> {
  // Before the start: a signal that arrives during it stops the service right after it.
  const signalled = new Promise<void>((resolve) => {
    // A second signal changes nothing: the deadline ends the stop anyway.
    for (const signal of STOP_SIGNALS) process.on(signal, () => resolve())
  })
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => {})
  const config = readConfigOfFolder()
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
  // Its message or the help is printed already.
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : EXIT_USAGE)
  if (error instanceof ProblemsFound) process.exit(error.exitCode)
  const failure = machineFailure(error)
  if (failure) {
    printError(`hopcode: ${failure}: ${messageOf(error)}`)
    process.exit(EXIT_FAILED)
  }
  const expected = [AppError, ConfigError, DataError, CommandError, ListenError].some(
    (kind) => error instanceof kind,
  )
  printError(`hopcode: ${expected ? (error as Error).message : Bun.inspect(error)}`)
  process.exit(EXIT_FAILED)
}

// For all threads: files are readable by this user only. Images set their own mode.
process.umask(0o077)
try {
  const argv = process.argv.slice(2)
  // Not a command for people: see import/reader.ts.
  if (argv[0] === READER_COMMAND) {
    const { serveReader } = await import('./import/reader-program.ts')
    await serveReader()
    process.exit(0)
  }
  const words = argv.length === 0 ? ['serve'] : argv
  await createProgram(serveUntilSignal).parseAsync(words, { from: 'user' })
  // A connection to PostgreSQL that is not closed yet would keep the process alive.
  process.exit(0)
} catch (error) {
  fail(error)
}
