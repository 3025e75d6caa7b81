import { Garbage } from '../lib/garbage.ts'
import type { Log } from '../lib/log.ts'
import { setPeer } from './context.ts'
import {
  type BodyReader,
  type Chunk,
  type ForwardedRequest,
  type FromControl,
  nextChunk,
  pass,
  type ThreadNote,
  type ToControl,
  transferOf,
  wholeOf,
} from './forward.ts'

/** Marks a response whose body is read as fast as the client takes it. Never sent to clients. */
export const STREAMED = 'x-hopcode-streamed'

interface Exchange {
  aborter: AbortController
  /** Takes the next chunk of the request's body; undefined if it is cut off. */
  take: (chunk: Chunk | undefined) => void
  /** Of the response's body. */
  reader: BodyReader | undefined
}

interface ForwardedOptions {
  answer: (request: Request) => Response | Promise<Response>
  onNote: (note: ThreadNote) => void
  log: Pick<Log, 'error'>
}

/** The control thread's end of the port to one redirect thread: answers what it forwards. */
export class ForwardedRequests {
  readonly #port: MessagePort
  readonly #options: ForwardedOptions
  readonly #exchanges = new Map<number, Exchange>()
  readonly #garbage = new Garbage()

  constructor(port: MessagePort, options: ForwardedOptions) {
    this.#port = port
    this.#options = options
    port.onmessage = ({ data }: { data: ToControl }) => this.#receive(data)
  }

  /** The thread has ended: every request on it is as if its client were gone. */
  close(): void {
    this.#port.close()
    for (const id of [...this.#exchanges.keys()]) this.#abort(id)
  }

  #receive(message: ToControl): void {
    if (!('id' in message)) {
      this.#options.onNote(message)
      return
    }
    const { id } = message
    if ('request' in message) {
      void this.#open(id, message.request)
      return
    }
    const exchange = this.#exchanges.get(id)
    if (!exchange) return
    if ('aborted' in message) this.#abort(id)
    else if ('pull' in message) void this.#sendChunk(id, exchange)
    else exchange.take('chunk' in message ? message.chunk : undefined)
  }

  async #open(id: number, forwarded: ForwardedRequest): Promise<void> {
    const exchange: Exchange = { aborter: new AbortController(), take: () => {}, reader: undefined }
    this.#exchanges.set(id, exchange)
    try {
      const request = this.#requestOf(id, exchange, forwarded)
      await this.#respond(id, exchange, await this.#options.answer(request))
    } catch (error) {
      const { method } = forwarded
      this.#options.log.error('request.failed', { method, path: 'forwarded' }, error)
      this.#exchanges.delete(id)
      this.#post({ id, response: { status: 500, headers: [], body: null } })
    }
  }

  #requestOf(id: number, exchange: Exchange, forwarded: ForwardedRequest): Request {
    const { method, headers, hasBody, peer } = forwarded
    const request = new Request(routable(forwarded.url), {
      method,
      headers,
      signal: exchange.aborter.signal,
      ...(hasBody && { body: this.#bodyOf(id, exchange) }),
    })
    setPeer(request, peer)
    return request
  }

  async #respond(id: number, exchange: Exchange, response: Response): Promise<void> {
    const { status, headers } = response
    const isStream = headers.has(STREAMED)
    if (isStream) {
      headers.delete(STREAMED)
      exchange.reader = response.body?.getReader()
    }
    const bytes = isStream ? undefined : wholeOf(await response.bytes())
    // The client may be gone by now.
    if (!this.#exchanges.has(id)) {
      await exchange.reader?.cancel()
      return
    }
    if (!isStream) this.#exchanges.delete(id)
    const body = bytes?.length === 0 ? null : (bytes as Uint8Array<ArrayBuffer> | undefined)
    const message = { id, response: { status, headers: [...headers], body } }
    this.#post(message, body ? transferOf(body) : [])
  }

  #post(message: FromControl, transfer: Bun.Transferable[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  #bodyOf(id: number, exchange: Exchange): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const { promise, resolve } = Promise.withResolvers<void>()
          exchange.take = (chunk) => {
            this.#garbage.add(chunk?.bytes.length ?? 0)
            pass(chunk, controller)
            resolve()
          }
          this.#post({ id, pull: true })
          return promise
        },
      },
      { highWaterMark: 0 },
    )
  }

  async #sendChunk(id: number, { reader }: Exchange): Promise<void> {
    try {
      const chunk = await nextChunk(reader)
      if (chunk.isLast) this.#exchanges.delete(id)
      this.#post({ id, chunk }, transferOf(chunk.bytes))
    } catch {
      this.#exchanges.delete(id)
      this.#post({ id, cutOff: true })
    }
  }

  #abort(id: number): void {
    const exchange = this.#exchanges.get(id)
    if (!exchange) return
    this.#exchanges.delete(id)
    exchange.aborter.abort()
    exchange.take(undefined)
    exchange.reader?.cancel().catch(() => {})
  }
}

/**
 * A URL that the router can read. The header `Host` may be anything, and no route depends on it.
 * Where a path has a `%` that encodes no character, each stands for itself.
 */
function routable(url: string): string {
  const known = URL.canParse(url) ? url : `http://localhost${url.replace(/^\w+:\/\/[^/]*/, '')}`
  const query = known.indexOf('?')
  const path = query < 0 ? known : known.slice(0, query)
  try {
    decodeURIComponent(path)
    return known
  } catch {
    return path.replaceAll('%', '%25') + known.slice(path.length)
  }
}
