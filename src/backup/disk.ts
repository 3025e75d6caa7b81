import {
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { join } from 'node:path'
import { FolderLock } from '../db/lock.ts'
import { DataError } from '../lib/data-error.ts'

/** Renames a finished file. Throws DataError if the name is taken. */
export function nameWithoutReplacing(from: string, to: string): void {
  try {
    linkSync(from, to)
    rmSync(from)
  } catch (error) {
    // File systems without hard links report other errors.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(to)) refuseTaken(to)
    renameSync(from, to)
  }
}

export function refuseTaken(path: string): never {
  throw new DataError(
    `${path} exists already, and a backup never replaces a file: choose another name.`,
  )
}

/** Throws DataError unless the disk of the folder has that many free bytes. */
export function requireRoom(folder: string, bytes: number): void {
  const error = roomError(folder, bytes)
  if (error) throw error
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

/** What to tell if the disk of the folder does not have that many free bytes. */
export function roomError(folder: string, bytes: number): DataError | undefined {
  const free = freeBytes(folder)
  if (free >= bytes) return undefined
  const mib = (count: number) => Math.ceil(count / 2 ** 20)
  return new DataError(
    `${folder} needs ${mib(bytes - free)} MiB more free space for this: ` +
      'make room, or choose another place.',
  )
}

const SCRATCH = '.hopcode-backup-'

/**
 * A private folder for unfinished work, removed when it is disposed. Also removes the folders that
 * killed processes left beside it.
 */
export function scratchFolder(parent: string): Disposable & { path: string } {
  for (const name of readdirSync(parent)) {
    const path = join(parent, name)
    if (name.startsWith(SCRATCH) && lstatSync(path).isDirectory()) removeUnlessHeld(path)
  }
  const path = mkdtempSync(join(parent, SCRATCH))
  const lock = FolderLock.claim(path)
  return {
    path,
    [Symbol.dispose]() {
      lock.release()
      rmSync(path, { recursive: true, force: true })
    },
  }
}

function removeUnlessHeld(path: string): void {
  try {
    FolderLock.claim(path).release()
  } catch {
    return
  }
  rmSync(path, { recursive: true, force: true })
}
