/** Checks what our own code guarantees. A failure is a bug, and answered with 500. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
