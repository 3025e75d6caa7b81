import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
} from 'node:fs'
import { join } from 'node:path'

const OTHERS = 0o077
/** What this program creates there, and nothing that an operator put beside it. */
const OWN_FILES = /^(hopcode\.db|hits\.journal|secret\.key|serving\.)/

/**
 * Files of the data folder that other users may read or write. They hold e-mail addresses and
 * hashes. The images, in a folder of their own, are public.
 */
export function listOpenFiles(dataDir: string): string[] {
  return readdirSync(dataDir, { withFileTypes: true })
    .filter((entry) => entry.isFile() && OWN_FILES.test(entry.name))
    .map(({ name }) => name)
    .filter((name) => modeOf(join(dataDir, name)) & OTHERS)
    .sort()
}

function modeOf(file: string): number {
  return lstatSync(file, { throwIfNoEntry: false })?.mode ?? 0
}

/**
 * Takes those files away from other users: an earlier release created them as the umask of its
 * process allowed. Returns their names. Only while this process has no connection to the database,
 * because it opens the file (decision 15).
 */
export function closeOpenFiles(dataDir: string): string[] {
  return listOpenFiles(dataDir).filter((name) => closeToOthers(join(dataDir, name)))
}

/** By descriptor, so that a link that takes the file's place meanwhile is not followed. */
function closeToOthers(file: string): boolean {
  let descriptor: number | undefined
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    descriptor = openSync(file, flags)
    const { mode, nlink } = fstatSync(descriptor)
    // A further name may lie outside of the folder: that file may be anybody's.
    if (nlink !== 1) return false
    fchmodSync(descriptor, mode & 0o700)
    return true
  } catch {
    // Another user's file, or a read-only disk: `hopcode check` reports it.
    return false
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
