const SETTLING_MS = 500

/**
 * Has the calling thread give back, half a second from now, what its start leaves behind: modules
 * parsed, code that runs once. It waits for an idle moment, and code that is used compiles again.
 */
export function shrinkAfterStart(): void {
  setTimeout(() => Bun.shrink(), SETTLING_MS).unref()
}
