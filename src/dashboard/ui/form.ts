import { parseEmail } from '../../accounts/credentials.ts'
import { AppError } from '../../errors.ts'
import { type BodyLimits, type RequestBodies, sizeText } from '../../http/body.ts'
import { FormRefusal, refuseAt } from '../responses.ts'

/** The fields of a sent form. A missing field is empty text. */
export interface Form {
  /** Trimmed: for everything except passwords. */
  text(name: string): string
  /** The text as it was typed. */
  raw(name: string): string
  /** Whether it was sent, also without a text. */
  has(name: string): boolean
  /** All texts of a field that may be sent several times, like a group of checkboxes. */
  all(name: string): string[]
  /** The chosen file, if it is not empty. */
  file(name: string): File | undefined
}

/** The text and the error of a refused form's field. `initial`: the text before it is sent. */
export const typed = (
  { form, refusal }: { form: Form; refusal?: AppError },
  name: string,
  initial?: string,
): { name: string; value: string | undefined; error: string | undefined } => ({
  name,
  value: refusal && form.has(name) ? form.text(name) : initial,
  error: errorOf(refusal, name),
})

export const errorOf = (refusal: AppError | undefined, name: string): string | undefined =>
  refusal instanceof FormRefusal ? refusal.errors[name] : undefined

/** Throws `FormRefusal`. */
export function requireEmail(form: Form): string {
  const email = parseEmail(form.text('email'))
  if (!email) throw refuseAt('email', 'Enter an address like name@example.com.')
  return email
}

const URLENCODED = /^application\/x-www-form-urlencoded[\t ]*(;|$)/i
const MULTIPART = /^multipart\/form-data[\t ]*;/i
const BOUNDARY = /;[\t ]*boundary=(?:"([^"]+)"|([^;\s"]+))/i

/** Each field costs memory and time. Our largest form has fewer than a hundred. */
const FIELDS_MAX = 1000

/**
 * Throws AppError: 415 for another content type, 413 over `bytesMax`, 400 for too many fields, 503
 * while too many bytes are in flight.
 */
export async function readForm(
  bodies: RequestBodies,
  request: Request,
  limits: BodyLimits,
): Promise<Form> {
  const type = request.headers.get('content-type') ?? ''
  const isUrlencoded = URLENCODED.test(type)
  if (!isUrlencoded && !MULTIPART.test(type)) throw new AppError('unsupported_form')
  try {
    using body = await bodies.read(request, limits)
    return isUrlencoded ? parseUrlencoded(body.bytes) : await parseMultipart(body.bytes, type)
  } catch (error) {
    if (error instanceof AppError && error.code === 'body_too_large') {
      throw new AppError('form_too_large', sizeText(limits.bytesMax))
    }
    if (error instanceof AppError && error.code !== 'body_incomplete') throw error
    // Not a valid form, or the client disconnected and does not read the response.
    throw new AppError('unsupported_form')
  }
}

function parseUrlencoded(bytes: Uint8Array): Form {
  requireFewFields(bytes, '&')
  return formOf(new URLSearchParams(new TextDecoder().decode(bytes)))
}

async function parseMultipart(bytes: Uint8Array, type: string): Promise<Form> {
  const [, quoted, plain] = BOUNDARY.exec(type) ?? []
  const boundary = quoted ?? plain
  if (!boundary) throw new AppError('unsupported_form')
  requireFewFields(bytes, `--${boundary}`)
  // Not the sent type: the parser could find a different boundary in it than the one counted.
  const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` }
  return formOf(await new Response(bytes, { headers }).formData())
}

/** Runs before the form is parsed. Also counts separators inside of values. */
function requireFewFields(bytes: Uint8Array, separator: string): void {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = -1
  for (let count = 0; count <= FIELDS_MAX; count++) {
    at = buffer.indexOf(separator, at + 1)
    if (at < 0) return
  }
  throw new AppError('too_many_fields')
}

export const EMPTY_FORM: Form = formOf(new URLSearchParams())

function formOf(fields: { getAll(name: string): (string | Blob)[] }): Form {
  const all = (name: string) =>
    fields.getAll(name).filter((value): value is string => typeof value === 'string')
  const raw = (name: string) => all(name)[0] ?? ''
  return {
    all,
    raw,
    has: (name) => all(name).length > 0,
    text: (name) => raw(name).trim(),
    file: (name) =>
      fields.getAll(name).find((value): value is File => value instanceof File && value.size > 0),
  }
}
