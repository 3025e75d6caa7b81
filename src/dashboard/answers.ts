import { lengthOf } from '../http/unsent.ts'
import type { Html } from '../lib/html.ts'

/** Stands on every answer of the dashboard but its files, which may be kept. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // Not the path, which may be a one-time link: a proxy logs it with each file that the page loads.
  // With no-referrer a browser would send `Origin: null` with our own forms.
  'referrer-policy': 'strict-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
}

export interface Extra {
  status?: number
  /** Values of `Set-Cookie`. */
  cookies?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/** A page, or a part of one for htmx. */
export function htmlAnswer(markup: Html, { status = 200, cookies, headers }: Extra = {}): Response {
  const text = markup.toString()
  const own = { 'content-type': 'text/html; charset=utf-8', 'content-length': lengthOf(text) }
  return new Response(text, { status, headers: gather({ ...own, ...headers }, cookies) })
}

/** See Other: after a form, or to where the visitor was going. `path` is our own. */
export function goTo(path: string, { cookies, headers }: Extra = {}): Response {
  return new Response(null, {
    status: 303,
    headers: gather({ location: path, ...headers }, cookies),
  })
}

/** A file to save, made as it is sent if it is a stream. */
export function fileAnswer(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | string,
  { name, type }: { name: string; type: string },
): Response {
  const disposition = `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"`
  const headers = gather({ 'content-type': type, 'content-disposition': disposition })
  if (typeof body === 'string') headers.set('content-length', lengthOf(body))
  return new Response(body, { headers })
}

function gather(own: Record<string, string>, cookies: readonly string[] = []): Headers {
  const headers = new Headers({ ...HEADERS, ...own })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return headers
}
