/** How calls are written in the log of a cluster: JSON, with bytes as base64. */

export interface LoggedCall {
  name: string
  args: unknown
}

/**
 * The set of calls that this program knows, as a number that increases with each call that is added
 * or changes its meaning. A host applies no entry that needs a later set than its own.
 */
export const CALLS_VERSION = 1

/** The first set that contains a call, for calls that were added after the first set. */
const SINCE: Readonly<Record<string, number>> = {}

/** The smallest set that contains all of the calls. */
export function versionNeeded(calls: readonly LoggedCall[]): number {
  return Math.max(1, ...calls.map(({ name }) => SINCE[name] ?? 1))
}

/** The key of an object that stands for bytes. No argument of a call has such a name. */
const BYTES = '$bytes'

export function encodeCalls(calls: readonly LoggedCall[]): Buffer {
  return Buffer.from(
    JSON.stringify(calls, function (this: Record<string, unknown>, key: string, value: unknown) {
      // `value` of a Buffer is what its `toJSON` returned.
      const given = this[key]
      if (!(given instanceof Uint8Array)) return value
      return { [BYTES]: given.toBase64() }
    }),
  )
}

/** Throws for bytes that `encodeCalls` did not write. */
export function decodeCalls(bytes: Uint8Array): LoggedCall[] {
  return JSON.parse(new TextDecoder().decode(bytes), (_, value: unknown) => {
    const base64 = (value as { [BYTES]?: unknown } | null)?.[BYTES]
    return typeof base64 === 'string' ? Uint8Array.fromBase64(base64) : value
  }) as LoggedCall[]
}
