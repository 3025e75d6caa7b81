import { expect, test } from 'bun:test'
import { type Progress, ResponseEnd } from './response-end.ts'

const response = (headers: string[], body = '', status = '200 OK') =>
  [`HTTP/1.1 ${status}`, ...headers, '', body].join('\r\n')

/** The progress after each piece of one byte, or of `size` bytes. */
function progressOf(bytes: string, { method = 'GET', size = 1 } = {}): Progress[] {
  const end = new ResponseEnd(method)
  const pieces = bytes.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
  return pieces.map((piece) => end.push(Buffer.from(piece, 'latin1')))
}

const WHOLE = [
  ['a length', response(['Content-Length: 5'], 'hello')],
  ['no body', response(['content-length: 0'])],
  [
    'chunks',
    response(['Transfer-Encoding: chunked'], '5\r\nhello\r\nA\r\n0\r\n\r\n56789\r\n0\r\n\r\n'),
  ],
  ['a status without a body', response(['X-A: 1'], '', '204 No Content')],
  ['304', response(['Content-Length: 5'], '', '304 Not Modified')],
] as const

test.each(WHOLE)('%s: the end is the last byte, however the bytes are split', (_, bytes) => {
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const progress = progressOf(bytes, { size })
    expect(progress.pop()).toBe('done')
    expect(progress.every((one) => one === 'more')).toBe(true)
  }
})

test('a response to HEAD ends with its head', () => {
  const bytes = response(['Content-Length: 5'])
  expect(progressOf(bytes, { method: 'HEAD' }).at(-1)).toBe('done')
})

test.each([
  ['bytes behind the end', response(['Content-Length: 5'], 'hello!')],
  ['bytes behind the last chunk', response(['Transfer-Encoding: chunked'], '0\r\n\r\n!')],
  ['neither a length nor chunks', response(['X-A: 1'], 'hello')],
  ['an interim response', response([], '', '100 Continue')],
  ['a connection that will be closed', response(['Content-Length: 0', 'Connection: close'])],
  ['a size that is no number', response(['Transfer-Encoding: chunked'], 'x\r\n')],
  ['a line of a size without an end', response(['Transfer-Encoding: chunked'], '1'.repeat(40))],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(70_000)}`],
])('%s: only the end of the connection is the end', (_, bytes) => {
  expect(progressOf(bytes, { size: bytes.length }).at(-1)).toBe('unknown')
})
