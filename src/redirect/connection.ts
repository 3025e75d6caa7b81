import type { Socket } from 'bun'
import type { TlsPair } from '../certificates/pair.ts'
import type { ClientAddress, Peer } from '../hot/client-address.ts'
import { SECOND } from '../lib/clock.ts'
import { release } from '../lib/release.ts'
import type { AnswerQueue } from './answer-queue.ts'
import type { ClearPort } from './clear-port.ts'
import type { AddressUsage, ConnectionLimits, LimitedConnection } from './connection-limits.ts'
import {
  asLast,
  BAD_TARGET,
  bodyLengthOf,
  isHeadStart,
  PlainRequest,
  withPathTarget,
} from './plain-request.ts'
import { ResponseEnd } from './response-end.ts'
import { type Answer, toText } from './responses.ts'
import { type Downstream, Outgoing, Upstream, type UpstreamContext } from './upstream.ts'

/** Requests of one connection, and bytes of them, that are answered before others are served. */
const REQUESTS_AT_ONCE_MAX = 64
const BYTES_AT_ONCE_MAX = 32 * 1024

/** Responses are sent together up to this length: the most that waits for a slow reader. */
const RESPONSES_LENGTH = 32 * 1024

/** Bytes of long responses after which a garbage collection is worth its time, about 5 ms. */
const GARBAGE_BYTES = 32 * 1024 * 1024

/** The most that is read of requests that wait: most of them arrive completely. */
const WAITING_MAX = 16 * 1024

/** A piece of a body or a response after which other clients are served. */
const LARGE_BYTES = 64 * 1024

const IDLE_MAX_MS = 30 * SECOND
/** At least 10 s: `now` may be a second old. Slow phones need less than 3 s. */
const HANDSHAKE_MAX_MS = 11 * SECOND
/** A client that has begun to send a body sends some of it within this time. */
const BODY_IDLE_MAX_MS = 8 * SECOND

const GET = Buffer.from('GET ')
const NOTHING = Buffer.alloc(0)

/** What the connections of one redirect thread share. */
export interface ConnectionContext extends UpstreamContext {
  /** Undefined: the control thread answers. */
  follow(request: PlainRequest, peer: Peer): Answer | undefined
  limits: ConnectionLimits<Connection>
  /** Whether the response may depend on the host: see `withPathTarget`. */
  hasDomains(): boolean
  answers: AnswerQueue
  address: Pick<ClientAddress, 'parsePeer'>
  /** Bytes of long responses since the last garbage collection. */
  garbageBytes: number
  /** The header `Date`. */
  date: string
  /** The same with `Strict-Transport-Security` behind it. */
  dateOverTls: string
  health: { readonly isStopping: boolean }
}

export type HandshakeResult = 'ok' | 'failed' | 'timeout'

/** The port for https of one redirect thread. */
export interface TlsPort {
  /** That of the next connections. Undefined: connections are closed at once. */
  pair: TlsPair | undefined
  count(result: HandshakeResult): void
}

/** The options of OpenSSL beside the certificate. Versions before 1.2 are refused by default. */
const TLS_OPTIONS = {
  // In wire format: the length and the name.
  ALPNProtocols: '\x08http/1.1',
  // For version 1.2: without the suites in CBC mode.
  ciphers: 'ECDHE+AESGCM:ECDHE+CHACHA20',
}

interface Listening {
  hostname: string
  port: number
}

/** Accepts connections on a port that several threads of this process may share. */
const listen = <Data>(where: Listening, socket: Bun.SocketHandler<Data>) => {
  const options = {
    ...where,
    // The control thread has made sure that no other process listens there.
    reusePort: true,
    // A client that ends its half of the connection still reads.
    allowHalfOpen: true,
    socket,
  } satisfies Bun.TCPSocketListenOptions<Data> & { reusePort: boolean }
  return Bun.listen<Data>(options)
}

const EVENTS = {
  data: (socket, bytes) => socket.data.receive(bytes),
  drain: (socket) => socket.data.drain(),
  end: (socket) => socket.data.receiveEnd(),
  close: (socket) => socket.data.close(),
  error: (socket, error) => socket.data.fail(error),
} satisfies Bun.SocketHandler<Connection>

/** `clear`: rules of the port without TLS of a service with https. */
export function listenForClients(
  where: Listening,
  context: ConnectionContext,
  clear?: ClearPort,
): Bun.TCPSocketListener<Connection> {
  return listen<Connection>(where, {
    ...EVENTS,
    open: (socket) => {
      const connection = new Connection(socket, context, clear)
      socket.data = connection
      // A client that is gone already has no address.
      if (!connection.peer) socket.terminate()
      else context.limits.open(connection)
    },
  })
}

/**
 * The same with TLS. A connection counts from its beginning on: without a handler for the end of
 * handshakes, the runtime would report it when its handshake is complete, and a client that sends
 * nothing would stay for ever (decision 090).
 */
export function listenForTls(
  where: Listening,
  context: ConnectionContext,
  tls: TlsPort,
): Bun.TCPSocketListener<undefined> {
  const socket: Bun.SocketHandler<Connection> = {
    ...EVENTS,
    handshake: ({ data }, isDone) => data.endHandshake(isDone ? 'ok' : 'failed'),
  }
  return listen<undefined>(where, {
    open: (raw) => {
      const { pair } = tls
      if (!pair || !raw.remoteAddress) {
        raw.terminate()
        return
      }
      const connection = new Connection(raw as never, context, undefined, tls)
      const options = { isServer: true, data: connection, socket, tls: { ...pair, ...TLS_OPTIONS } }
      connection.upgrade(raw.upgradeTLS<Connection>(options)[1])
      context.limits.open(connection)
    },
    // The events of the connection are those of the socket with TLS.
    data: () => {},
    error: (raw, error) => {
      context.fail(error)
      raw.terminate()
    },
  })
}

/**
 * The connection of a client to a redirect thread. Plain requests for short links are answered
 * here. All other bytes go to Bun's server on the control thread and back, unchanged: it reads the
 * request, and decides what is wrong with it. Once its response is complete, the next request may
 * be answered here again; if the end of a request or a response is in doubt, all bytes are
 * forwarded until the connection ends.
 *
 * A connection is in one of these states:
 *
 *   reading     no flag         answers the requests in `#input`, which keeps the part of a head
 *   queued      #isQueued       `#input` waits for a tick with time, which calls `resume`
 *   waiting     #isWaiting      the request in `#input` waits for the limits, which call `resume`
 *   forwarding  #forwarded      the control thread answers; `#input` is the next request
 *   tunnel      #isTunnel       all bytes are forwarded until the connection ends
 *   ending      #isEnding       ignores what arrives, and closes once everything is sent
 *
 * `hasRequest` is true while forwarding and in a tunnel. In each state the client may have ended
 * its half (`#isInputEnded`), and reading may pause (`#isPaused`, see `setReading`): responses wait
 * for the client (`#out.isBlocked`), or other clients are served first (`#isYielding`).
 */
export class Connection implements LimitedConnection, Downstream {
  readonly #context: ConnectionContext
  readonly #out: Outgoing<Connection>
  /** The text of its address. */
  readonly peer: string
  readonly #parsedPeer: Peer
  readonly usage: AddressUsage
  /** Received bytes that are not parsed yet: the beginning of a head, or requests that wait. */
  #input: Buffer | undefined
  #upstream: Upstream | undefined
  /** The request that the control thread is answering. */
  #forwarded: { bodyLeft: number; response: ResponseEnd; isAnswered: boolean } | undefined
  #isTunnel = false
  #isEnding = false
  #isInputEnded = false
  #isQueued = false
  #isWaiting = false
  #isPaused = false
  #isYielding = false
  hasRequest = false
  isUpload = false
  bytes = 0
  /** See `UpstreamContext.now`. */
  lastActive: number
  /** Rules of the port without TLS, where another one has it. */
  readonly #clear: ClearPort | undefined
  readonly #tls: TlsPort | undefined
  #isInHandshake: boolean

  constructor(
    socket: Socket<Connection>,
    context: ConnectionContext,
    clear?: ClearPort,
    tls?: TlsPort,
  ) {
    this.#context = context
    this.#clear = clear
    this.#tls = tls
    this.#isInHandshake = tls !== undefined
    this.#out = new Outgoing(socket)
    this.peer = socket.remoteAddress
    this.#parsedPeer = context.address.parsePeer(this.peer)
    const { ip, isProxy } = this.#parsedPeer
    this.usage = context.limits.usageOf(ip, isProxy)
    this.lastActive = context.now
  }

  /** No request is under way. */
  get isIdle(): boolean {
    return !this.hasRequest && !this.#input && !this.#out.isBlocked
  }

  /**
   * The client has sent and read nothing for too long. While the control thread answers, that
   * counts only if a part of the body is missing.
   */
  get isOverdue(): boolean {
    const idle = this.#context.now - this.lastActive
    if (this.#isInHandshake) return idle > HANDSHAKE_MAX_MS
    if (!this.#upstream || !this.hasRequest) return idle > IDLE_MAX_MS
    const lacksBody = this.#forwarded !== undefined && this.#forwarded.bodyLeft > 0
    return lacksBody && idle > BODY_IDLE_MAX_MS
  }

  get hasUpstream(): boolean {
    return this.#upstream !== undefined
  }

  /** Whether the client sends next. A tunnel waits for both sides; see `lastActive`. */
  get waitsForClient(): boolean {
    return this.#out.isBlocked || this.#isTunnel || this.#forwarded?.bodyLeft !== 0
  }

  /** `socket`: that with TLS, which takes the place of the first one. */
  upgrade(socket: Socket<Connection>): void {
    this.#out.socket = socket
  }

  endHandshake(result: HandshakeResult): void {
    if (!this.#isInHandshake) return
    this.#isInHandshake = false
    this.#tls?.count(result)
    if (result === 'ok') this.lastActive = this.#context.now
    else this.terminate()
  }

  /** Ends a connection that is overdue. */
  expire(): void {
    this.endHandshake('timeout')
    this.terminate()
  }

  receive(bytes: Buffer): void {
    if (this.#isEnding) return
    if (this.hasRequest || !this.#input) this.lastActive = this.#context.now
    if (this.hasRequest) {
      this.#forwardMore(bytes)
      return
    }
    this.#input = this.#input ? Buffer.concat([this.#input, bytes]) : bytes
    if (this.#isWaiting || !this.#mustWait) this.#answer()
    this.setReading()
    this.#countBytes()
  }

  /** The kernel takes bytes again. */
  drain(): void {
    this.lastActive = this.#context.now
    const isSent = this.#out.flush()
    this.#countBytes()
    if (!isSent) return
    if (this.#isEnding) {
      this.#out.socket?.end()
      return
    }
    this.#upstream?.resume()
    if (!this.#mustWait) this.resume()
  }

  /** The client sends nothing more. */
  receiveEnd(): void {
    this.#isInputEnded = true
    if (this.hasRequest) this.#upstream?.end()
    else if (!this.#out.isBlocked && !this.#isQueued) this.end()
  }

  /** Ends the connection once everything is sent. */
  end(): void {
    this.#isEnding = true
    this.#input = undefined
    if (this.#isInHandshake) this.terminate()
    else if (!this.#out.isBlocked) this.#out.socket?.end()
  }

  terminate(): void {
    this.#out.socket?.terminate()
  }

  /** An exception in a handler of events leaves the connection in an unknown state. */
  fail(error: unknown): void {
    this.#context.fail(error)
    this.terminate()
  }

  close(): void {
    this.#isEnding = true
    this.#context.limits.close(this)
    this.endHandshake('failed')
    this.endUpstream()
  }

  endUpstream(): void {
    const upstream = this.#upstream
    this.#upstream = undefined
    upstream?.end()
  }

  /** `#input` cannot be read now. */
  get #mustWait(): boolean {
    return this.#out.isBlocked || this.#isQueued || this.#isWaiting
  }

  /** Reads `#input`, or puts it into the queue if the tick has no time for it. */
  #answer(): void {
    if (this.hasRequest) return
    const bytes = this.#input
    const hasWaited = this.#isQueued || this.#isWaiting
    this.#isQueued = bytes !== undefined && !hasWaited && this.#context.answers.takes(this)
    if (this.#isQueued) return
    this.#input = undefined
    this.#isWaiting = false
    if (bytes) this.#read(bytes)
  }

  /** HOT PATH. Answers the requests in `bytes`, up to the first that is forwarded. */
  #read(bytes: Buffer): void {
    const { now, health, answers } = this.#context
    const date = this.#tls ? this.#context.dateOverTls : this.#context.date
    const text = bytes.toString('latin1', 0, BYTES_AT_ONCE_MAX)
    let out = ''
    let at = 0
    let left = REQUESTS_AT_ONCE_MAX
    while (at < text.length && left > 0 && !this.#isEnding && !this.#out.isBlocked) {
      const end = text.indexOf('\r\n\r\n', at)
      const request = end < 0 ? undefined : PlainRequest.read(text.slice(at, end + 4))
      const answer = request && this.#follow(request)
      const isSpent = answers.spend()
      if (!answer) break
      out += toText(answer, date)
      at = end + 4
      left = isSpent ? 0 : left - 1
      this.#isEnding = request.isLast || health.isStopping
      if (out.length >= RESPONSES_LENGTH) {
        this.#sendLong(out)
        out = ''
      }
    }
    if (at > 0) this.lastActive = now
    if (out !== '') this.#out.send(out)
    if (this.#isEnding) this.end()
    else if (at < bytes.length) this.#readRest(bytes, { text, at, isOver: left === 0 })
  }

  /** The engine would wait for hundreds of MiB of such garbage. */
  #sendLong(responses: string): void {
    this.#out.send(responses)
    this.#context.garbageBytes += responses.length
    if (this.#context.garbageBytes < GARBAGE_BYTES) return
    this.#context.garbageBytes = 0
    Bun.gc(true)
  }

  #follow(request: PlainRequest): Answer | undefined {
    try {
      const answer = this.#context.follow(request, this.#parsedPeer)
      return this.#clear && answer && !this.#clear.allows(request, answer) ? undefined : answer
    } catch (error) {
      return this.#context.fail(error)
    }
  }

  /** `text`: that of the first bytes, of which those before `at` are done. */
  #readRest(bytes: Buffer, { text, at, isOver }: { text: string; at: number; isOver: boolean }) {
    const hasHead = text.indexOf('\r\n\r\n', at) >= 0
    const isCut = !hasHead && at > 0 && text.length < bytes.length
    const mustWait = isOver || isCut || this.#out.isBlocked
    const isPart = !hasHead && isHeadStart(text.slice(at))
    const rest = bytes.subarray(at)
    // A copy, if a part would keep much of the whole piece in memory.
    const isCopied = 2 * rest.length < bytes.buffer.byteLength
    if (mustWait || isPart) this.#input = isCopied ? Buffer.from(rest) : rest
    else this.#forward(rest)
    this.#isQueued = mustWait && !this.#out.isBlocked
    if (this.#isQueued) this.#context.answers.add(this)
  }

  /** Reads `#input` again. */
  resume(): void {
    if (this.#isEnding) return
    try {
      this.#answer()
      if (this.#isInputEnded) this.receiveEnd()
      this.setReading()
      this.#countBytes()
    } catch (error) {
      this.fail(error)
    }
  }

  /** `received` begins with a request for the control thread. */
  #forward(received: Buffer): void {
    const isEachRead = this.#isEachRead
    const bytes = isEachRead ? withPathTarget(received) : received
    if (bytes === undefined) {
      this.#sendLast(BAD_TARGET)
      return
    }
    const end = bytes.indexOf('\r\n\r\n') + 4
    const head = end < 4 ? undefined : bytes.toString('latin1', 0, end)
    const framed = head === undefined ? undefined : bodyLengthOf(head)
    if (this.#clear) {
      const answer = this.#clear.answer(head, framed)
      if (answer) {
        this.#sendLast(toText(answer, this.#context.date))
        return
      }
    }
    const left = (framed?.bodyLength ?? 0) - (bytes.length - end)
    const isFramed = framed !== undefined && (left >= 0 || isEachRead)
    const length = isFramed ? bytes.length + Math.min(left, 0) : bytes.length
    const bodyLeft = Math.max(left, 0)
    this.isUpload = isFramed ? bodyLeft > 0 : !bytes.subarray(0, 4).equals(GET)
    this.#isWaiting = !this.#context.limits.admit(this)
    if (this.#isWaiting) {
      this.#input = Buffer.from(bytes)
      return
    }
    const response = isFramed && new ResponseEnd(framed.method)
    if (response) this.#forwarded = { bodyLeft, response, isAnswered: false }
    else this.#isTunnel = true
    this.#hold(bytes.subarray(length))
    this.#send(this.#isTunnel && isEachRead ? asLast(bytes) : bytes.subarray(0, length))
  }

  /** Each request is read here, because its host or its path decides whether it is forwarded. */
  get #isEachRead(): boolean {
    return this.#clear !== undefined || this.#context.hasDomains()
  }

  #sendLast(response: string): void {
    this.#out.send(response)
    this.end()
  }

  /** Keeps what belongs to the next request until this one is answered. */
  #hold(bytes: Buffer): void {
    if (bytes.length > 0) this.#input = Buffer.concat([this.#input ?? NOTHING, bytes])
  }

  /** More of the request that the control thread is answering. */
  #forwardMore(bytes: Buffer): void {
    const isMore = bytes.length > (this.#forwarded?.bodyLeft ?? 0)
    // Another request arrived before the response. Bun reads it, unless it must be read here.
    if (isMore && !this.#isEachRead) this.#isTunnel = true
    const forwarded = this.#isTunnel ? undefined : this.#forwarded
    const length = Math.min(forwarded?.bodyLeft ?? bytes.length, bytes.length)
    if (forwarded) {
      forwarded.bodyLeft -= length
      if (forwarded.bodyLeft === 0) this.#context.limits.endUpload(this)
    }
    this.#hold(bytes.subarray(length))
    if (length > 0) this.#send(bytes.subarray(0, length))
    else this.setReading()
    this.#endRequest()
    this.#countBytes()
  }

  #send(bytes: Buffer): void {
    this.#upstream ??= new Upstream(this.#context, this)
    this.#upstream.send(bytes)
    if (bytes.length >= LARGE_BYTES) this.#yield()
    this.setReading()
    release(bytes)
  }

  #yield(): void {
    this.#isYielding = true
    setImmediate(() => {
      this.#isYielding = false
      this.setReading()
    })
  }

  receiveResponse(upstream: Upstream, bytes: Buffer): void {
    if (upstream !== this.#upstream) return
    this.lastActive = this.#context.now
    this.#out.send(this.#clear ? this.#clear.strip(bytes) : bytes)
    if (this.#out.isBlocked) upstream.pause()
    else if (bytes.length >= LARGE_BYTES) this.#yieldUpstream(upstream)
    const progress = (!this.#isTunnel && this.#forwarded?.response.push(bytes)) || 'unknown'
    release(bytes)
    if (progress === 'unknown') this.#isTunnel = true
    else if (progress === 'done' && this.#forwarded) this.#forwarded.isAnswered = true
    this.#endRequest()
    this.#countBytes()
  }

  /** Once the request and its response are complete, the next request is read. */
  #endRequest(): void {
    if (this.#isTunnel || !this.#forwarded?.isAnswered || this.#forwarded.bodyLeft > 0) return
    this.#forwarded = undefined
    this.#context.limits.endRequest(this)
    if (!this.#mustWait) this.resume()
  }

  #yieldUpstream(upstream: Upstream): void {
    upstream.pause()
    setImmediate(() => {
      if (!this.#out.isBlocked) upstream.resume()
    })
  }

  closeUpstream(upstream: Upstream): void {
    const isCurrent = upstream === this.#upstream
    if (isCurrent) this.#upstream = undefined
    this.#context.limits.closeUpstream(this)
    if (!isCurrent || !this.hasRequest) return
    this.end()
    this.#context.limits.endRequest(this)
  }

  #countBytes(): void {
    const bytes = this.#out.unsentBytes + (this.#input?.length ?? 0)
    if (bytes !== this.bytes) this.#context.limits.setBytes(this, bytes)
  }

  /** Reads no more from the client while what it has sent has to wait. */
  setReading(): void {
    const waiting = this.#mustWait || this.hasRequest ? (this.#input?.length ?? 0) : 0
    const isPaused =
      waiting > (this.#out.isBlocked ? 0 : WAITING_MAX) ||
      this.#isYielding ||
      this.#upstream?.isBlocked === true
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#out.socket?.pause()
    else this.#out.socket?.resume()
  }
}
