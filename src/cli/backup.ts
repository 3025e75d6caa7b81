import { appendFileSync, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { type Contents, type Manifest, type Sink, writeBackup } from '../backup/backup-file.ts'
import { nameWithoutReplacing, refuseTaken, requireRoom, scratchFolder } from '../backup/disk.ts'
import { databaseBytes, takeSnapshot } from '../backup/snapshot.ts'
import { formatBytes } from '../lib/bytes.ts'
import { DataError } from '../lib/data-error.ts'
import { flushToDisk } from '../lib/flush.ts'
import { print, printError, printNotice } from '../lib/log.ts'
import { setThreadPriority } from '../lib/priority.ts'
import { messageOf } from '../lib/thread.ts'
import { recordBackup } from '../status/last-backup.ts'
import { CommandError } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { type Flag, JSON_OBJECT } from './options.ts'
import { Progress } from './progress.ts'

/** Stands for standard output or standard input. */
export const STREAM = '-'

export function addBackupCommand(program: Command): void {
  program
    .command('backup')
    .summary('write a backup (safe while running); - is standard output')
    .description(
      'Write a backup of DATA_DIR (safe while running). The file contains the secret key: keep ' +
        'it as safe as the service.',
    )
    .argument('<FILE>', 'a new file; - is standard output')
    .option(
      '--for-join',
      'for “hopcode cluster join”: the copy continues with the log of the cluster',
    )
    .option(...JSON_OBJECT)
    .action(async (file, { forJoin, json }) => {
      const { dataDir } = readConfigOfFolder()
      const result = await backup(dataDir, { file, forJoin })
      const text = json ? JSON.stringify(result) : describe(result)
      // Standard output may be the backup itself.
      if (file === STREAM) await printNotice(text)
      else print(text)
    })
}

interface Result extends Contents {
  /** Absolute path, or `-` for standard output. */
  file: string
}

function describe({ file, ...counted }: Result): string {
  if (file === STREAM) return `Backed up to standard output: ${contents(counted)}.`
  return (
    `Backed up to ${file}: ${contents(counted)}.\n` +
    'It contains secret.key: keep it as safe as the service.'
  )
}

/** Writes a backup of the data folder to a new file or to standard output. */
async function backup(
  dataDir: string,
  { file: target, forJoin = false }: { file: string; forJoin: Flag },
): Promise<Result> {
  // A running service has priority.
  setThreadPriority('background')
  using progress = new Progress()
  const job = { dataDir, bytes: databaseBytes(dataDir), forJoin, progress }
  const isStream = target === STREAM
  const name = isStream ? 'standard output' : resolve(target)
  requireTarget(name, isStream)
  try {
    const manifest = isStream ? await toStream(job) : await toFile(job, name)
    if (!forJoin) noteBackup(dataDir)
    const { accounts, links, redirects, created_at } = manifest
    return { file: isStream ? STREAM : name, accounts, links, redirects, created_at }
  } catch (error) {
    if (error instanceof DataError) throw error
    throw new CommandError(`${name} cannot be written: ${messageOf(error)}`)
  }
}

/** For the page of the service. The backup is complete without it. */
function noteBackup(dataDir: string): void {
  try {
    recordBackup(dataDir)
  } catch (error) {
    printError(`The page of the service will not show this backup: ${messageOf(error)}`)
  }
}

function requireTarget(name: string, isStream: boolean): void {
  if (isStream && process.stdout.isTTY) {
    throw new CommandError('standard output is a terminal: name a file, or use a pipe')
  }
  if (isStream) return
  const folder = dirname(name)
  if (!existsSync(folder)) {
    throw new CommandError(`${name} cannot be written: there is no folder ${folder}`)
  }
  if (existsSync(name)) refuseTaken(name)
}

interface Job {
  dataDir: string
  /** Size of the database. */
  bytes: number
  /** For `hopcode cluster join`. */
  forJoin: boolean
  progress: Progress
}

async function toFile(job: Job, file: string): Promise<Manifest> {
  const folder = dirname(file)
  // For the copy of the database, and for the backup that is made from it.
  requireRoom(folder, 2 * job.bytes)
  using scratch = scratchFolder(folder)
  const unfinished = join(scratch.path, 'backup')
  const manifest = await writeSnapshot(job, scratch.path, (piece) =>
    appendFileSync(unfinished, piece, { mode: 0o600 }),
  )
  flushToDisk(unfinished)
  nameWithoutReplacing(unfinished, file)
  flushToDisk(folder)
  return manifest
}

/** The copy is temporarily in the data folder: the program writes nowhere else. */
async function toStream(job: Job): Promise<Manifest> {
  requireRoom(job.dataDir, job.bytes)
  using scratch = scratchFolder(job.dataDir)
  const out = Bun.stdout.writer()
  const manifest = await writeSnapshot(job, scratch.path, async (piece) => {
    out.write(piece)
    await out.flush()
  })
  await out.end()
  return manifest
}

/** Copies the database to the folder `scratch`, and passes the compressed copy to `put`. */
async function writeSnapshot(job: Job, scratch: string, put: Sink): Promise<Manifest> {
  const { dataDir, bytes, forJoin, progress } = job
  const copy = join(scratch, 'hopcode.db')
  progress.step(`Copying the database (${formatBytes(bytes)})`)
  const manifest = takeSnapshot(dataDir, copy, Date.now(), { forJoin })
  const { size } = statSync(copy)
  await writeBackup(copy, put, (read) => progress.advance('Compressing the copy', read, size))
  return manifest
}

export function contents({ accounts, links, redirects, created_at }: Contents): string {
  const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`
  return [
    counted(accounts, 'account'),
    counted(links, 'link'),
    counted(redirects, 'redirect'),
    ...(created_at ? [`as of ${created_at}`] : []),
  ].join(', ')
}
