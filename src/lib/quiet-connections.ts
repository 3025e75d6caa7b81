import { cFunction } from './c-library.ts'

/** Of Linux's headers. */
const IPPROTO_TCP = 6
const TCP_INFO = 11
const TCP_INFO_BYTES = 104
/** Within struct tcp_info: the state, and how many milliseconds ago data came last. */
const STATE_OFFSET = 0
const LAST_DATA_RECEIVED_OFFSET = 52
const TCP_ESTABLISHED = 1
const SHUT_RDWR = 2
const ADDRESS_BYTES = 28
const AF_INET = 2
/** Descriptors looked at: reading more would hold the calling thread for too long. */
const DESCRIPTORS_MAX = 65_536

type GetSocketOption = (
  descriptor: number,
  level: number,
  name: number,
  value: Uint8Array,
  length: Uint32Array,
) => number
type GetPeerName = (descriptor: number, address: Uint8Array, length: Uint32Array) => number
type Shutdown = (descriptor: number, how: number) => number

interface Peer {
  connections: number
  /** Descriptors of those whose client has sent nothing lately. */
  quiet: number[]
}

/**
 * Ends TCP connections of this process whose client has sent nothing for `quietMs`, those of the
 * addresses with the most connections first, until at least `wanted` are ended or none is left.
 * Returns how many. The runtime sees each end as if the client had closed. On Linux alone.
 */
export function endQuietConnections(wanted: number, quietMs: number, limit: number): number {
  const shutdown = cFunction<Shutdown>('shutdown', { args: ['i32', 'i32'], returns: 'i32' })
  const peers = [...listPeers(quietMs, Math.min(limit, DESCRIPTORS_MAX)).values()]
  if (!shutdown || peers.length === 0) return 0
  // What no address may have more of; each round halves it.
  let most = Math.max(...peers.map(({ connections }) => connections))
  const surplus = ({ connections, quiet }: Peer) => Math.min(quiet.length, connections - most)
  const sum = () => peers.reduce((total, peer) => total + Math.max(0, surplus(peer)), 0)
  while (most > 0 && sum() < wanted) most = Math.floor(most / 2)
  let ended = 0
  for (const peer of peers) {
    for (const descriptor of peer.quiet.slice(0, Math.max(0, surplus(peer)))) {
      if (shutdown(descriptor, SHUT_RDWR) === 0) ended++
    }
  }
  return ended
}

/** By address: an IPv4 address, or the /64 of an IPv6 address. */
function listPeers(quietMs: number, limit: number): Map<string, Peer> {
  const peers = new Map<string, Peer>()
  const getOption = cFunction<GetSocketOption>('getsockopt', {
    args: ['i32', 'i32', 'i32', 'ptr', 'ptr'],
    returns: 'i32',
  })
  const getPeer = cFunction<GetPeerName>('getpeername', {
    args: ['i32', 'ptr', 'ptr'],
    returns: 'i32',
  })
  if (!getOption || !getPeer) return peers
  const info = new Uint8Array(TCP_INFO_BYTES)
  const lastReceived = new Uint32Array(info.buffer, LAST_DATA_RECEIVED_OFFSET, 1)
  const address = new Uint8Array(ADDRESS_BYTES)
  const length = new Uint32Array(1)
  for (let descriptor = 3; descriptor < limit; descriptor++) {
    length[0] = TCP_INFO_BYTES
    const isTcp = getOption(descriptor, IPPROTO_TCP, TCP_INFO, info, length) === 0
    if (!isTcp || info[STATE_OFFSET] !== TCP_ESTABLISHED) continue
    length[0] = ADDRESS_BYTES
    if (getPeer(descriptor, address, length) !== 0) continue
    const key = peerKey(address)
    const peer = peers.get(key) ?? { connections: 0, quiet: [] }
    peers.set(key, peer)
    peer.connections++
    if ((lastReceived[0] ?? 0) >= quietMs) peer.quiet.push(descriptor)
  }
  return peers
}

/** Of struct sockaddr_in or sockaddr_in6. */
function peerKey(address: Uint8Array): string {
  const family = new DataView(address.buffer).getUint16(0, true)
  if (family === AF_INET) return address.subarray(4, 8).join('.')
  const bytes = address.subarray(8, 24)
  const isMapped = bytes.subarray(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255'
  return isMapped ? bytes.subarray(12).join('.') : bytes.subarray(0, 8).join(':')
}
