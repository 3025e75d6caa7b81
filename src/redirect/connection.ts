import type { Socket } from 'bun'
import { ControlLink, type LinkContext, Outgoing, release } from './control-link.ts'
import type { Follow } from './follow.ts'
import { bodyLengthOf, isHeadStart, PlainRequest } from './plain-request.ts'
import { ResponseEnd } from './response-end.ts'
import { toText } from './responses.ts'

/** Requests that one client has answered before other clients have a turn. */
const TURN_MAX = 64

/** A piece of a body or a response after which other clients have a turn. */
const LARGE_BYTES = 64 * 1024

/** What the connections of one redirect thread share. */
export interface ConnectionContext extends LinkContext {
  follow: Follow
  connections: Set<Connection>
  /** The header `Date`. */
  date: string
  health: { readonly isStopping: boolean }
}

/** Accepts connections on a port that several threads of this process may share. */
export function listenForClients(
  { hostname, port }: { hostname: string; port: number },
  context: ConnectionContext,
): Bun.TCPSocketListener<Connection> {
  const options = {
    hostname,
    port,
    // The control thread has made sure that no other process listens there.
    reusePort: true,
    // A client that ends its half of the connection still reads.
    allowHalfOpen: true,
    socket: {
      open: (socket) => {
        socket.data = new Connection(socket, context)
        // A client that is gone already has no address.
        if (!socket.data.peer) socket.terminate()
      },
      data: (socket, bytes) => socket.data.receive(bytes),
      drain: (socket) => socket.data.drain(),
      end: (socket) => socket.data.receiveEnd(),
      close: (socket) => socket.data.close(),
      error: (socket) => socket.data.terminate(),
    },
  } satisfies Bun.TCPSocketListenOptions<Connection> & { reusePort: boolean }
  return Bun.listen(options)
}

/**
 * The connection of a client to a redirect thread. Plain requests for short links are answered
 * here. All other bytes go to Bun's server on the control thread and back, unchanged: it reads the
 * request, and decides what is wrong with it. Once its response is complete, the next request may
 * be answered here again; if the end of a request or a response is in doubt, all bytes are passed
 * on until the connection ends.
 */
export class Connection {
  readonly #context: ConnectionContext
  readonly #out: Outgoing<Connection>
  readonly peer: string
  /** What has come and was not read: the beginning of a head, or requests that wait. */
  #input: Buffer | undefined
  #control: ControlLink | undefined
  /** The request that the control thread is answering. */
  #passed: { bodyLeft: number; response: ResponseEnd } | undefined
  #isPassedOn = false
  #isEnding = false
  #isInputEnded = false
  /** Other clients have a turn before `#input` is read. */
  #isContinued = false
  #isPaused = false
  /** Other clients have a turn before more is passed on. */
  #isResting = false
  /** See `LinkContext.now`. */
  lastActive: number

  constructor(socket: Socket<Connection>, context: ConnectionContext) {
    this.#context = context
    this.#out = new Outgoing(socket)
    this.peer = socket.remoteAddress
    this.lastActive = context.now
    context.connections.add(this)
  }

  /** No request is under way. */
  get isIdle(): boolean {
    return !this.#isPassedOn && !this.#passed && !this.#input && !this.#out.isBlocked
  }

  /** The control thread decides how long a request may take. */
  get isTimed(): boolean {
    return !this.#control || (!this.#isPassedOn && !this.#passed)
  }

  receive(bytes: Buffer): void {
    if (this.#isEnding) return
    if (this.#isPassedOn) this.#pass(bytes)
    else if (this.#passed) this.#passBody(this.#passed, bytes)
    else {
      if (!this.#input) this.lastActive = this.#context.now
      this.#input = this.#input ? Buffer.concat([this.#input, bytes]) : bytes
      if (this.#out.isBlocked || this.#isContinued) this.#setReading()
      else this.#answer()
    }
  }

  /** The kernel takes bytes again. */
  drain(): void {
    this.lastActive = this.#context.now
    if (!this.#out.flush()) return
    if (this.#isEnding) {
      this.#out.socket?.end()
      return
    }
    this.#control?.resume()
    if (!this.#isContinued) this.#continue()
  }

  /** The client sends nothing more. */
  receiveEnd(): void {
    this.#isInputEnded = true
    if (this.#isPassedOn || this.#passed) this.#control?.end()
    else if (!this.#out.isBlocked && !this.#isContinued) this.end()
  }

  /** Ends the connection once everything is sent. */
  end(): void {
    this.#isEnding = true
    this.#input = undefined
    if (!this.#out.isBlocked) this.#out.socket?.end()
  }

  terminate(): void {
    this.#out.socket?.terminate()
  }

  close(): void {
    this.#isEnding = true
    this.#context.connections.delete(this)
    this.#endControl()
  }

  #answer(): void {
    const bytes = this.#input
    this.#input = undefined
    if (bytes) this.#read(bytes)
  }

  /** HOT PATH. Answers the requests in `bytes`, up to the first that is passed on. */
  #read(bytes: Buffer): void {
    const { follow, date, now, health } = this.#context
    const text = bytes.toString('latin1')
    let out = ''
    let at = 0
    let count = 0
    let isHeadComplete = true
    while (at < text.length && count < TURN_MAX && !this.#isEnding) {
      const end = text.indexOf('\r\n\r\n', at)
      isHeadComplete = end >= 0
      const request = isHeadComplete ? PlainRequest.read(text.slice(at, end + 4)) : undefined
      const answer = request && follow(request, this.peer)
      if (!answer) break
      out += toText(answer, date)
      at = end + 4
      count++
      this.#isEnding = request.isLast || health.isStopping
    }
    if (out !== '') {
      this.lastActive = now
      this.#out.send(out)
    }
    if (this.#isEnding) this.end()
    else if (at < text.length) this.#readRest(bytes, at, { count, isHeadComplete })
  }

  #readRest(
    bytes: Buffer,
    at: number,
    { count, isHeadComplete }: { count: number; isHeadComplete: boolean },
  ): void {
    const mustWait = count === TURN_MAX || this.#out.isBlocked
    const isPart = !isHeadComplete && isHeadStart(bytes.toString('latin1', at))
    // A copy, because a part would keep the whole piece in memory.
    if (mustWait || isPart) this.#input = Buffer.from(bytes.subarray(at))
    else this.#forward(bytes.subarray(at))
    if (mustWait) {
      this.#isContinued = !this.#out.isBlocked
      this.#setReading()
      if (this.#isContinued) setImmediate(() => this.#continue())
    }
  }

  #continue(): void {
    this.#isContinued = false
    if (this.#isEnding) return
    this.#answer()
    if (this.#isInputEnded) this.receiveEnd()
    this.#setReading()
  }

  /** `bytes` begin with a request for the control thread. */
  #forward(bytes: Buffer): void {
    const end = bytes.indexOf('\r\n\r\n') + 4
    const framed = end < 4 ? undefined : bodyLengthOf(bytes.toString('latin1', 0, end))
    const bodyLeft = (framed?.bodyLength ?? 0) - (bytes.length - end)
    if (framed && bodyLeft >= 0) {
      this.#passed = { bodyLeft, response: new ResponseEnd(framed.method) }
    } else this.#isPassedOn = true
    if (this.#control?.isStale) this.#endControl()
    this.#pass(bytes)
  }

  /** `end` calls `#closeControl` at once, which must not take the link for that of a request. */
  #endControl(): void {
    const link = this.#control
    this.#control = undefined
    link?.resume()
    link?.end()
  }

  #passBody(passed: { bodyLeft: number }, bytes: Buffer): void {
    passed.bodyLeft -= bytes.length
    // Another request before the response: Bun decides.
    if (passed.bodyLeft < 0) this.#isPassedOn = true
    this.#pass(bytes)
  }

  #pass(bytes: Buffer): void {
    this.#control ??= new ControlLink(this.#context, {
      peer: this.peer,
      receive: (link, response) => this.#receiveResponse(link, response),
      drain: () => this.#setReading(),
      close: (link) => this.#closeControl(link),
      makeRoom: () => this.#makeRoom(),
    })
    this.#control.send(bytes)
    if (bytes.length >= LARGE_BYTES) this.#rest()
    this.#setReading()
    release(bytes)
  }

  #rest(): void {
    this.#isResting = true
    setImmediate(() => {
      this.#isResting = false
      this.#setReading()
    })
  }

  #receiveResponse(link: ControlLink, bytes: Buffer): void {
    if (link !== this.#control) return
    this.#out.send(bytes)
    if (this.#out.isBlocked) link.pause()
    else if (bytes.length >= LARGE_BYTES) this.#restLink(link)
    const progress = (!this.#isPassedOn && this.#passed?.response.push(bytes)) || 'unknown'
    release(bytes)
    const isBodyComplete = this.#passed?.bodyLeft === 0
    if (progress === 'unknown' || (progress === 'done' && !isBodyComplete)) this.#isPassedOn = true
    else if (progress === 'done') {
      this.#passed = undefined
      this.lastActive = this.#context.now
      link.idleSince = this.#context.now
    }
  }

  #restLink(link: ControlLink): void {
    link.pause()
    setImmediate(() => {
      if (!this.#out.isBlocked) link.resume()
    })
  }

  #closeControl(link: ControlLink): void {
    if (link !== this.#control) return
    this.#control = undefined
    if (this.#isPassedOn || this.#passed) this.end()
  }

  /** Ends the oldest connection of the same address that has not sent its request completely. */
  #makeRoom(): void {
    const { connections } = this.#context
    const oldest = connections.values().find((other) => {
      return other !== this && other.peer === this.peer && other.#isSending
    })
    oldest?.terminate()
  }

  get #isSending(): boolean {
    return this.#isPassedOn || (this.#passed !== undefined && this.#passed.bodyLeft > 0)
  }

  /** Reads no more from the client while what it has sent has to wait. */
  #setReading(): void {
    const isWaiting = this.#input !== undefined && (this.#out.isBlocked || this.#isContinued)
    const isPaused = isWaiting || this.#isResting || this.#control?.isBlocked === true
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#out.socket?.pause()
    else this.#out.socket?.resume()
  }
}
