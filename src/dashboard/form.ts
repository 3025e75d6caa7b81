import { AppError } from '../errors.ts'
import { readChunks } from '../http/body.ts'

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
  const isUrlencoded = URLENCODED.test(type)
  if (!isUrlencoded && !MULTIPART.test(type)) throw new AppError('unsupported_form')
  const tooLarge = () => new AppError('form_too_large', sizeMessage(bytesMax))
  const declared = request.headers.get('content-length')
  if (Number(declared) > bytesMax) throw tooLarge()
  try {
    const bytes = declared === null ? await readChunks(request, bytesMax) : undefined
    if (declared === null && !bytes) throw tooLarge()
    const whole = bytes ? new Response(bytes, { headers: { 'content-type': type } }) : request
    return formOf(isUrlencoded ? new URLSearchParams(await whole.text()) : await whole.formData())
  } catch (error) {
    if (error instanceof AppError) throw error
    // No form after all, or its sender went away, and then nobody reads the answer.
    throw new AppError('unsupported_form')
  }
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

function sizeMessage(bytes: number): string {
  const kib = bytes / 1024
  return `The form is too large: at most ${kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`}.`
}
