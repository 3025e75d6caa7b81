import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
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

const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLLIN = 1
/** struct epoll_event is packed on x64 alone. */
const EVENT_DATA_OFFSET = process.arch === 'x64' ? 4 : 8

type EpollControl = (
  epoll: number,
  operation: number,
  descriptor: number,
  event: Uint8Array,
) => number

/**
 * Stops and resumes accepting connections to a port of this process; meanwhile they wait in the
 * kernel. Bun has nothing for that, and asks again without a pause for a connection that it has no
 * descriptor for. So the socket is taken out of Bun's epoll set, and put back as it was.
 */
export class ListenerPause {
  readonly #epoll: number
  readonly #socket: number
  readonly #event: Uint8Array
  readonly #control: EpollControl
  #isPaused = false

  private constructor(epoll: number, socket: number, data: bigint, control: EpollControl) {
    this.#epoll = epoll
    this.#socket = socket
    this.#control = control
    this.#event = new Uint8Array(EVENT_DATA_OFFSET + 8)
    const view = new DataView(this.#event.buffer)
    view.setUint32(0, EPOLLIN, true)
    view.setBigUint64(EVENT_DATA_OFFSET, data, true)
  }

  /** Call it while descriptors are free. Undefined where the socket's epoll set is not found. */
  static find(port: number): ListenerPause | undefined {
    const socket = findListeningSocket(port)
    const args = ['i32', 'i32', 'i32', 'ptr'] as const
    const control = cFunction<EpollControl>('epoll_ctl', { args, returns: 'i32' })
    if (socket === undefined || !control) return undefined
    try {
      for (const epoll of readdirSync('/proc/self/fd').map(Number)) {
        const data = epollData(epoll, socket)
        if (data !== undefined) return new ListenerPause(epoll, socket, data, control)
      }
    } catch {
      // No /proc, or one that is closed to this process.
    }
    return undefined
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = this.#control(this.#epoll, EPOLL_CTL_DEL, this.#socket, this.#event) === 0
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = this.#control(this.#epoll, EPOLL_CTL_ADD, this.#socket, this.#event) !== 0
  }
}

/** What an epoll set returns for events of the socket; undefined where it does not watch it. */
function epollData(epoll: number, socket: number): bigint | undefined {
  try {
    if (readlinkSync(`/proc/self/fd/${epoll}`) !== 'anon_inode:[eventpoll]') return undefined
    const watched = readFileSync(`/proc/self/fdinfo/${epoll}`, 'utf8')
    const line = new RegExp(`^tfd:\\s+${socket} events:\\s+\\S+ data:\\s+([0-9a-f]+)`, 'm')
    const data = line.exec(watched)?.[1]
    return data === undefined ? undefined : BigInt(`0x${data}`)
  } catch {
    // Closed since the folder was read.
    return undefined
  }
}
