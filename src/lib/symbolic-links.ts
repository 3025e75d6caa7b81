import { constants, lstatSync } from 'node:fs'
import { DataError } from './data-error.ts'

/**
 * Root may write any file of the machine, and the data folder belongs to the user of the service:
 * whoever has that user could plant a link there and choose what root overwrites. So root follows
 * none. For other users a link opens nothing that they could not open anyway.
 */
const isRoot = process.getuid?.() === 0

/** Flags of `open`. A planted pipe must not keep root waiting for its other end, either. */
export const NO_FOLLOW = isRoot ? constants.O_NOFOLLOW | constants.O_NONBLOCK : 0

/** Throws DataError when this process is root and a symbolic link has the name. */
export function refuseLink(path: string): void {
  if (!isRoot || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  throw new DataError(
    `${path} is a symbolic link, and root follows none in DATA_DIR: remove it, or run this as ` +
      'the user of the service.',
  )
}
