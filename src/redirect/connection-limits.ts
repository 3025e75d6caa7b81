import { SECOND } from '../lib/clock.ts'

/** Descriptors for the service's own files, databases and threads, and a share of all. */
const RESERVE = 64
const RESERVE_SHARE = 1 / 8
/** Descriptors of a connection to the control thread: its two ends, and a file that it sends. */
const UPSTREAM_DESCRIPTORS = 3
const UPSTREAMS_SHARE = 3 / 8
/** The length of the control thread's queue for `accept`. */
const UPSTREAMS_MAX = 512
/** Memory of all threads for unsent responses and unanswered requests. */
const BYTES_MAX = 64 * 1024 * 1024
/** Share of one address in a thread's connections to the control thread, and in its memory. */
const ADDRESS_SHARE = 1 / 4
/** Share of requests that have not arrived completely: others always have room. */
const UPLOADS_SHARE = 1 / 2
/** Share of the connections that are closed at once when there are too many. */
const CLOSED_SHARE = 1 / 64
/** A request whose client sends or reads nothing for this time may be ended for another one. */
const STALLED_MS = 2 * SECOND
/** Bun closes a connection to the control thread that is idle for 30 s. */
const UPSTREAM_IDLE_MS = 20 * SECOND

type Limit = 'connections' | 'requests' | 'bytes'

export interface ThreadLimits {
  connectionsMax: number
  /** Connections to the control thread. */
  upstreamsMax: number
  bytesMax: number
}

/** Equal parts for all threads: the system spreads connections evenly over them. */
export function limitsPerThread(descriptorsMax: number, threads: number): ThreadLimits {
  const free = (descriptorsMax * (1 - RESERVE_SHARE) - RESERVE) / threads
  const upstreams = Math.min(
    UPSTREAMS_MAX / threads,
    (free * UPSTREAMS_SHARE) / UPSTREAM_DESCRIPTORS,
  )
  const upstreamsMax = Math.max(2, Math.floor(upstreams))
  const connectionsMax = Math.max(4, Math.floor(free - upstreamsMax * UPSTREAM_DESCRIPTORS))
  return { connectionsMax, upstreamsMax, bytesMax: BYTES_MAX / threads }
}

/** What the connections of one address use on this thread. */
export interface AddressUsage {
  readonly address: string
  /** A trusted proxy: many clients connect from it, and it has limits of its own. */
  readonly isProxy: boolean
  connections: number
  /** Requests that the control thread answers. */
  requests: number
  /** Requests that have not arrived completely. */
  uploads: number
  bytes: number
}

export interface LimitedConnection {
  readonly usage: AddressUsage
  /** Memory for unsent responses and unanswered requests. Set by the limits, like the next two. */
  bytes: number
  readonly lastActive: number
  /** Nothing happens until the client sends or reads something. */
  readonly waitsForClient: boolean
  /** The control thread answers a request. */
  hasRequest: boolean
  /** The request, forwarded or waiting, has not arrived completely. */
  isUpload: boolean
  /** It has a connection to the control thread. */
  readonly hasUpstream: boolean
  terminate(): void
  endUpstream(): void
  /** Calls `admit` again. */
  resume(): void
}

/** Bounds what the clients of one redirect thread use. The address that uses most yields first. */
export class ConnectionLimits<Connection extends LimitedConnection> {
  readonly connections = new Set<Connection>()
  /** Memory of all connections. */
  bytes = 0
  readonly #limits: ThreadLimits
  readonly #onClosed: (limit: Limit) => void
  readonly #usages = new Map<string, AddressUsage>()
  #upstreams = 0
  #uploads = 0
  /** With a connection to the control thread and no request, and since when, in this order. */
  readonly #idle = new Map<Connection, number>()
  /** With a request that cannot be forwarded yet. */
  readonly #waiting = new Set<Connection>()

  /** `onClosed`: a connection was closed because of the limit. */
  constructor(limits: ThreadLimits, onClosed: (limit: Limit) => void) {
    this.#limits = limits
    this.#onClosed = onClosed
  }

  usageOf(address: string, isProxy: boolean): AddressUsage {
    return this.#usages.getOrInsertComputed(address, () => {
      return { address, isProxy, connections: 0, requests: 0, uploads: 0, bytes: 0 }
    })
  }

  /** May close others, or this one. */
  open(connection: Connection): void {
    this.connections.add(connection)
    connection.usage.connections++
    const { size } = this.connections
    if (size <= this.#limits.connectionsMax) return
    for (const next of this.#inClosingOrder().slice(0, Math.ceil(size * CLOSED_SHARE))) {
      this.#close(next, 'connections')
    }
  }

  close(connection: Connection): void {
    this.setBytes(connection, 0)
    this.endRequest(connection)
    if (!this.connections.delete(connection)) return
    this.#idle.delete(connection)
    this.#waiting.delete(connection)
    const { usage } = connection
    if (--usage.connections === 0) this.#usages.delete(usage.address)
  }

  /** May close others, or this one. */
  setBytes(connection: Connection, bytes: number): void {
    if (!this.connections.has(connection)) return
    const { usage } = connection
    const added = bytes - connection.bytes
    connection.bytes = bytes
    usage.bytes += added
    this.bytes += added
    if (added <= 0) return
    const { bytesMax } = this.#limits
    if (!usage.isProxy && usage.bytes > bytesMax * ADDRESS_SHARE) this.#close(connection, 'bytes')
    if (this.bytes <= bytesMax) return
    const most = largest(this.#usages.values(), (each) => each.bytes)
    const members = [...this.connections].filter((member) => member.usage === most)
    const next = largest(members, (member) => member.bytes)
    if (next) this.#close(next, 'bytes')
  }

  /**
   * Whether a request may be forwarded now, on the upstream of the connection or a new one. It
   * counts until `endRequest`, as an upload until `endUpload`, and a new upstream until
   * `closeUpstream`. If it may not, `resume` is called once it may.
   */
  admit(connection: Connection): boolean {
    if (!this.#mayForward(connection)) {
      this.#waiting.add(connection)
      this.#endIdleUpstream()
      return false
    }
    connection.hasRequest = true
    connection.usage.requests++
    if (connection.isUpload) this.#countUploads(connection, 1)
    this.#idle.delete(connection)
    if (!connection.hasUpstream) this.#upstreams++
    return true
  }

  endUpload(connection: Connection): void {
    if (!connection.isUpload || !connection.hasRequest) return
    connection.isUpload = false
    this.#countUploads(connection, -1)
    this.#resumeNext()
  }

  endRequest(connection: Connection): void {
    if (!connection.hasRequest) return
    this.endUpload(connection)
    connection.hasRequest = false
    connection.usage.requests--
    if (connection.hasUpstream) this.#idle.set(connection, connection.lastActive)
    this.#resumeNext()
  }

  closeUpstream(connection: Connection): void {
    this.#upstreams--
    if (!connection.hasUpstream) this.#idle.delete(connection)
    this.#resumeNext()
  }

  /** Call it once a second. While requests wait, ends as many stalled ones. */
  check(now: number): void {
    for (const [next, since] of this.#idle) if (now - since > UPSTREAM_IDLE_MS) next.endUpstream()
    if (this.#waiting.size === 0) return
    const stalled = [...this.connections].filter(({ hasRequest, waitsForClient, lastActive }) => {
      return hasRequest && waitsForClient && now - lastActive >= STALLED_MS
    })
    for (const next of stalled.slice(0, this.#waiting.size)) this.#close(next, 'requests')
  }

  #mayForward({ usage, hasUpstream, isUpload }: Connection): boolean {
    const { upstreamsMax } = this.#limits
    const addressMax = usage.isProxy ? upstreamsMax : Math.max(2, upstreamsMax * ADDRESS_SHARE)
    if ((!hasUpstream && this.#upstreams >= upstreamsMax) || usage.requests >= addressMax)
      return false
    const isUploadFree =
      this.#uploads < upstreamsMax * UPLOADS_SHARE && usage.uploads < addressMax * UPLOADS_SHARE
    return !isUpload || isUploadFree
  }

  #countUploads({ usage }: Connection, more: number): void {
    this.#uploads += more
    usage.uploads += more
  }

  /** The address with the fewest requests is first. */
  #resumeNext(): void {
    for (;;) {
      const ready = [...this.#waiting].filter((connection) => this.#mayForward(connection))
      const next = largest(ready, ({ usage }) => -usage.requests)
      if (!next) break
      this.#waiting.delete(next)
      next.resume()
    }
    if (this.#waiting.size > 0) this.#endIdleUpstream()
  }

  #endIdleUpstream(): void {
    const [oldest] = this.#idle.keys()
    if (!oldest || this.#upstreams < this.#limits.upstreamsMax) return
    this.#idle.delete(oldest)
    // Not while a request is admitted: the end of an upstream may resume another one at once.
    queueMicrotask(() => {
      if (!oldest.hasRequest) oldest.endUpstream()
    })
  }

  /**
   * Connections that wait for their client. The next one is always of the address that has most,
   * and of these the one that was idle longest.
   */
  #inClosingOrder(): Connection[] {
    const closed = new Map<AddressUsage, number>()
    return [...this.connections]
      .filter(({ waitsForClient }) => waitsForClient)
      .sort((a, b) => a.lastActive - b.lastActive)
      .map((connection) => {
        const before = closed.get(connection.usage) ?? 0
        closed.set(connection.usage, before + 1)
        return { connection, left: connection.usage.connections - before }
      })
      .sort((a, b) => b.left - a.left)
      .map(({ connection }) => connection)
  }

  #close(connection: Connection, limit: Limit): void {
    this.#onClosed(limit)
    connection.terminate()
  }
}

/** The item with the largest value; undefined if there is none. */
function largest<Item>(items: Iterable<Item>, measure: (item: Item) => number): Item | undefined {
  let found: Item | undefined
  for (const item of items) if (!found || measure(item) > measure(found)) found = item
  return found
}
