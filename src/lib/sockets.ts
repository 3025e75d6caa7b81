import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { cFunction } from './c-library.ts'

/**
 * Listeners and connections of this process, through the C library, because Bun has no functions
 * for this. Linux only: elsewhere the functions do nothing.
 */

/** From Linux's headers, the same on x64 and arm64. */
const SOL_SOCKET = 1
const SO_ACCEPTCONN = 30
const IPPROTO_TCP = 6
const TCP_INFO = 11
const TCP_INFO_BYTES = 104
/** Offsets in struct tcp_info: the state, and the milliseconds since data came last. */
const STATE_OFFSET = 0
const LAST_DATA_RECEIVED_OFFSET = 52
const TCP_ESTABLISHED = 1
const SHUT_RDWR = 2
const AF_INET = 2
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLLIN = 1
/** struct epoll_event is packed on x64 only. */
const EVENT_DATA_OFFSET = process.arch === 'x64' ? 4 : 8
/** Room for any struct sockaddr. */
const ADDRESS_BYTES = 128

type GetSocketOption = (
  descriptor: number,
  level: number,
  name: number,
  value: Uint8Array | Int32Array,
  length: Uint32Array,
) => number
type GetAddress = (descriptor: number, address: Uint8Array, length: Uint32Array) => number
type EpollControl = (
  epoll: number,
  operation: number,
  descriptor: number,
  event: Uint8Array,
) => number
type Shutdown = (descriptor: number, how: number) => number

const getSocketOption = () =>
  cFunction<GetSocketOption>('getsockopt', {
    args: ['i32', 'i32', 'i32', 'ptr', 'ptr'],
    returns: 'i32',
  })

/** `getsockname` or `getpeername`. */
const getAddress = (name: 'getsockname' | 'getpeername') =>
  cFunction<GetAddress>(name, { args: ['i32', 'ptr', 'ptr'], returns: 'i32' })

/**
 * The service opens its ports before any client connects, so their descriptors are small numbers.
 */
const LISTENERS_SEARCHED = 1024

/** The descriptors of this process that listen on a TCP port: one for each redirect thread. */
export function findListeningSockets(port: number): number[] {
  const getOption = getSocketOption()
  const getName = getAddress('getsockname')
  if (!getOption || !getName) return []
  const address = new Uint8Array(ADDRESS_BYTES)
  const found: number[] = []
  for (let descriptor = 3; descriptor < LISTENERS_SEARCHED; descriptor++) {
    const listens = new Int32Array(1)
    const isSocket =
      getOption(descriptor, SOL_SOCKET, SO_ACCEPTCONN, listens, new Uint32Array([4])) === 0
    if (!isSocket || listens[0] !== 1) continue
    getName(descriptor, address, new Uint32Array([ADDRESS_BYTES]))
    if (new DataView(address.buffer).getUint16(2) === port) found.push(descriptor)
  }
  return found
}

/**
 * Stops and resumes accepting connections to a port of this process; meanwhile they wait in the
 * kernel. Without a free descriptor, Bun would retry `accept` in a busy loop. So the socket is
 * removed from Bun's epoll set, and added again with the same event.
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

  /** Call it while descriptors are free. Leaves out sockets whose epoll set is not found. */
  static findAll(port: number): ListenerPause[] {
    const args = ['i32', 'i32', 'i32', 'ptr'] as const
    const control = cFunction<EpollControl>('epoll_ctl', { args, returns: 'i32' })
    if (!control) return []
    try {
      const epolls = readdirSync('/proc/self/fd').map(Number)
      return findListeningSockets(port).flatMap((socket) => {
        for (const epoll of epolls) {
          const data = epollData(epoll, socket)
          if (data !== undefined) return [new ListenerPause(epoll, socket, data, control)]
        }
        return []
      })
    } catch {
      // /proc is missing or not readable.
      return []
    }
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

/** The data that an epoll set returns for events of the socket; undefined if it has none. */
function epollData(epoll: number, socket: number): bigint | undefined {
  try {
    if (readlinkSync(`/proc/self/fd/${epoll}`) !== 'anon_inode:[eventpoll]') return undefined
    const watched = readFileSync(`/proc/self/fdinfo/${epoll}`, 'utf8')
    const line = new RegExp(`^tfd:\\s+${socket} events:\\s+\\S+ data:\\s+([0-9a-f]+)`, 'm')
    const data = line.exec(watched)?.[1]
    return data === undefined ? undefined : BigInt(`0x${data}`)
  } catch {
    // The descriptor was closed after the folder was read.
    return undefined
  }
}

/** Reading more descriptors would block the calling thread for too long. */
const CONNECTIONS_SEARCHED = 65_536

interface IdleOptions {
  wanted: number
  idleMs: number
  /** The maximum number of descriptors. */
  limit: number
  /** A port of the loopback interface through which threads of this process are connected. */
  except: number | undefined
}

interface Peer {
  connections: number
  /** Descriptors of connections whose client has sent nothing for `idleMs`. */
  idle: number[]
}

/**
 * Closes TCP connections of this process whose client has sent nothing for `idleMs`, beginning with
 * the addresses that have the most connections, until at least `wanted` are closed or none is left.
 * Returns how many. To Bun, it looks as if the client had closed the connection.
 */
export function closeIdleConnections(options: IdleOptions): number {
  const shutdown = cFunction<Shutdown>('shutdown', { args: ['i32', 'i32'], returns: 'i32' })
  const peers = [...listPeers(options).values()]
  if (!shutdown || peers.length === 0) return 0
  // Connections that an address may keep; each round halves it.
  let most = Math.max(...peers.map(({ connections }) => connections))
  const surplus = ({ connections, idle }: Peer) => Math.min(idle.length, connections - most)
  const sum = () => peers.reduce((total, peer) => total + Math.max(0, surplus(peer)), 0)
  while (most > 0 && sum() < options.wanted) most = Math.floor(most / 2)
  let ended = 0
  for (const peer of peers) {
    for (const descriptor of peer.idle.slice(0, Math.max(0, surplus(peer)))) {
      if (shutdown(descriptor, SHUT_RDWR) === 0) ended++
    }
  }
  return ended
}

/** Peers by address: an IPv4 address, or the /64 of an IPv6 address. */
function listPeers({ idleMs, limit, except }: IdleOptions): Map<string, Peer> {
  const searched = Math.min(limit, CONNECTIONS_SEARCHED)
  const peers = new Map<string, Peer>()
  const getOption = getSocketOption()
  const getPeer = getAddress('getpeername')
  const getOwn = getAddress('getsockname')
  if (!getOption || !getPeer || !getOwn) return peers
  const portOf = (get: GetAddress, descriptor: number): number => {
    length[0] = ADDRESS_BYTES
    return get(descriptor, address, length) === 0 ? new DataView(address.buffer).getUint16(2) : 0
  }
  const info = new Uint8Array(TCP_INFO_BYTES)
  const lastReceived = new Uint32Array(info.buffer, LAST_DATA_RECEIVED_OFFSET, 1)
  const address = new Uint8Array(ADDRESS_BYTES)
  const length = new Uint32Array(1)
  for (let descriptor = 3; descriptor < searched; descriptor++) {
    length[0] = TCP_INFO_BYTES
    const isTcp = getOption(descriptor, IPPROTO_TCP, TCP_INFO, info, length) === 0
    if (!isTcp || info[STATE_OFFSET] !== TCP_ESTABLISHED) continue
    if (except !== undefined && portOf(getOwn, descriptor) === except) continue
    const port = portOf(getPeer, descriptor)
    if (port === 0 || port === except) continue
    const key = peerKey(address)
    const peer = peers.get(key) ?? { connections: 0, idle: [] }
    peers.set(key, peer)
    peer.connections++
    if ((lastReceived[0] ?? 0) >= idleMs) peer.idle.push(descriptor)
  }
  return peers
}

/** Key of a struct sockaddr_in or sockaddr_in6. */
function peerKey(address: Uint8Array): string {
  const family = new DataView(address.buffer).getUint16(0, true)
  if (family === AF_INET) return address.subarray(4, 8).join('.')
  const bytes = address.subarray(8, 24)
  const isMapped = bytes.subarray(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255'
  return isMapped ? bytes.subarray(12).join('.') : bytes.subarray(0, 8).join(':')
}
