import { isUtf8 } from 'node:buffer'
import type { z } from 'zod'
import { AppError } from '../errors.ts'
import { release } from '../lib/release.ts'
import { batchSlices } from '../lib/time-slices.ts'
import { type Hold, type Holder, SharedBudget } from '../limits/shared-budget.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** An ordinary request or form: the longest URL, with each character escaped, fits. */
export const SMALL_BODY_MAX = 64 * KIB
/**
 * A batch, in JSON, in lines or as a form: 1,000 of the longest URLs, or 5,000 of 1.6 kB.
 * `JSON.parse` pauses the control thread for 5 to 13 ms with it, 23 ms if each character is
 * escaped, and 48 ms for a text of quotation marks. 4 MiB of small values would take 280 ms.
 */
export const BATCH_BODY_MAX = 8 * MIB

/** Bytes over `SMALL_BODY_MAX` of all bodies together. */
const TOTAL_MAX = 48 * MIB

export interface BodyLimits {
  /** The body counts as this holder's. */
  holder: Holder
  bytesMax: number
}

/** Bytes that count as in flight until this is disposed, which frees their memory. */
export interface ReceivedBody extends Disposable {
  bytes: Uint8Array
  /** For work that waits with the bytes. Throws `overloaded` if others need their memory. */
  requireHeld(): void
}

/**
 * Reads request bodies. The first `SMALL_BODY_MAX` bytes of each need no room: the limits of
 * connections bound their memory (decision 025).
 */
export class RequestBodies {
  readonly #budget = new SharedBudget(TOTAL_MAX)

  /** Bytes over `SMALL_BODY_MAX` of bodies that are being received or processed. */
  get bytesInFlight(): number {
    return this.#budget.total
  }

  /**
   * Throws AppError: 415 for a compressed body, 413 over `bytesMax`, 400 for an incomplete body,
   * 503 if others need the memory and the holder holds most of it.
   */
  async read(request: Request, { holder, bytesMax }: BodyLimits): Promise<ReceivedBody> {
    requireUncompressed(request)
    const declared = declaredLength(request)
    const expected = declared ?? bytesMax
    if (expected > bytesMax) throw tooLarge(bytesMax)
    const isSmall = declared !== undefined && declared <= SMALL_BODY_MAX
    const reader = isSmall ? undefined : request.body?.getReader()
    // The pending read then ends.
    const hold = this.#budget.hold(holder, () => cancel(reader))
    try {
      const bytes = isSmall ? await request.bytes() : await readChunks(reader, expected, hold)
      const dispose = () => {
        hold[Symbol.dispose]()
        release(bytes)
      }
      return { bytes, requireHeld: () => hold.requireHeld(), [Symbol.dispose]: dispose }
    } catch (error) {
      hold[Symbol.dispose]()
      cancel(reader)
      if (error instanceof AppError) throw error
      // The client disconnected or violated the chunked coding: not an internal error.
      throw new AppError('body_incomplete')
    }
  }
}

/** Undefined for a request without a body. */
type BodyReader =
  | {
      read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
      cancel(): Promise<void>
    }
  | undefined

const cancel = (reader: BodyReader): void => void reader?.cancel().catch(() => {})

/** Undefined if it is absent or was sent more than once. */
export function declaredLength({ headers }: Request): number | undefined {
  const text = headers.get('content-length') ?? ''
  return /^\d+$/.test(text) ? Number(text) : undefined
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('body_too_large', sizeText(bytesMax))
}

/** A whole number of KiB or MiB. */
export function sizeText(bytes: number): string {
  return bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${Math.floor(bytes / KIB)} KiB`
}

function requireUncompressed({ headers }: Request): void {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') throw new AppError('unsupported_encoding')
}

/**
 * Counts a body as it arrives: anybody can declare a body and never send it. Each chunk is copied
 * into one buffer at once: a body sent byte by byte would take gigabytes as separate chunks. Pages
 * of the buffer that nothing was written to use no memory.
 */
async function readChunks(reader: BodyReader, bytesMax: number, hold: Hold): Promise<Uint8Array> {
  const whole = new Uint8Array(bytesMax)
  let length = 0
  try {
    for (;;) {
      const { done = true, value: chunk } = (await reader?.read()) ?? {}
      hold.requireHeld()
      if (done || !chunk) return whole.subarray(0, length)
      if (length + chunk.byteLength > bytesMax) throw tooLarge(bytesMax)
      whole.set(chunk, length)
      length += chunk.byteLength
      const more = length - SMALL_BODY_MAX - hold.bytes
      if (more > 0) hold.take(more)
      // Else the stream may still write to the rest of the buffer.
      if (chunk.byteLength === chunk.buffer.byteLength) release(chunk)
    }
  } catch (error) {
    release(whole)
    throw error
  }
}

/** `application/json` in any letter case, with or without parameters. */
const JSON_TYPE = /^application\/json[\t ]*(;|$)/i
const CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?([^";\t ]*)/i

/**
 * The request's JSON, at most 64 KiB, as the schema parses it. Throws AppError: 415 for another
 * content type or character set, 400 for text that is not UTF-8 or not JSON, 400 with the schema's
 * message, and what `RequestBodies.read` throws.
 */
export const readBody = <Schema extends z.ZodType>(
  bodies: RequestBodies,
  request: Request,
  schema: Schema,
  holder: Holder,
): Promise<z.output<Schema>> => useBody({ bodies, request, schema, holder }, async (value) => value)

interface BodyUse<Schema extends z.ZodType> {
  bodies: RequestBodies
  request: Request
  schema: Schema
  holder: Holder
  /** Default: `SMALL_BODY_MAX`. */
  bytesMax?: number
  /** Values, in objects and lists too, of a body over `SMALL_BODY_MAX`. Default: no maximum. */
  valuesMax?: number
}

/**
 * Like `readBody`, for work during which the body still counts, because its texts are in memory. A
 * large body with more than `valuesMax` values is parsed as if it had no content. `requireHeld`
 * throws `overloaded` if others need that memory: call it before anything is stored.
 */
export async function useBody<Schema extends z.ZodType, Result>(
  {
    bodies,
    request,
    schema,
    holder,
    bytesMax = SMALL_BODY_MAX,
    valuesMax = Number.POSITIVE_INFINITY,
  }: BodyUse<Schema>,
  work: (value: z.output<Schema>, requireHeld: () => void) => Promise<Result>,
): Promise<Result> {
  using body = await readJsonBytes(bodies, request, { holder, bytesMax })
  if (body.bytes.length <= SMALL_BODY_MAX) {
    return await work(parseWith(schema, parseJson(body.bytes)), body.requireHeld)
  }
  // Each of the two takes a tick of the event loop, of one document at a time.
  await batchSlices.next()
  const isParsed = hasValuesAtMost(body.bytes, valuesMax)
  await batchSlices.next()
  const value = parseWith(schema, isParsed ? parseJson(body.bytes) : undefined)
  return await work(value, body.requireHeld)
}

/** The bytes of a JSON body as UTF-8 without a byte order mark. Throws like `readBody`. */
async function readJsonBytes(
  bodies: RequestBodies,
  request: Request,
  limits: BodyLimits,
): Promise<ReceivedBody> {
  const type = request.headers.get('content-type') ?? ''
  if (!JSON_TYPE.test(type)) throw new AppError('unsupported_media_type')
  const [, charset = 'utf-8'] = CHARSET.exec(type) ?? []
  if (!/^utf-?8$/i.test(charset)) throw new AppError('unsupported_charset')
  const body = await bodies.read(request, limits)
  if (!isUtf8(body.bytes)) {
    body[Symbol.dispose]()
    throw new AppError('invalid_utf8')
  }
  const [first, second, third] = body.bytes
  const hasMark = first === 0xef && second === 0xbb && third === 0xbf
  if (hasMark) body.bytes = body.bytes.subarray(3)
  return body
}

/** Throws AppError with the schema's first message, which never contains the value. */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_value', parsed.error.issues[0]?.message)
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

/**
 * Whether `JSON.parse` would create at most this many values, by what stands before each: a comma,
 * or the bracket of its list or object. It takes a hundred times as long for many small values as
 * for few in the same bytes.
 */
function hasValuesAtMost(bytes: Uint8Array, most: number): boolean {
  let values = 1
  for (let at = 0; at < bytes.length && values <= most; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfText(bytes, at + 1)
    else if (byte === COMMA || byte === OPEN_LIST || byte === OPEN_OBJECT) values++
  }
  return values <= most
}

/** The position of the closing quotation mark. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch {
    throw new AppError('invalid_json')
  }
}
