import type { Remote } from './load.ts'
import type { Target } from './request.ts'

/** More bytes than the head of a redirect has. */
const TAIL_BYTES = 1024
const HEAD_MAX = 64 * 1024
const LENGTH_NAME = '\r\nContent-Length: '
const HEAD_END = Buffer.from('\r\n\r\n')
/** The last chunk of a chunked body. */
const BODY_END = Buffer.from('0\r\n\r\n')

/** What the response of a target must be. */
export interface Expected extends Target {
  statusStart: string
  locationLine: string
}

export const expectedOf = (target: Target): Expected => ({
  ...target,
  statusStart: `HTTP/1.1 ${target.status} `,
  locationLine: target.location === undefined ? '' : `\r\nLocation: ${target.location}\r\n`,
})

/** Events of a connection. */
interface ConnectionEvents {
  /** All responses have come. `fault`: what is wrong with the checked one; empty if it is right. */
  answered(connection: Connection, fault: string): void
  /** The connection is closed. */
  lost(connection: Connection, reason: string): void
}

/** The last TLS session of a server, which its next connection resumes. */
export interface TlsSessions {
  latest?: Uint8Array
  /** Connections that were resumed. */
  resumed: number
}

/** A raw keep-alive connection that carries one request, or one batch of them, at a time. */
export class Connection {
  readonly #events: ConnectionEvents
  #socket: Bun.Socket | undefined
  #unsent: Buffer | undefined
  #isGone = false
  /** The target of the last request in flight. */
  #target: Expected | undefined
  /** Beginning of a response head, or the last bytes of a batch. */
  #pending: Buffer | undefined
  /** The head that has come; empty before. */
  #head = ''
  /** Bytes of the body that are still to come; infinite for a chunked body. */
  #bodyLeft = 0
  #bodyBytes = 0
  /** Whether responses are awaited. */
  isBusy = false
  /** Of the last requests: the number of the first one, how many, and when they were sent. */
  number = 0
  count = 0
  sentAt = 0
  openedAt = 0
  /** Whether they waited for a connection. */
  isDelayed = false

  constructor(events: ConnectionEvents) {
    this.#events = events
  }

  /** Throws if the server cannot be reached or its certificate is not trusted. */
  async open(
    { address, tls }: Pick<Remote, 'address' | 'tls'>,
    port: number,
    sessions: TlsSessions = { resumed: 0 },
  ): Promise<void> {
    const shaken = Promise.withResolvers<void>()
    // Without TLS, nothing waits for it.
    shaken.promise.catch(() => {})
    this.openedAt = Bun.nanoseconds()
    this.#socket = await Bun.connect({
      hostname: address,
      port,
      ...(tls && { tls: { serverName: tls.serverName, ...(tls.ca && { ca: tls.ca }) } }),
      socket: {
        open: (socket) => {
          if (tls?.resumes && sessions.latest) socket.setSession(sessions.latest)
        },
        handshake: (socket, isDone, error) => {
          if (socket.isSessionReused()) sessions.resumed += 1
          if (isDone && !error) shaken.resolve()
          else shaken.reject(error ?? new Error('the TLS handshake failed'))
        },
        data: (socket, bytes) => {
          // With TLS 1.3 the session comes after the handshake, before the response.
          const session: unknown = tls?.resumes ? socket.getSession() : undefined
          if (session instanceof Uint8Array) sessions.latest = session
          this.#receive(bytes)
        },
        drain: () => this.#flush(),
        close: () => {
          shaken.reject(new Error('the server closed the connection'))
          this.#lose('the server closed the connection')
        },
        error: (_, error) => this.#lose(error.message),
      },
    })
    this.#socket.setNoDelay(true)
    if (tls) await shaken.promise
  }

  /** Sends requests `number` and following. `target`: that of the last one. */
  send(bytes: Buffer, target: Expected, number: number, count: number): void {
    this.#target = target
    this.isBusy = true
    this.number = number
    this.count = count
    this.sentAt = Bun.nanoseconds()
    const written = this.#socket?.write(bytes) ?? 0
    // A copy, because the generator writes the next number into the same bytes.
    if (written < bytes.length) this.#unsent = Buffer.from(bytes.subarray(Math.max(0, written)))
  }

  close(): void {
    this.#isGone = true
    this.#socket?.end()
  }

  #receive(bytes: Buffer): void {
    if (this.#isGone) return
    try {
      if (!this.isBusy) throw new Error('an answer without a request')
      const isComplete = this.count === 1 ? this.#readResponse(bytes) : this.#readTail(bytes)
      if (!isComplete) return
    } catch (error) {
      this.#lose(error instanceof Error ? error.message : String(error))
      return
    }
    const fault = this.count === 1 ? this.#fault() : ''
    this.#head = ''
    this.isBusy = false
    this.#events.answered(this, fault)
  }

  /** Whether the response is complete. Throws Error unless it is HTTP/1.1 with a body that ends. */
  #readResponse(bytes: Buffer): boolean {
    if (this.#head !== '') return this.#skipBody(bytes)
    const all = this.#pending ? Buffer.concat([this.#pending, bytes]) : bytes
    const end = all.indexOf(HEAD_END)
    if (end === -1 && all.length > HEAD_MAX) throw new Error('the response head is too long')
    // A copy: the socket may reuse its buffer.
    this.#pending = end === -1 ? Buffer.from(all) : undefined
    if (end === -1) return false
    const head = all.toString('latin1', 0, end + 2)
    if (!head.startsWith('HTTP/1.1 ')) throw new Error('the answer is not HTTP/1.1')
    this.#head = head
    this.#bodyBytes = 0
    this.#bodyLeft = bodyLengthOf(head)
    return this.#skipBody(all.subarray(end + HEAD_END.length))
  }

  #skipBody(bytes: Buffer): boolean {
    this.#bodyBytes += bytes.length
    this.#bodyLeft -= bytes.length
    if (this.#bodyLeft < 0) throw new Error('bytes after the end of the response')
    if (Number.isFinite(this.#bodyLeft)) return this.#bodyLeft === 0
    const all = this.#pending ? Buffer.concat([this.#pending, bytes]) : bytes
    const end = Buffer.from(all.subarray(-BODY_END.length))
    this.#pending = end.equals(BODY_END) ? undefined : end
    return this.#pending === undefined
  }

  /** Whether the last response of a batch is there: it leads to the expected URL. */
  #readTail(bytes: Buffer): boolean {
    const end = bytes.subarray(-TAIL_BYTES)
    const tail = this.#pending ? Buffer.concat([this.#pending, end]) : end
    const at = tail.indexOf(this.#target?.locationLine ?? '')
    const isComplete = at >= 0 && tail.includes(HEAD_END, at + 2)
    this.#pending = isComplete ? undefined : Buffer.from(tail.subarray(-TAIL_BYTES))
    return isComplete
  }

  #fault(): string {
    const { path, statusStart, location, locationLine, bodyBytes } = this.#target as Expected
    // Some proxies write the names of headers in lower case. The search costs time.
    const isUsual = this.#head.includes(locationLine)
    const found = isUsual ? location : /^location: (.*)\r$/im.exec(this.#head)?.[1]
    const isRight =
      this.#head.startsWith(statusStart) &&
      (isUsual || found === location) &&
      (bodyBytes === undefined || bodyBytes === this.#bodyBytes)
    if (isRight) return ''
    const length = bodyBytes === undefined ? '' : `, ${this.#bodyBytes} bytes`
    return `${path}: ${this.#head.slice(9, 12)} ${found ?? 'without Location'}${length}`
  }

  #flush(): void {
    if (!this.#unsent) return
    const written = this.#socket?.write(this.#unsent) ?? 0
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(written) : undefined
  }

  #lose(reason: string): void {
    if (this.#isGone) return
    this.close()
    this.#events.lost(this, reason)
  }
}

/** Infinite for a chunked body. Throws Error for a body that only ends with the connection. */
function bodyLengthOf(head: string): number {
  // The usual spelling; a search for any takes a tenth of the generator's time.
  const at = head.indexOf(LENGTH_NAME)
  if (at !== -1) return Number.parseInt(head.slice(at + LENGTH_NAME.length), 10)
  const length = /\r\ncontent-length: *(\d+)\r/i.exec(head)?.[1]
  if (length !== undefined) return Number(length)
  if (/\r\ntransfer-encoding: *chunked\r/i.test(head)) return Number.POSITIVE_INFINITY
  const status = head.slice(9, 12)
  if (status === '204' || status === '304') return 0
  throw new Error(`a ${status} response without Content-Length`)
}
