import { Garbage } from '../lib/garbage.ts'
import type { Peers } from './context.ts'

/** A request body up to this length is passed on in one piece. */
const ONE_PIECE_MAX = 64 * 1024

/** The next part of a body. The last one may be empty. */
export interface Chunk {
  bytes: Uint8Array
  isLast: boolean
}

/** `id` tells the exchanges of one port apart. */
export type ToControl = ExchangeToControl | ThreadNote

/** What a redirect thread has to say beside the requests that it forwards. */
export type ThreadNote =
  | { log: Record<string, string | number | null> }
  /** The codes in use are needed: see `KnownCodes`. */
  | { codesWanted: true }

type ExchangeToControl = { id: number } & (
  | { request: ForwardedRequest }
  | { chunk: Chunk }
  /** The client ended the request's body too early. */
  | { cutOff: true }
  /** The next chunk of the response is wanted. */
  | { pull: true }
  /** The client is gone. */
  | { aborted: true }
)

export type FromControl = { id: number } & (
  | { response: ForwardedResponse }
  | { chunk: Chunk }
  /** The response's body failed. */
  | { cutOff: true }
  /** The next chunk of the request is wanted. */
  | { pull: true }
)

type HeaderLines = [name: string, value: string][]

export interface ForwardedRequest {
  method: string
  url: string
  headers: HeaderLines
  /** The address of the other end of the connection. */
  peer: string
  hasBody: boolean
}

export interface ForwardedResponse {
  status: number
  headers: HeaderLines
  /** Undefined: it follows in chunks. */
  body: Uint8Array<ArrayBuffer> | null | undefined
}

interface Exchange {
  request: Request
  resolve: (response: Response) => void
  /** Of the request's body, once it was asked for. */
  reader: BodyReader | undefined
  /** Takes the next chunk of the response's body; undefined if it is cut off. */
  take: (chunk: Chunk | undefined) => void
}

/**
 * The redirect thread's end of the port to the control thread, which answers everything but plain
 * redirects. Bodies move in both directions at the pace of their reader.
 */
export class Forwarder {
  readonly #port: MessagePort
  readonly #exchanges = new Map<number, Exchange>()
  readonly #garbage = new Garbage()
  #lastId = 0

  constructor(port: MessagePort) {
    this.#port = port
    port.onmessage = ({ data }: { data: FromControl }) => this.#receive(data)
  }

  /** Requests that the control thread has not finished. */
  get pending(): number {
    return this.#exchanges.size
  }

  forward(request: Request, server: Peers): Promise<Response> {
    const id = ++this.#lastId
    const { method, url, headers, signal } = request
    const { promise, resolve } = Promise.withResolvers<Response>()
    this.#exchanges.set(id, { request, resolve, reader: undefined, take: () => {} })
    signal.addEventListener('abort', () => this.#abort(id), { once: true })
    const peer = server.requestIP(request)?.address ?? ''
    const lines: HeaderLines = [...headers]
    this.#post({ id, request: { method, url, headers: lines, peer, hasBody: hasBody(request) } })
    return promise
  }

  note(note: ThreadNote): void {
    this.#post(note)
  }

  #post(message: ToControl): void {
    this.#port.postMessage(message)
  }

  #receive(message: FromControl): void {
    const { id } = message
    const exchange = this.#exchanges.get(id)
    if (!exchange) return
    if ('response' in message) this.#respond(id, exchange, message.response)
    else if ('pull' in message) void this.#sendBody(id, exchange)
    else exchange.take('chunk' in message ? message.chunk : undefined)
  }

  #respond(id: number, exchange: Exchange, { status, headers, body }: ForwardedResponse): void {
    const isStream = body === undefined
    if (!isStream) this.#exchanges.delete(id)
    exchange.resolve(
      new Response(isStream ? this.#stream(id, exchange) : body, { status, headers }),
    )
  }

  #stream(id: number, exchange: Exchange): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const { promise, resolve } = Promise.withResolvers<void>()
          exchange.take = (chunk) => {
            if (!chunk || chunk.isLast) this.#exchanges.delete(id)
            this.#garbage.add(chunk?.bytes.length ?? 0)
            pass(chunk, controller)
            resolve()
          }
          this.#post({ id, pull: true })
          return promise
        },
        cancel: () => this.#abort(id),
      },
      { highWaterMark: 0 },
    )
  }

  async #sendBody(id: number, exchange: Exchange): Promise<void> {
    const { request } = exchange
    try {
      if (isShort(request)) {
        this.#sendChunk(id, { bytes: wholeOf(await request.bytes()), isLast: true })
        return
      }
      exchange.reader ??= request.body?.getReader()
      this.#sendChunk(id, await nextChunk(exchange.reader))
    } catch {
      this.#post({ id, cutOff: true })
    }
  }

  #sendChunk(id: number, chunk: Chunk): void {
    this.#port.postMessage({ id, chunk } satisfies ToControl, transferOf(chunk.bytes))
  }

  #abort(id: number): void {
    const exchange = this.#exchanges.get(id)
    if (!exchange) return
    this.#exchanges.delete(id)
    this.#post({ id, aborted: true })
    exchange.resolve(new Response(null, { status: 499 }))
    exchange.take(undefined)
  }
}

/** Passes a chunk on to the reader of a body. */
export function pass(chunk: Chunk | undefined, to: ReadableStreamDefaultController): void {
  if (!chunk) {
    to.error(new Error('the body was cut off'))
    return
  }
  if (chunk.bytes.length > 0) to.enqueue(chunk.bytes)
  if (chunk.isLast) to.close()
}

/** Reads a body chunk by chunk. */
export interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

/** Only the last chunk may be empty: a stream is not pulled again after a pull brought nothing. */
export async function nextChunk(reader: BodyReader | undefined): Promise<Chunk> {
  for (;;) {
    const read = await reader?.read()
    const bytes = read?.value ?? new Uint8Array()
    const isLast = read?.done !== false
    if (isLast || bytes.length > 0) return { bytes: wholeOf(bytes), isLast }
  }
}

/** The same bytes alone in a buffer: a message with a part of one would contain all of it. */
export const wholeOf = (bytes: Uint8Array): Uint8Array =>
  bytes.length === bytes.buffer.byteLength ? bytes : bytes.slice()

/** Moves the bytes to the other thread instead of copying them. */
export const transferOf = (bytes: Uint8Array): Bun.Transferable[] =>
  bytes.buffer instanceof ArrayBuffer ? [bytes.buffer] : []

function hasBody({ method, headers }: Request): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  return headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0'
}

function isShort({ headers }: Request): boolean {
  const length = headers.get('content-length')
  return length !== null && Number(length) <= ONE_PIECE_MAX
}
