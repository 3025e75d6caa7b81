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

/** Gives a finished file its name, which must be free. Throws DataError when it is not. */
export function nameWithoutReplacing(from: string, to: string): void {
  try {
    linkSync(from, to)
    rmSync(from)
  } catch (error) {
    // A file system without hard links says one of several things; a name that is taken, this one.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(to)) refuseTaken(to)
    renameSync(from, to)
  }
}

export function refuseTaken(path: string): never {
  throw new DataError(`${path} is there already, and a backup replaces no file: name another.`)
}

/** Throws DataError unless the disk of a folder has room for so many bytes. */
export function requireRoom(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize >= bytes) return
  const mib = (count: number) => Math.ceil(count / 2 ** 20)
  throw new DataError(
    `${folder} needs ${mib(bytes - bavail * bsize)} MiB more free space for this: ` +
      'make room, or choose another place.',
  )
}

const SCRATCH = '.hopcode-backup-'

/**
 * A folder for unfinished work that only its owner may enter, gone when it is disposed of. What a
 * killed process left beside it goes now.
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
  let lock: FolderLock
  try {
    lock = FolderLock.claim(path)
  } catch {
    return
  }
  lock.release()
  rmSync(path, { recursive: true, force: true })
}
