import { connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP proxy on 127.0.0.1 whose connections a test can cut, refuse, stall, delay and limit. */

/** `up`: from the client to the server. */
type Direction = 'up' | 'down'

/** Bytes of one connection that wait for a limited line. */
const BUFFER_BYTES = 16 * 1024

const DIRECTIONS: readonly Direction[] = ['up', 'down']

export class TcpProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  readonly #abandoned = new WeakSet<Socket>()
  readonly #stalled = new Set<Direction>()
  readonly #delayMs: Record<Direction, number> = { up: 0, down: 0 }
  /** The transfers so far, of all connections. */
  readonly #busyUntil: Record<Direction, number> = { up: 0, down: 0 }
  #bytesPerMs = Number.POSITIVE_INFINITY
  readonly #onTheWay = new Set<Promise<void>>()
  #isRefusing = false
  #holding: string | undefined
  #resume: (() => void)[] = []

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  /** `target`: a port of 127.0.0.1. */
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    return address.port
  }

  /** Resets all connections; bytes on their way are lost. New ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
    this.#sockets.clear()
  }

  /** Cuts all connections, and resets each new one until `restore`. */
  disconnect(): void {
    this.#isRefusing = true
    this.cut()
  }

  /** Holds bytes back until `restore`; both ends keep their connections. */
  stall(...directions: readonly Direction[]): void {
    for (const direction of directions.length > 0 ? directions : DIRECTIONS) {
      this.#stalled.add(direction)
    }
  }

  /** Carries nothing over the present connections any more, as if the server had lost its power. */
  abandon(): void {
    for (const socket of this.#sockets) this.#abandoned.add(socket)
  }

  /** Holds back what clients send from the first bytes with this text on, until `restore`. */
  holdAfter(text: string): void {
    this.#holding = text
  }

  /** The text of `holdAfter` has come. */
  get isHolding(): boolean {
    return this.#holding !== undefined && this.#stalled.has('up')
  }

  delay(ms: number, ...directions: readonly Direction[]): void {
    for (const direction of directions.length > 0 ? directions : DIRECTIONS) {
      this.#delayMs[direction] = ms
    }
  }

  /** All connections share one line of this speed in each direction. */
  limit(bitsPerSecond: number): void {
    this.#bytesPerMs = bitsPerSecond / 8000
  }

  /** Resolves when all bytes that the proxy has now are delivered, after `restore` in any case. */
  async delivered(): Promise<void> {
    await Promise.all(this.#onTheWay)
  }

  /** Ends `disconnect`, `stall`, `holdAfter`, `delay` and `limit`. */
  restore(): void {
    this.#isRefusing = false
    this.#holding = undefined
    this.#stalled.clear()
    this.delay(0)
    this.limit(Number.POSITIVE_INFINITY)
    for (const resume of this.#resume.splice(0)) resume()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.restore()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.#isRefusing) {
      client.on('error', () => {})
      client.resetAndDestroy()
      return
    }
    const server = connect(this.#target, '127.0.0.1')
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
    this.#pass(client, server, 'up')
    this.#pass(server, client, 'down')
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    let last = Promise.resolve()
    let waiting = 0
    from.on('data', (bytes) => {
      if (this.#holding && direction === 'up' && bytes.includes(this.#holding)) this.stall('up')
      const due = performance.now() + this.#delayMs[direction]
      // As on a slow line, the sender has to wait.
      waiting += bytes.length
      if (waiting > BUFFER_BYTES && this.#bytesPerMs < Number.POSITIVE_INFINITY) from.pause()
      last = last.then(async () => {
        const rest = due - performance.now()
        if (rest > 0) await Bun.sleep(rest)
        while (this.#stalled.has(direction)) {
          await new Promise<void>((resolve) => this.#resume.push(resolve))
        }
        if (!to.destroyed && !this.#abandoned.has(from)) {
          await this.#transfer(bytes.length, direction)
          to.write(bytes)
        }
        waiting -= bytes.length
        if (waiting <= BUFFER_BYTES) from.resume()
      })
      const sent = last
      this.#onTheWay.add(sent)
      void sent.then(() => this.#onTheWay.delete(sent))
    })
    from.on('close', () => {
      last = last.then(() => {
        if (!this.#abandoned.has(from)) to.end()
      })
    })
  }

  /** Resolves when the line has carried these bytes, after those of earlier calls. */
  async #transfer(bytes: number, direction: Direction): Promise<void> {
    if (this.#bytesPerMs === Number.POSITIVE_INFINITY) return
    const begin = Math.max(performance.now(), this.#busyUntil[direction])
    this.#busyUntil[direction] = begin + bytes / this.#bytesPerMs
    await Bun.sleep(this.#busyUntil[direction] - performance.now())
  }
}
