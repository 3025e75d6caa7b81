/** Duration of a simulated flush: a plain SSD without a protected cache. */
export const FLUSH_MS = 2

/**
 * Sleeps for the duration of a flush, as the thread would in `fsync`, in addition to the real
 * flush: a simulated commit is never faster than a real one.
 */
export const pauseAfterCommit = (): void => Bun.sleepSync(FLUSH_MS)
