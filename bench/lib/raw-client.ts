import { readFileSync } from 'node:fs'
import { ResponseScanner } from './response-scanner.ts'

/**
 * Replaced in a path or body by the request's number, with as many digits as this has characters,
 * or by its text if the target has texts.
 */
export const NUMBER_MARK = '{number}'
/** The length of a generated code, so that the texts can be codes. */
export const TEXT_LENGTH = NUMBER_MARK.length

/** A request that a generator repeats, and its expected response. */
export interface Target {
  /** Default: `GET`. */
  method?: string
  /** May contain NUMBER_MARK once, in path or body: then each request is different. */
  path: string
  headers?: Record<string, string>
  body?: string
  /**
   * A file of concatenated texts of TEXT_LENGTH ASCII characters each: request `n` gets the `n`-th
   * of them instead of NUMBER_MARK, starting again after the last.
   */
  textsFile?: string
  /** The expected status. */
  status: number
  /** The expected `Location`; absent: not checked. */
  location?: string
  /** The expected length of the body; absent: not checked. */
  bodyBytes?: number
}

/** The bytes of a request, built once; its number or text is written into them. */
export class RequestBytes {
  readonly #bytes: Buffer
  readonly #mark: number
  readonly #texts: Buffer | undefined

  constructor(target: Target, host: string) {
    const body = target.body ?? ''
    const lines = [`${target.method ?? 'GET'} ${target.path} HTTP/1.1`, `Host: ${host}`]
    for (const [name, value] of Object.entries(target.headers ?? {})) {
      lines.push(`${name}: ${value}`)
    }
    if (target.body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
    this.#bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
    this.#mark = this.#bytes.indexOf(NUMBER_MARK)
    this.#texts = target.textsFile === undefined ? undefined : readFileSync(target.textsFile)
  }

  /** Including NUMBER_MARK. */
  get marked(): Buffer {
    return this.#bytes
  }

  /** The bytes of request `number`; valid until the next call. */
  numbered(number: number): Buffer {
    if (this.#mark === -1) return this.#bytes
    if (this.#texts) {
      const from = (number % (this.#texts.length / TEXT_LENGTH)) * TEXT_LENGTH
      this.#texts.copy(this.#bytes, this.#mark, from, from + TEXT_LENGTH)
    } else {
      const digits = String(number).padStart(TEXT_LENGTH, '0').slice(-TEXT_LENGTH)
      this.#bytes.write(digits, this.#mark, 'latin1')
    }
    return this.#bytes
  }
}

/** Events of a connection. */
interface ConnectionEvents {
  /** The response is complete; `scanner` contains it until the next send. */
  answered(connection: Connection, scanner: ResponseScanner): void
  /** The connection was closed; `inFlight`: with a request in progress. */
  lost(connection: Connection, inFlight: boolean, reason: string): void
}

/** One raw keep-alive TCP connection that carries one request at a time. */
export class Connection {
  readonly #events: ConnectionEvents
  readonly #scanner = new ResponseScanner(['location'])
  #socket: Bun.Socket | undefined
  #unsent: Buffer | undefined
  #inFlight = false
  #gone = false
  /** The number of the request in flight, the generator's own. */
  number = 0
  /** When that request should have left, in Bun.nanoseconds(). */
  intendedAt = 0

  constructor(events: ConnectionEvents) {
    this.#events = events
  }

  /** Throws if the server cannot be reached. */
  async open(hostname: string, port: number): Promise<void> {
    this.#socket = await Bun.connect({
      hostname,
      port,
      socket: {
        data: (_, bytes) => this.#receive(bytes),
        drain: () => this.#flush(),
        close: () => this.#lose('the server closed the connection'),
        error: (_, error) => this.#lose(error.message),
      },
    })
    this.#socket.setNoDelay(true)
  }

  get inFlight(): boolean {
    return this.#inFlight
  }

  send(bytes: Buffer, method: string | undefined): void {
    if (this.#inFlight) throw new Error('one request at a time: the connection is busy')
    this.#inFlight = true
    if (method === 'HEAD') this.#scanner.expectNoBody()
    const written = this.#socket?.write(bytes) ?? 0
    // A copy, because the generator writes the next number into the same bytes.
    if (written < bytes.length) this.#unsent = Buffer.from(bytes.subarray(Math.max(0, written)))
  }

  close(): void {
    this.#gone = true
    this.#socket?.end()
  }

  #receive(bytes: Buffer): void {
    if (this.#gone) return
    try {
      if (!this.#inFlight) throw new Error('an answer nobody asked for')
      if (!this.#scanner.push(bytes)) return
    } catch (error) {
      this.#lose(error instanceof Error ? error.message : String(error))
      return
    }
    this.#inFlight = false
    this.#events.answered(this, this.#scanner)
    if (this.#scanner.closes && !this.#inFlight) this.#lose('the server asked to close')
  }

  #flush(): void {
    if (!this.#unsent) return
    const written = this.#socket?.write(this.#unsent) ?? 0
    this.#unsent = written < this.#unsent.length ? this.#unsent.subarray(written) : undefined
  }

  #lose(reason: string): void {
    if (this.#gone) return
    this.#gone = true
    this.#socket?.end()
    this.#events.lost(this, this.#inFlight, reason)
  }
}
