import type { Socket } from 'node:net'

/** One HTTP/1.1 exchange on a socket. */

interface Exchange {
  method: string
  url: URL
  headers?: Record<string, string>
  body?: string
  /** See `OutgoingRequest`. */
  maxBytes: number
}

export interface ResponseHead {
  status: number
  headers: { location?: string; retryAfter?: string }
}

const HEAD_BYTES_MAX = 16 * 1024
const END_OF_HEAD = '\r\n\r\n'
const INFORMATION = /^(HTTP\/1\.1 1\d\d[\s\S]*?\r\n\r\n)+/
const LAST_CHUNK = '0\r\n\r\n'

/**
 * Writes a request and reads its response, up to `maxBytes` of the body, which is thrown away.
 * Rejects if the response is no HTTP, its head is too large, or the connection ends before it.
 */
export function readResponse(socket: Socket, request: Exchange): Promise<ResponseHead> {
  return new Promise((resolve, reject) => {
    let text = ''
    let head: ParsedHead | undefined
    let bodyBytes = 0
    const finish = () =>
      head?.status ? resolve(head) : reject(new Error('the response has no head'))
    for (const event of ['error', 'end', 'close']) socket.once(event, finish)
    socket.on('data', (bytes: Buffer) => {
      // Each byte is one character.
      let chunk = bytes.toString('latin1')
      if (!head) {
        text = (text + chunk).replace(INFORMATION, '')
        const length = text.indexOf(END_OF_HEAD)
        if (length < 0 && text.length <= HEAD_BYTES_MAX) return
        head = parseHead(text.slice(0, Math.max(0, length)), request)
        chunk = text.slice(length + END_OF_HEAD.length)
      }
      bodyBytes += chunk.length
      const isLast = head.isChunked && chunk.endsWith(LAST_CHUNK)
      if (bodyBytes >= head.bodyMax || isLast) finish()
    })
    socket.write(requestText(request))
  })
}

function requestText({ method, url, headers, body }: Exchange): string {
  const all = {
    Host: url.host,
    Connection: 'close',
    ...headers,
    ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  const start = `${method} ${url.pathname}${url.search} HTTP/1.1`
  return `${[start, ...lines].join('\r\n')}${END_OF_HEAD}${body ?? ''}`
}

interface ParsedHead extends ResponseHead {
  /** The body ends here at the latest. */
  bodyMax: number
  isChunked: boolean
}

/** The status is 0 if it is no head. */
function parseHead(text: string, { method, maxBytes }: Exchange): ParsedHead {
  const lines = text.split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3})( |$)/.exec(lines[0] ?? '')?.[1] ?? 0)
  const headerOf = (name: string) =>
    lines
      .find((line) => line.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim()
  const location = headerOf('location')
  const retryAfter = headerOf('retry-after')
  const bytes = Number(headerOf('content-length') ?? Number.POSITIVE_INFINITY)
  const hasBody = status > 0 && method !== 'HEAD' && status !== 204 && status !== 304
  return {
    status,
    headers: {
      ...(location && { location: Buffer.from(location, 'latin1').toString() }),
      ...(retryAfter && { retryAfter }),
    },
    bodyMax: hasBody ? Math.min(maxBytes, bytes) : 0,
    isChunked: /chunked/i.test(headerOf('transfer-encoding') ?? ''),
  }
}
