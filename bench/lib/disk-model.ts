/** What a flush to the disk takes in the model: a plain SSD without a protected cache. */
export const FLUSH_MS = 2

/**
 * Lasts as long as a flush: the thread sleeps, as it would in `fsync`. On top of the real one, so
 * that a commit in the model is never quicker than a real one.
 */
export const pauseAfterCommit = (): void => Bun.sleepSync(FLUSH_MS)
