import { expect, test } from 'bun:test'
import { ResponseScanner } from './response-scanner.ts'

const REDIRECT = [
  'HTTP/1.1 302 Found',
  'LOCATION:  https://example.com/a?b=c:d ',
  'X-Location: no',
  'Content-Length: 0',
  '\r\n',
].join('\r\n')
const CHUNKED = [
  'HTTP/1.1 200 OK',
  'Transfer-Encoding: chunked',
  'Location: x',
  '',
  '5',
  'hello',
  'a;n=1',
  '0123456789',
  '0',
  'Trailer: 1',
  '\r\n',
].join('\r\n')

const scan = (scanner: ResponseScanner, text: string, step: number) => {
  const bytes = Buffer.from(text, 'latin1')
  const ends: number[] = []
  for (let at = 0; at < bytes.length; at += step) {
    if (scanner.push(bytes.subarray(at, at + step))) ends.push(Math.min(at + step, bytes.length))
  }
  return ends
}

test('status, headers and body length are the same however the bytes are cut', () => {
  for (const step of [1, 2, 3, 7, 50, 1000]) {
    const scanner = new ResponseScanner(['Location', 'x-absent'])
    expect(scan(scanner, REDIRECT, step)).toEqual([REDIRECT.length])
    expect(scanner).toMatchObject({ status: 302, bodyBytes: 0 })
    expect(scanner.header(0)).toBe('https://example.com/a?b=c:d')
    expect(scanner.header(1)).toBeUndefined()
    expect(scan(scanner, CHUNKED, step)).toEqual([CHUNKED.length])
    expect(scanner).toMatchObject({ status: 200, bodyBytes: 15 })
    expect(scanner.header(0)).toBe('x')
  }
})

test('a response that follows another on the connection keeps none of its headers', () => {
  const scanner = new ResponseScanner(['location'])
  scan(scanner, REDIRECT, 1000)
  scan(scanner, 'HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc', 4)
  expect(scanner).toMatchObject({ status: 404, bodyBytes: 3 })
  expect(scanner.header(0)).toBeUndefined()
})

test('a body is waited for to its last byte, unless the request was a HEAD', () => {
  const scanner = new ResponseScanner([])
  const head = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n')
  expect(scanner.push(head)).toBe(false)
  expect(scanner.push(Buffer.from('1234'))).toBe(false)
  expect(scanner.push(Buffer.from('5'))).toBe(true)
  expect(scanner.closes).toBe(true)
  scanner.expectNoBody()
  expect(scanner.push(head)).toBe(true)
  expect(scanner.push(head)).toBe(false)
})

const malformed = [
  { name: 'another protocol', text: 'SSH-2.0-x\r\n\r\n' },
  { name: 'an interim response', text: 'HTTP/1.1 100 Continue\r\n\r\n' },
  { name: 'a body without an end', text: 'HTTP/1.1 200 OK\r\n\r\n' },
  { name: 'bytes after the end', text: `${REDIRECT}H` },
  { name: 'a head without an end', text: `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(70_000)}` },
]
test.each(malformed)('malformed bytes are an error: $name', ({ text }) => {
  expect(() => scan(new ResponseScanner([]), text, 100_000)).toThrow(Error)
})
