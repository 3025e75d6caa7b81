import type { z } from 'zod'
import { AppError } from '../errors.ts'

/** 16 MiB. */
const BODY_BYTES_MAX = 16 * 1024 * 1024

/** `application/json` in any letter case, with or without parameters. */
const JSON_TYPE = /^application\/json[\t ]*(;|$)/i

/**
 * The request's JSON, as the schema parses it. Throws AppError: 415 for another content type, 413
 * past `BODY_BYTES_MAX`, 400 for what is cut off or no JSON, 400 with the schema's own message for
 * what it refuses.
 */
export async function readBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new AppError('unsupported_media_type')
  }
  return parseWith(schema, parseJson(await readText(request)))
}

/**
 * Throws AppError with the message of the schema's first complaint: never with the value it is
 * about.
 */
export function parseWith<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_value', parsed.error.issues[0]?.message)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('invalid_json')
  }
}

async function readText(request: Request): Promise<string> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > BODY_BYTES_MAX) throw new AppError('body_too_large')
  let bytes: ArrayBuffer | undefined
  try {
    if (declared !== null) return await request.text()
    bytes = await readChunks(request, BODY_BYTES_MAX)
  } catch {
    // The sender went away or broke the rules of chunks: no failure of ours.
    throw new AppError('body_incomplete')
  }
  if (!bytes) throw new AppError('body_too_large')
  return new TextDecoder().decode(bytes)
}

/**
 * A body of undeclared length, counted as it arrives: undefined past `bytesMax`. Throws where it is
 * cut off. Chunks are copied into one piece at once: millions of a byte each would take gigabytes.
 */
export async function readChunks(
  request: Request,
  bytesMax: number,
): Promise<ArrayBuffer | undefined> {
  const whole = new Bun.ArrayBufferSink()
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength
    if (length > bytesMax) return undefined
    whole.write(chunk)
  }
  return whole.end() as ArrayBuffer
}
