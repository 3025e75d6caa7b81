import { constants, lstatSync } from 'node:fs'
import { DataError } from './data-error.ts'

/**
 * The data folder belongs to the user of the service. An attacker with that user's rights could
 * place a symbolic link there, and root would overwrite the file that it points to. So root follows
 * no link. For other users a link opens nothing that they could not open anyway.
 */
const isRoot = process.getuid?.() === 0

/** Flags of `open`. Root must not wait for the other end of a pipe in place of the file, either. */
export const NO_FOLLOW = isRoot ? constants.O_NOFOLLOW | constants.O_NONBLOCK : 0

/** Throws DataError if this process is root and `path` is a symbolic link. */
export function refuseLink(path: string): void {
  if (!isRoot || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  throw new DataError(
    `${path} is a symbolic link, and root follows none in DATA_DIR: remove it, or run this as ` +
      'the user of the service.',
  )
}
