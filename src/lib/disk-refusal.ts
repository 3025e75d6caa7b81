type Reasons = readonly (readonly [codes: RegExp, reason: string])[]

/** Error codes of the kernel and of SQLite for a full disk, and for one that refuses all writes. */
const DISK: Reasons = [
  [/^(ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)$/, 'the disk is full'],
  [/^(EROFS|SQLITE_READONLY\w*)$/, 'the file system is read-only'],
  [/^(EIO|EFBIG|SQLITE_IOERR\w*)$/, 'the disk refuses'],
]

/** Why the disk did not accept a write; undefined when the error has another cause. */
export const diskRefusal = (error: unknown): string | undefined => findReason(DISK, error)

const MACHINE: Reasons = [
  ...DISK,
  [/^SQLITE_(BUSY|LOCKED)\w*$/, 'another program has locked the database'],
  [/^E[MN]FILE$/, 'too many files are open: raise the limit (ulimit -n)'],
  [/^(ENOMEM|SQLITE_NOMEM)$/, 'there is not enough memory'],
  [/^ENOTDIR$/, 'part of the path is a file, not a folder'],
  [/^SQLITE_CANTOPEN\w*$/, 'the database cannot be opened'],
]

/** Why an operation failed, if the machine is the cause; undefined for another error. */
export function machineFailure(error: unknown): string | undefined {
  // A typed array that does not fit has this message and no code.
  if (error instanceof RangeError && error.message === 'Out of memory') {
    return 'there is not enough memory'
  }
  return findReason(MACHINE, error)
}

function findReason(reasons: Reasons, error: unknown): string | undefined {
  const code = String((error as { code?: unknown } | undefined)?.code)
  return reasons.find(([codes]) => codes.test(code))?.[1]
}
