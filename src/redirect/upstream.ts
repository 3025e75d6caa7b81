import type { Socket } from 'bun'
import type { PassedPeers } from '../hot/passed-peers.ts'
import { release } from '../lib/release.ts'
import type { Answer } from './responses.ts'

/** What all connections of a redirect thread to the control thread share. */
export interface UpstreamContext {
  /** Where the control thread listens, on the loopback interface. */
  controlPort: number
  peers: PassedPeers
  /** Milliseconds, of the last second that began. */
  now: number
  /** Counts and logs an exception. Returns the response to a request that caused it. */
  fail(exception: unknown): Answer
}

/** The connection of the client. */
export interface Downstream {
  readonly peer: string
  receiveResponse(upstream: Upstream, bytes: Buffer): void
  /** The control thread accepts more. */
  setReading(): void
  closeUpstream(upstream: Upstream): void
}

/** The connection to the control thread on behalf of one client. */
export class Upstream {
  readonly #context: UpstreamContext
  readonly #client: Downstream
  readonly #out = new Outgoing<Upstream>(undefined)
  #isEnded = false
  /** Nothing was received since the last bytes were sent. */
  #isResponseNext = false
  /** Row with the client's address, in the shared table. */
  #row: { port: number; token: number } | undefined

  constructor(context: UpstreamContext, client: Downstream) {
    this.#context = context
    this.#client = client
    void this.#connect()
  }

  get isBlocked(): boolean {
    return this.#out.isBlocked
  }

  send(bytes: Buffer): void {
    this.#isResponseNext = true
    this.#out.send(bytes)
  }

  pause(): void {
    this.#out.socket?.pause()
  }

  resume(): void {
    this.#out.socket?.resume()
  }

  /**
   * The client has gone: what is not sent is not needed. Only half of the connection is closed, so
   * that no other process gets the port before the control thread has read all requests and closed
   * the other half: until then, it takes the client's address from the row of this port.
   */
  end(): void {
    this.#isEnded = true
    this.resume()
    this.#out.discard()
    this.#out.socket?.shutdown()
  }

  open(socket: Socket<Upstream>): void {
    this.#out.socket = socket
    if (this.#isEnded) {
      socket.terminate()
      return
    }
    const { localPort: port } = socket
    this.#row = { port, token: this.#context.peers.set(port, this.#client.peer) }
    this.drain()
  }

  fail(error: unknown): void {
    this.#context.fail(error)
    this.#out.socket?.terminate()
  }

  async #connect(): Promise<void> {
    const { controlPort: port } = this.#context
    const options = { hostname: '127.0.0.1', port, data: this, socket: UPSTREAM_EVENTS }
    await Bun.connect(options).catch(() => this.close())
  }

  receive(bytes: Buffer): void {
    const isStart = this.#isResponseNext
    this.#isResponseNext = false
    this.#client.receiveResponse(this, isStart ? uncached(bytes) : bytes)
  }

  drain(): void {
    if (this.#out.flush()) this.#client.setReading()
  }

  close(): void {
    const row = this.#row
    if (row) this.#context.peers.clear(row.port, row.token)
    this.#client.closeUpstream(this)
  }
}

const BARE = /^HTTP\/1\.1 [45]\d\d [A-Za-z ]+\r\n(?=Connection: close\r\n\r\n$)/
const BARE_MAX = 128
const NO_STORE = Buffer.from('Cache-Control: no-store\r\n')

/**
 * Bun refuses a request that it cannot parse (400, 431, 505) without any header but `Connection`. A
 * cache that stored such a refusal would send it to other callers.
 */
function uncached(bytes: Buffer): Buffer {
  if (bytes.length > BARE_MAX) return bytes
  const line = BARE.exec(bytes.toString('latin1'))?.[0]
  if (line === undefined) return bytes
  const { length } = line
  return Buffer.concat([bytes.subarray(0, length), NO_STORE, bytes.subarray(length)])
}

const UPSTREAM_EVENTS: Bun.SocketHandler<Upstream> = {
  open: (socket) => socket.data.open(socket),
  data: (socket, bytes) => socket.data.receive(bytes),
  drain: (socket) => socket.data.drain(),
  close: (socket) => socket.data.close(),
  error: (socket, error) => socket.data.fail(error),
}

/** Sends bytes in order, and holds those that the kernel does not take yet. */
export class Outgoing<Data> {
  /** Undefined: not connected yet. */
  socket: Socket<Data> | undefined
  #unsent: Buffer | undefined

  constructor(socket: Socket<Data> | undefined) {
    this.socket = socket
  }

  get isBlocked(): boolean {
    return this.#unsent !== undefined
  }

  /** Memory of what is not sent. */
  get unsentBytes(): number {
    return this.#unsent?.buffer.byteLength ?? 0
  }

  /** HOT PATH. */
  send(bytes: string | Buffer): void {
    if (this.#unsent || !this.socket) {
      const more = Buffer.from(bytes as string)
      this.#unsent = this.#unsent ? Buffer.concat([this.#unsent, more]) : more
      return
    }
    const sent = this.socket.write(bytes)
    if (sent < 0 || sent === Buffer.byteLength(bytes)) return
    this.#unsent = Buffer.from(Buffer.from(bytes as string).subarray(sent))
  }

  /** Does not send what the kernel has not taken. */
  discard(): void {
    this.#unsent = undefined
  }

  /** Returns whether everything is sent. */
  flush(): boolean {
    const bytes = this.#unsent
    if (!bytes) return true
    const sent = this.socket?.write(bytes) ?? 0
    const isPart = sent >= 0 && sent < bytes.length
    this.#unsent = isPart ? bytes.subarray(sent) : undefined
    if (!isPart) release(bytes)
    return !isPart
  }
}
