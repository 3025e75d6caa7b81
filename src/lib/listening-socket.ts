import { closeSync, openSync } from 'node:fs'
import { cFunction } from './c-library.ts'

/** Of Linux's headers, the same on x64 and arm64. */
const SOL_SOCKET = 1
const SO_ACCEPTCONN = 30
const ADDRESS_BYTES = 128
/** A service opens its port before any client's connection, so its descriptor is a small one. */
const DESCRIPTORS_SEARCHED = 1024

type GetSocketOption = (
  descriptor: number,
  level: number,
  name: number,
  value: Int32Array,
  length: Uint32Array,
) => number
type GetSocketName = (descriptor: number, address: Uint8Array, length: Uint32Array) => number
type DuplicateTo = (from: number, to: number) => number

/**
 * The descriptor of this process that listens on a TCP port; undefined where there is none, or not
 * on Linux.
 */
export function findListeningSocket(port: number): number | undefined {
  const getOption = cFunction<GetSocketOption>('getsockopt', {
    args: ['i32', 'i32', 'i32', 'ptr', 'ptr'],
    returns: 'i32',
  })
  const getName = cFunction<GetSocketName>('getsockname', {
    args: ['i32', 'ptr', 'ptr'],
    returns: 'i32',
  })
  if (!getOption || !getName) return undefined
  const address = new Uint8Array(ADDRESS_BYTES)
  for (let descriptor = 3; descriptor < DESCRIPTORS_SEARCHED; descriptor++) {
    const listens = new Int32Array(1)
    const isSocket =
      getOption(descriptor, SOL_SOCKET, SO_ACCEPTCONN, listens, new Uint32Array([4])) === 0
    if (!isSocket || listens[0] !== 1) continue
    getName(descriptor, address, new Uint32Array([ADDRESS_BYTES]))
    if (new DataView(address.buffer).getUint16(2) === port) return descriptor
  }
  return undefined
}

/**
 * Refuses new connections to a port of this process and leaves the open ones alone, which Bun's
 * `server.stop()` does not: it closes every idle connection at once. The descriptor stays taken, by
 * an empty file, until Bun closes it. Does nothing where the socket cannot be found, or where no
 * descriptor is free for a moment.
 */
export function refuseConnections(port: number): void {
  const descriptor = findListeningSocket(port)
  const duplicate = cFunction<DuplicateTo>('dup2', { args: ['i32', 'i32'], returns: 'i32' })
  if (descriptor === undefined || !duplicate) return
  try {
    const empty = openSync('/dev/null', 'r')
    duplicate(empty, descriptor)
    closeSync(empty)
  } catch {
    // The port goes on until `server.stop()`.
  }
}
