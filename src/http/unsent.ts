import { Elysia } from 'elysia'
import { type ClientAddress, clientNetwork } from '../hot/client-address.ts'
import { ByteBudget, type Hold, type Owner } from './byte-budget.ts'
import { clientOf } from './context.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** A response up to this size is not counted: the kernel's send buffer takes most of it. */
const UNCOUNTED_MAX = 64 * KIB
/** Unsent bytes of all responses together. */
const TOTAL_MAX = 64 * MIB
/** Unsent bytes of one owner: three of the largest lists. */
const SHARE_MAX = 16 * MIB
/** Bytes passed to a connection at once. */
const CHUNK_BYTES = 64 * KIB
/** Bytes of long responses after which a garbage collection is worth its time. */
const GARBAGE_BYTES = 12 * MIB

/** Limits the bytes of responses that wait in memory for their clients to read them. */
export class UnsentResponses {
  readonly #budget = new ByteBudget(TOTAL_MAX)
  /** Bytes of long responses since the last collection. */
  #garbageBytes = 0

  get bytes(): number {
    return this.#budget.total
  }

  /**
   * Called once for each long response, which is built from data of several times its length. The
   * engine underestimates memory outside its heap, and waits until the heap has tripled. A
   * collection takes about 16 ms on the control thread.
   */
  collectGarbage(bytes: number): void {
    this.#garbageBytes += bytes
    if (this.#garbageBytes < GARBAGE_BYTES) return
    this.#garbageBytes = 0
    Bun.gc(true)
  }

  hold(owner: Owner): Hold {
    return this.#budget.hold({ owner, shareMax: SHARE_MAX })
  }

  /**
   * Throws `overloaded` if the owner, or all owners together, have no room left. For an operation
   * with a large response that must be sent once the operation is done.
   */
  requireRoom(owner: Owner): void {
    this.hold(owner).requireRoom(1)
  }
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
 * connection is closed, and refuses a GET with 503 when too many bytes are unsent. Must be used
 * before the routes: hooks apply only to those registered later.
 */
export const countUnsent = ({ unsent, address }: UnsentDeps) =>
  new Elysia({ name: 'http.unsent' }).onAfterHandle(
    { as: 'global' },
    ({ request, account, responseValue }: AfterHandler) => {
      if (!(responseValue instanceof Response)) return
      const bytes = Number(responseValue.headers.get('content-length') ?? 0)
      if (bytes <= UNCOUNTED_MAX) return
      // Also counts a refused response, because it was built too.
      unsent.collectGarbage(bytes)
      const hold = unsent.hold(account?.id ?? clientNetwork(clientOf(address, request)))
      // A write cannot be undone, and its response may contain passcodes that are shown once.
      if (request.method === 'GET' || request.method === 'HEAD') hold.take(bytes)
      else hold.force(bytes)
      return inChunks(responseValue, hold)
    },
  )

/** The same response, in chunks. */
function inChunks(response: Response, hold: Hold): Response {
  const headers = new Headers(response.headers)
  headers.delete('content-length')
  const body = streamOf(chunksOf(response, hold), hold)
  return new Response(body, { status: response.status, headers })
}

async function* chunksOf(response: Response, hold: Hold): Chunks<Uint8Array> {
  try {
    const whole = await response.bytes()
    for (let at = 0; at < whole.length; at += CHUNK_BYTES) {
      yield whole.subarray(at, at + CHUNK_BYTES)
    }
  } finally {
    hold[Symbol.dispose]()
  }
}

/**
 * A body that is generated while it is sent, so that chunks do not accumulate. `hold` ends with the
 * body. Throws if the first chunk cannot be read, so that the response has the right status.
 */
export async function generatedBody(
  texts: Chunks<string>,
  hold: Hold,
): Promise<ReadableStream<Uint8Array>> {
  const chunks = encoded(texts, hold)
  return streamOf(chunks, hold, await chunks.next())
}

async function* encoded(texts: Chunks<string>, hold: Hold): Chunks<Uint8Array> {
  const encoder = new TextEncoder()
  try {
    for await (const text of texts) yield encoder.encode(text)
  } finally {
    hold[Symbol.dispose]()
  }
}

type Chunks<Chunk> = AsyncGenerator<Chunk, void, undefined>

/**
 * The next chunk is read when the connection has accepted the last one. The stream is canceled if
 * its connection is closed or its request was HEAD.
 */
function streamOf(
  chunks: Chunks<Uint8Array>,
  hold: Hold,
  first?: IteratorResult<Uint8Array, void>,
): ReadableStream<Uint8Array> {
  let read = first
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = read ?? (await chunks.next())
        read = undefined
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        // A generator that was never started does not run its `finally`.
        hold[Symbol.dispose]()
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
}
