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
const END = '\r\n\r\n'
const INFORMATION = /^(HTTP\/1\.1 1\d\d[\s\S]*?\r\n\r\n)+/

export function writeRequest(socket: Socket, { method, url, headers, body }: Exchange): void {
  const length = body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }
  const all = { Host: url.host, Connection: 'close', ...headers, ...length }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  const start = `${method} ${url.pathname}${url.search} HTTP/1.1`
  socket.write(`${[start, ...lines].join('\r\n')}${END}${body ?? ''}`)
}

/**
 * Reads a response with up to `maxBytes` of its body, which is thrown away. Rejects if it is no
 * HTTP, its head is too large, or the connection ends before the end of the head.
 */
export function readResponse(socket: Socket, exchange: Exchange): Promise<ResponseHead> {
  return new Promise((resolve, reject) => {
    let text = ''
    let head: ReturnType<typeof parseHead> | undefined
    let bodyBytes = 0
    const finish = () => (head?.status ? resolve(head) : reject(new Error('no HTTP')))
    for (const event of ['error', 'end', 'close']) socket.once(event, finish)
    socket.on('data', (bytes: Buffer) => {
      // Each byte is one character.
      let chunk = bytes.toString('latin1')
      if (!head) {
        text = (text + chunk).replace(INFORMATION, '')
        const length = text.indexOf(END)
        if (length < 0 && text.length <= HEAD_BYTES_MAX) return
        head = parseHead(text.slice(0, Math.max(0, length)), exchange)
        chunk = text.slice(length + END.length)
      }
      bodyBytes += chunk.length
      const isLast = head.isChunked && chunk.endsWith(`0${END}`)
      if (bodyBytes >= head.bodyMax || isLast) finish()
    })
  })
}

/** The status is 0 if it is no head. The body ends with byte `bodyMax` at the latest. */
function parseHead(text: string, { method, maxBytes }: Exchange) {
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?=[ \r]|$)/.exec(text)?.[1] ?? 0)
  const headerOf = (name: string) =>
    new RegExp(`^${name}:[ \\t]*(.*)`, 'im').exec(text)?.[1]?.trim()
  const location = headerOf('location')
  const retryAfter = headerOf('retry-after')
  const hasBody = status > 0 && method !== 'HEAD' && status !== 204 && status !== 304
  const length = Number(headerOf('content-length') ?? Number.POSITIVE_INFINITY)
  return {
    status,
    headers: {
      ...(location && { location: Buffer.from(location, 'latin1').toString() }),
      ...(retryAfter && { retryAfter }),
    },
    bodyMax: hasBody ? Math.min(maxBytes, length) : 0,
    isChunked: /chunked/i.test(headerOf('transfer-encoding') ?? ''),
  }
}
