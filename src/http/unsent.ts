import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { type ClientAddress, clientNetwork } from '../hot/client-address.ts'
import { type Hold, type Holder, SharedBudget } from '../limits/shared-budget.ts'
import { clientOf } from './context.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** A response up to this size needs no room: the kernel's send buffer takes most of it. */
const UNCOUNTED_MAX = 64 * KIB
/** Unsent bytes of all responses together. */
const TOTAL_MAX = 64 * MIB
/** Memory of a generated body whose client does not read: about two chunks. */
const GENERATED_BYTES = 2 * MIB
/** Bytes passed to a connection at once. */
const CHUNK_BYTES = 64 * KIB
/** Bytes of long responses after which a garbage collection is worth its time. */
const GARBAGE_BYTES = 12 * MIB

/**
 * Limits the bytes of responses that wait in memory for their clients to read them. If others need
 * the memory, the connection of a response is closed.
 */
export class UnsentResponses {
  readonly #budget = new SharedBudget(TOTAL_MAX)
  /** Bytes of long responses since the last collection. */
  #garbageBytes = 0

  get bytes(): number {
    return this.#budget.total
  }

  /** `response`, with `bytes` of content, in chunks. */
  inChunks(response: Response, holder: Holder, bytes: number): Response {
    this.#collectGarbage(bytes)
    const headers = new Headers(response.headers)
    headers.delete('content-length')
    const body = new HeldBody(this.#budget, holder, bytes, chunksOf(response)).stream()
    return new Response(body, { status: response.status, headers })
  }

  /**
   * A body that is generated while it is sent, so that chunks do not accumulate. Throws if the
   * first chunk cannot be generated, so that the response has the right status.
   */
  async generate(
    holder: Holder,
    texts: Chunks<string | Uint8Array>,
  ): Promise<ReadableStream<Uint8Array>> {
    const body = new HeldBody(this.#budget, holder, GENERATED_BYTES, encoded(texts))
    await body.begin()
    return body.stream()
  }

  /**
   * Called once for each long response, which is built from data of several times its length. The
   * engine underestimates memory outside its heap, and waits until the heap has tripled. A
   * collection takes about 16 ms on the control thread.
   */
  #collectGarbage(bytes: number): void {
    this.#garbageBytes += bytes
    if (this.#garbageBytes < GARBAGE_BYTES) return
    this.#garbageBytes = 0
    Bun.gc(true)
  }
}

type Chunks<Chunk> = AsyncGenerator<Chunk, void, undefined>

/** Chunks of a response, each read when the connection has accepted the last one. */
class HeldBody {
  readonly #chunks: Chunks<Uint8Array>
  readonly #hold: Hold
  #first: IteratorResult<Uint8Array, void> | undefined
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(budget: SharedBudget, holder: Holder, bytes: number, chunks: Chunks<Uint8Array>) {
    this.#chunks = chunks
    this.#hold = budget.hold(holder, () => this.#abort())
    this.#hold.take(bytes)
  }

  /** Reads the first chunk. */
  async begin(): Promise<void> {
    try {
      this.#first = await this.#chunks.next()
      this.#hold.requireHeld()
    } catch (error) {
      this.#hold[Symbol.dispose]()
      throw error
    }
  }

  /** Is canceled if its connection is closed or its request was HEAD. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: (controller) => this.#pull(controller),
        cancel: () => this.#end(),
      },
      { highWaterMark: 0 },
    )
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const { done, value } = this.#first ?? (await this.#chunks.next())
      this.#first = undefined
      if (this.#hold.isEnded) return
      if (value) controller.enqueue(value)
      this.#hold.progress()
      if (!done) return
      this.#hold[Symbol.dispose]()
      controller.close()
    } catch (error) {
      this.#hold[Symbol.dispose]()
      throw error
    }
  }

  /** Others need the memory. The client sees that the response is incomplete. */
  #abort(): void {
    this.#controller?.error(new AppError('overloaded'))
    void this.#end().catch(() => {})
  }

  async #end(): Promise<void> {
    this.#hold[Symbol.dispose]()
    await this.#chunks.return()
  }
}

async function* chunksOf(response: Response): Chunks<Uint8Array> {
  const whole = await response.bytes()
  for (let at = 0; at < whole.length; at += CHUNK_BYTES) yield whole.subarray(at, at + CHUNK_BYTES)
}

async function* encoded(texts: Chunks<string | Uint8Array>): Chunks<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const text of texts) yield typeof text === 'string' ? encoder.encode(text) : text
}

/** JSON that may be long: a response with its length, so that `countUnsent` can count it. */
export function longJson(view: unknown, status = 200): Response {
  const text = JSON.stringify(view)
  return new Response(text, {
    status,
    headers: { 'content-type': 'application/json;charset=utf-8', 'content-length': lengthOf(text) },
  })
}

/** The value of `Content-Length`. */
export const lengthOf = (text: string): string => String(Buffer.byteLength(text))

interface UnsentDeps {
  unsent: UnsentResponses
  address: ClientAddress
}

/** The part of Elysia's context that is used after the handler. */
interface AfterHandler {
  request: Request
  account?: { id: number }
  responseValue?: unknown
}

/**
 * Counts each response with a `Content-Length` over `UNCOUNTED_MAX` until it is sent or its
 * connection is closed. Must be used before the routes: hooks apply only to those registered later.
 */
export const countUnsent = ({ unsent, address }: UnsentDeps) =>
  new Elysia({ name: 'http.unsent' }).onAfterHandle(
    { as: 'global' },
    ({ request, account, responseValue }: AfterHandler) => {
      if (!(responseValue instanceof Response)) return
      const bytes = Number(responseValue.headers.get('content-length') ?? 0)
      if (bytes <= UNCOUNTED_MAX) return
      const holder = account?.id ?? clientNetwork(clientOf(address, request))
      return unsent.inChunks(responseValue, holder, bytes)
    },
  )
