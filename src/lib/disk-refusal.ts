/** How the kernel and SQLite name a disk that accepts no more, and one that accepts nothing. */
const REASONS: readonly (readonly [codes: RegExp, reason: string])[] = [
  [/^(ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)$/, 'the disk is full'],
  [/^(EROFS|SQLITE_READONLY\w*)$/, 'the file system is read-only'],
  [/^(EIO|EFBIG|SQLITE_IOERR\w*)$/, 'the disk refuses'],
]

/** Why the disk did not accept a write; undefined when the error has another cause. */
export function diskRefusal(error: unknown): string | undefined {
  const code = String((error as { code?: unknown } | undefined)?.code)
  return REASONS.find(([codes]) => codes.test(code))?.[1]
}
