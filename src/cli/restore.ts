import type { Database } from 'bun:sqlite'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import type { Contents } from '../backup/backup-file.ts'
import { requireRoom } from '../backup/disk.ts'
import {
  asideName,
  decideOnBackup,
  discardRestore,
  moves,
  type RestoreCommand,
  UNFINISHED,
} from '../backup/restore.ts'
import { findLogPosition, type LogPosition } from '../cluster/position.ts'
import { createDataFolder } from '../data-folder.ts'
import { FolderLock } from '../db/lock.ts'
import { databaseFile, openReadonly } from '../db/open.ts'
import { DataError } from '../lib/data-error.ts'
import { print } from '../lib/log.ts'
import { messageOf } from '../lib/thread.ts'
import { contents, STREAM } from './backup.ts'
import { CommandError } from './errors.ts'
import { readConfigOfFolder } from './folder.ts'
import { JSON_OBJECT } from './options.ts'
import { Progress } from './progress.ts'

/** The new hit journal that the restored database gets. */
const JOURNAL_BYTES = 33 * 1024 * 1024

export function addRestoreCommand(program: Command): void {
  program
    .command('restore')
    .summary('restore a backup; - is standard input')
    .description(
      'Restore a backup. Stop the service first. The old files of DATA_DIR are kept in a folder ' +
        'of their own.',
    )
    .argument('<FILE>', 'a backup; - is standard input')
    .option(...JSON_OBJECT)
    .action(async (file, { json }) => {
      const restored = await restore(readConfigOfFolder().dataDir, file)
      print(json ? JSON.stringify(restored) : describe(restored))
    })
}

/**
 * Restores a backup from a file or standard input. The old files of the data folder are kept in a
 * folder of their own.
 */
async function restore(dataDir: string, origin: string): Promise<Restored> {
  requireOrigin(origin)
  createDataFolder(dataDir)
  using _lock = await FolderLock.claimAfterCommand(dataDir)
  if (findPositionOf(dataDir)) {
    throw new CommandError(
      `${dataDir} belongs to a cluster, whose other hosts would keep their data. Run ` +
        '"hopcode cluster leave" first, or "hopcode cluster join" for a new copy.',
    )
  }
  return restoreFiles(origin, { dataDir })
}

const describe = (restored: Restored): string =>
  `Restored ${summaryOf(restored)}\n` +
  'Start the service. It creates the QR images again in the background.'

/** The name of a backup for messages. Throws CommandError if it cannot be read. */
export function requireOrigin(origin: string): string {
  if (origin === STREAM && process.stdin.isTTY) {
    throw new CommandError('standard input is a terminal: name a file, or use a pipe')
  }
  if (origin === STREAM) return 'standard input'
  const from = resolve(origin)
  const found = statSync(from, { throwIfNoEntry: false })
  if (!found) throw new CommandError(`${from} is missing`)
  if (found.isDirectory()) throw new CommandError(`${from} is a folder, not a backup`)
  return from
}

/** Undefined for a folder that belongs to no cluster, or whose database cannot be read. */
export const findPositionOf = (dataDir: string): LogPosition | undefined =>
  readFolder(dataDir, findLogPosition)

/** Undefined if the database of the folder cannot be read. */
export function readFolder<Result>(
  dataDir: string,
  read: (db: Database) => Result,
): Result | undefined {
  try {
    using db = openReadonly(databaseFile(dataDir), { cacheKiB: 64 })
    return read(db)
  } catch {
    return undefined
  }
}

export interface Restored extends Contents {
  /** Absolute path of the backup, or `standard input`. */
  from: string
  /** Folder in DATA_DIR with the old files; null if there were none. */
  old_files: string | null
}

/** What is restored, and where the old files are, for a person. */
export function summaryOf({ from, old_files, ...counted }: Restored): string {
  const restored = `${from}: ${contents(counted)}.`
  if (old_files === null) return restored
  const old = `The old files are in ${old_files} in DATA_DIR.`
  return `${restored}\n${old} Delete them when everything works.`
}

/** For the holder of the folder's lock. */
export async function restoreFiles(
  origin: string,
  { dataDir, joinCluster, keepsOld = true }: RestoreOptions,
): Promise<Restored> {
  const from = requireOrigin(origin)
  const aside = keepsOld ? asideName(Date.now()) : UNFINISHED
  const found = await decide(origin, { from, dataDir, aside, joinCluster })
  for (const _ of moves(dataDir));
  if (!keepsOld) discardRestore(dataDir)
  return { from, ...found, old_files: existsSync(join(dataDir, aside)) ? aside : null }
}

interface RestoreOptions extends Pick<RestoreCommand, 'dataDir' | 'joinCluster'> {
  /** False for old files without value. */
  keepsOld?: boolean
}

async function decide(origin: string, command: RestoreCommand): Promise<Contents> {
  const { from, dataDir } = command
  try {
    if (origin !== STREAM) requireRoom(dataDir, statSync(from).size + JOURNAL_BYTES)
    using progress = new Progress()
    const source = origin === STREAM ? Bun.stdin.stream() : createReadStream(from)
    const total = origin === STREAM ? 0 : statSync(from).size
    return await decideOnBackup(watched(source, total, progress), command)
  } catch (error) {
    const isExpected = error instanceof DataError
    const reason = isExpected ? error.message : `${from} cannot be restored: ${messageOf(error)}.`
    throw new CommandError(`${reason} ${dataDir} is unchanged.`)
  }
}

/** Forwards a stream. After its end, the unpacked database is checked. */
async function* watched(
  source: AsyncIterable<Uint8Array>,
  total: number,
  progress: Progress,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  progress.step('Unpacking the backup')
  for await (const piece of source) {
    yield piece
    bytes += piece.length
    if (total > 0) progress.advance('Unpacking the backup', bytes, total)
  }
  progress.step('Checking the restored database')
}
