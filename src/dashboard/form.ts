import { AppError } from '../errors.ts'

/** What a form sent. An absent field is empty text. */
export interface Form {
  /** Without spaces at its ends: for everything but passwords. */
  text(name: string): string
  /** As it was typed. */
  raw(name: string): string
  /** Every value of a field that stands more than once, like a row of checkboxes. */
  all(name: string): string[]
  /** A chosen file that is not empty. */
  file(name: string): File | undefined
}

const URLENCODED = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i
const MULTIPART = /^multipart\/form-data[\t ]*;/i

export const FORM_BYTES_MAX = 1024 * 1024

/** Reads a form of at most `bytesMax`. Throws AppError: 415 for what is none, 413 past it. */
export async function readForm(request: Request, bytesMax = FORM_BYTES_MAX): Promise<Form> {
  const type = request.headers.get('content-type') ?? ''
  if (URLENCODED.test(type)) {
    return formOf(new URLSearchParams(new TextDecoder().decode(await readBytes(request, bytesMax))))
  }
  if (!MULTIPART.test(type)) throw new AppError('unsupported_form')
  const headers = { 'content-type': type }
  const whole = new Response(await readBytes(request, bytesMax), { headers })
  return formOf(
    await whole.formData().catch(() => {
      throw new AppError('unsupported_form')
    }),
  )
}

export const EMPTY_FORM: Form = formOf(new URLSearchParams())

function formOf(fields: { getAll(name: string): (string | Blob)[] }): Form {
  const all = (name: string) =>
    fields.getAll(name).filter((value): value is string => typeof value === 'string')
  const raw = (name: string) => all(name)[0] ?? ''
  return {
    all,
    raw,
    text: (name) => raw(name).trim(),
    file: (name) =>
      fields.getAll(name).find((value): value is File => value instanceof File && value.size > 0),
  }
}

/** Counted as it arrives, whatever length was declared. */
async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new AppError('form_too_large', sizeMessage(bytesMax))
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge()
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.byteLength
      if (length > bytesMax) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    // The sender went away: no failure of ours, and nobody reads the answer.
    throw new AppError('unsupported_form')
  }
  return new Uint8Array(Buffer.concat(chunks, length))
}

function sizeMessage(bytes: number): string {
  const kib = bytes / 1024
  return `The form is too large: at most ${kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`}.`
}
