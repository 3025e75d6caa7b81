import { AppError } from '../errors.ts'
import { compressible } from '../http/compression.ts'
import { lengthOf } from '../http/unsent.ts'
import type { Html } from '../lib/html.ts'

/** On every response of the dashboard except static files, which may be cached. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "manifest-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // Omits the path: it may hold a one-time link, and proxies log the referrer of each loaded file.
  // With no-referrer, browsers would send `Origin: null` with our own forms.
  'referrer-policy': 'strict-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

export interface ResponseOptions {
  status?: number
  /** Values of `Set-Cookie`. */
  cookies?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/** A page, or a part of one for htmx. */
export function htmlResponse(
  markup: Html,
  { status = 200, cookies, headers }: ResponseOptions = {},
): Response {
  const all = headersOf({ 'content-type': 'text/html; charset=utf-8', ...headers }, cookies)
  return compressible(markup.toString(), status, all)
}

/** For a request of htmx that changes nothing on its page. */
export const noContent = (cookies: readonly string[]): Response =>
  new Response(null, { status: 204, headers: headersOf({}, cookies) })

/** The path and query of a request. The origin comes from the Host header and may not parse. */
export const pathOf = ({ url }: Request): string => url.replace(/^\w+:\/\/[^/]*/, '')

export const pathWithoutQuery = (request: Request): string => pathOf(request).replace(/\?.*/, '')

/** Whether htmx sent the request. It would put the target of a redirect into a part of its page. */
export const isHtmx = ({ headers }: Request): boolean => headers.get('hx-request') === 'true'

/** Redirects to one of our own pages, after a form for example. */
export function seeOther(
  path: string,
  cookies?: readonly string[],
  status: 302 | 303 = 303,
): Response {
  return new Response(null, { status, headers: headersOf({ location: path }, cookies) })
}

/** A download. A stream is generated while it is sent. */
export function fileResponse(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | string,
  { name, type }: { name: string; type: string },
): Response {
  const plain = name.replace(/[^\w.-]/g, '_')
  const full = plain === name ? '' : `; filename*=UTF-8''${encodeURIComponent(name)}`
  const disposition = `attachment; filename="${plain}"${full}`
  const headers = headersOf({ 'content-type': type, 'content-disposition': disposition })
  if (typeof body === 'string') headers.set('content-length', lengthOf(body))
  if (body instanceof Uint8Array) headers.set('content-length', String(body.byteLength))
  return new Response(body, { headers })
}

function headersOf(own: Record<string, string>, cookies: readonly string[] = []): Headers {
  const headers = new Headers({ ...HEADERS, ...own })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return headers
}

/** A response, or the path of the page to open next. */
export type Result = Response | string

/** A form with errors at its fields, which the form's own page shows. */
export class FormRefusal extends AppError {
  readonly errors: Readonly<Record<string, string>>

  constructor(errors: Readonly<Record<string, string>>) {
    super('invalid_value', 'Nothing was saved.')
    this.errors = errors
  }
}

export const refuseAt = (field: string, reason: string) => new FormRefusal({ [field]: reason })

/** A refusal of the whole form, with its reason. */
export const refuse = (reason: string): AppError => new AppError('invalid_value', reason)

/** Errors of a form: a bad field or a conflict. */
const FORM_STATUSES = new Set([400, 409, 422])

/** Whether the form's own page shows an error, also that a link was deleted meanwhile. */
export const isFormError = (error: unknown): error is AppError =>
  error instanceof AppError &&
  (FORM_STATUSES.has(error.status) || isTemporary(error) || error.code === 'code_not_found')

/** Runs the check of a field, which shows the error. Other errors are thrown as they are. */
export async function atField<Result>(
  name: string,
  check: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await check()
  } catch (error) {
    if (!isFormError(error) || isTemporary(error)) throw error
    throw refuseAt(name, wordingOf(error))
  }
}

/** For `catch`: shows these errors at the fields that they are about. */
export const failAt =
  (fields: Readonly<Partial<Record<AppError['code'], string>>>) =>
  (error: unknown): never => {
    const field = error instanceof AppError ? fields[error.code] : undefined
    throw field && error instanceof AppError ? refuseAt(field, error.message) : error
  }

/** The message of an error for a person. */
export const wordingOf = ({ code, message }: AppError): string =>
  code === 'own_host' ? OWN_HOST : message

const OWN_HOST =
  'Destination URL is not allowed: it is an address of this service itself, and a link to it ' +
  'could redirect in a circle'

/** No field is wrong: the same form will be accepted later. */
export const isTemporary = ({ code }: AppError): boolean =>
  code === 'rate_limited' || code === 'maintenance'

/** The status and headers of a form's page that shows an error. */
export function errorOptions(error: AppError): ResponseOptions {
  if (isTemporary(error)) return { status: error.status, headers: error.headers }
  return { status: error.status === 404 ? 404 : 422 }
}
