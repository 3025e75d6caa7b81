import { subjects } from '../data.ts'
import { writesOf } from '../db/subject.ts'
import { RELEASE } from '../lib/version.ts'

/** How calls are written in the log of a cluster: JSON, with bytes as base64. */

export interface LoggedCall {
  name: string
  args: unknown
}

const WRITES = writesOf(subjects)

/** Whether a call concerns only this host and stays out of the log. */
export const isLocal = (name: string): boolean =>
  Object.hasOwn(WRITES, name) && WRITES[name]?.isLocal === true

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

const COMPRESSED_FROM_BYTES = 1024

/** The calls with the release that wrote them: a host with an older one stops at the entry. */
export function encodeEntry(calls: readonly LoggedCall[]) {
  const encoded = encodeCalls(calls)
  const isSmall = encoded.length < COMPRESSED_FROM_BYTES
  return { version: RELEASE, calls: isSmall ? encoded : Bun.zstdCompressSync(encoded) }
}

/** The first byte of JSON. */
const BRACKET = 0x5b

/** Throws for bytes that `encodeEntry` did not write. */
export function decodeCalls(bytes: Uint8Array): LoggedCall[] {
  const json = bytes[0] === BRACKET ? bytes : Bun.zstdDecompressSync(bytes)
  return JSON.parse(new TextDecoder().decode(json), (_, value: unknown) => {
    const base64 = (value as { [BYTES]?: unknown } | null)?.[BYTES]
    return typeof base64 === 'string' ? Uint8Array.fromBase64(base64) : value
  }) as LoggedCall[]
}

/** Bytes of calls in one entry, unless one call has more. */
const ENTRY_BYTES = 8 * 1024 * 1024

/** Splits calls so that an entry stays small. */
export function splitCalls(calls: readonly LoggedCall[]): LoggedCall[][] {
  const all: LoggedCall[][] = []
  let room = 0
  for (const call of calls) {
    const bytes = CALL_BYTES + bytesOf(call.args)
    if (bytes > room) {
      all.push([])
      room = ENTRY_BYTES
    }
    all.at(-1)?.push(call)
    room -= bytes
  }
  return all
}

/** The name of a call, and the names of its arguments. */
const CALL_BYTES = 100
/** A number with its comma, or the punctuation of a list. */
const VALUE_BYTES = 8

/** The approximate size. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length
  if (typeof value !== 'object' || value === null) return VALUE_BYTES
  return Object.values(value).reduce((sum, one) => sum + bytesOf(one), VALUE_BYTES)
}
