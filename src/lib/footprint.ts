/** Soon, while nothing is hot yet: compiled code goes too. */
const SETTLING_MS = 100

/**
 * Has the calling thread give back, a moment from now, what its start leaves behind: modules
 * parsed, code that runs once. It waits for an idle moment, and code that is used compiles again.
 */
export function shrinkAfterStart(): void {
  setTimeout(() => Bun.shrink(), SETTLING_MS).unref()
}
