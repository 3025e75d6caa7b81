import { expect, test } from 'bun:test'
import { bodyLengthOf, isHeadStart, PlainRequest } from './plain-request.ts'

const head = (...lines: string[]) => [...lines, '', ''].join('\r\n')
const HOST = 'Host: hop.test'

test.each([
  ['GET /SPRING26 HTTP/1.1', [HOST], false],
  ['GET /spring26?utm_source=a&b=%20 HTTP/1.1', [HOST, 'Accept: */*'], false],
  ['GET /SPRING26 HTTP/1.1', ['User-Agent: caf\xe9', 'host:hop.test', 'X-Empty:'], false],
  ['GET /SPRING26 HTTP/1.1', [HOST, 'Connection: keep-alive'], false],
  ['GET /SPRING26 HTTP/1.1', [HOST, 'connection:CLOSE '], true],
  ['GET /SPRING26 HTTP/1.1', [HOST, 'Authorization: Basic OmJlYXJlcg=='], false],
  ['GET /SPRING26 HTTP/1.0', [HOST], true],
] as const)('%s with %j is read, and is the last one: %p', (line, headers, isLast) => {
  const request = PlainRequest.read(head(line, ...headers))
  expect(request?.text.toUpperCase()).toBe('SPRING26')
  expect(request?.isLast).toBe(isLast)
})

test.each([
  ['/SPRING26', undefined],
  ['/SPRING26/a', 'a'],
  ['/SPRING26/a/b-c_d/e.html?f=g', 'a/b-c_d/e.html'],
  ['/SPRING26/1/2/3/4/5/6/7/8', '1/2/3/4/5/6/7/8'],
])('of %s, %p follows the first segment', (path, rest) => {
  const request = PlainRequest.read(head(`GET ${path} HTTP/1.1`, HOST))
  expect([request?.text, request?.rest]).toEqual(['SPRING26', rest])
})

const LINE = 'GET /SPRING26 HTTP/1.1'
test.each([
  ['another method', head('HEAD /SPRING26 HTTP/1.1', HOST)],
  ['a path of ten segments', head('GET /SPRING26/1/2/3/4/5/6/7/8/9 HTTP/1.1', HOST)],
  ['an empty segment', head('GET /SPRING26//a HTTP/1.1', HOST)],
  ['a dot segment', head('GET /SPRING26/../a HTTP/1.1', HOST)],
  ['a last dot segment', head('GET /SPRING26/. HTTP/1.1', HOST)],
  ['an encoded segment', head('GET /SPRING26/%2e HTTP/1.1', HOST)],
  ['a last slash', head('GET /SPRING26/ HTTP/1.1', HOST)],
  ['an encoded letter', head('GET /%53PRING26 HTTP/1.1', HOST)],
  ['the absolute form', head('GET http://hop.test/SPRING26 HTTP/1.1', HOST)],
  ['another version', head('GET /SPRING26 HTTP/1.2', HOST)],
  ['two spaces', head('GET  /SPRING26 HTTP/1.1', HOST)],
  ['no host', head(LINE, 'Accept: */*')],
  ['no header', head(LINE)],
  ['an API key', head(LINE, HOST, 'x-API-key: hop_1')],
  ['an API key as a bearer token', head(LINE, HOST, 'authorization: BEARER hop_1')],
  ['a length', head(LINE, HOST, 'Content-Length: 0')],
  ['a coding', head(LINE, HOST, 'Transfer-Encoding: chunked')],
  ['an expectation', head(LINE, HOST, 'Expect: 100-continue')],
  ['an upgrade', head(LINE, HOST, 'Connection: Upgrade', 'Upgrade: websocket')],
  ['another option of the connection', head(LINE, HOST, 'Connection: close, te')],
  ['a space before a colon', head(LINE, HOST, 'Accept : */*')],
  ['a folded line', head(LINE, HOST, 'Accept: a', ' b')],
  ['a control character', head(LINE, HOST, 'Accept: \x01')],
  ['a line feed alone', head(LINE, `${HOST}\nAccept: */*`)],
  ['a carriage return alone', head(LINE, `${HOST}\rAccept: */*`)],
  ['a name that is no token', head(LINE, HOST, '(a): b')],
  ['a head of 9,000 letters', head(LINE, HOST, `X-A: ${'a'.repeat(9000)}`)],
  ['65 headers', head(LINE, HOST, ...Array.from({ length: 64 }, (_, n) => `X-${n}: 1`))],
])('%s is left to another parser', (_, text) => {
  expect(PlainRequest.read(text)).toBeUndefined()
})

test('headers are found whatever the case of their names, and lines of one name are joined', () => {
  const lines = ['X-Forwarded-For:  192.0.2.1 ', 'Accept: a', 'x-forwarded-for: 192.0.2.2']
  const request = PlainRequest.read(head(LINE, HOST, ...lines))
  expect(request?.get('x-forwarded-for')).toBe('192.0.2.1, 192.0.2.2')
  expect(request?.get('accept')).toBe('a')
  expect(request?.get('forwarded-for')).toBeNull()
})

test.each([
  ['nothing', '', ''],
  ['blanks only', '  \t', ''],
  ['blanks around it', ' \ta, b\t ', 'a, b'],
  ['8,000 blanks inside', `a${' '.repeat(8000)}b `, `a${' '.repeat(8000)}b`],
])('a value that is or has %s is read without the blanks around it', (_, sent, value) => {
  const request = PlainRequest.read(head(LINE, HOST, `Accept:${sent}`, 'Via: a'))
  expect(request?.get('accept')).toBe(value)
})

test.each([
  ['GET', [], 0],
  ['HEAD', [], 0],
  ['POST', ['Content-Length: 35'], 35],
  ['DELETE', ['content-length:0'], 0],
  ['GET', ['Content-Length: 1'], undefined],
  ['POST', ['Content-Length: 1', 'Content-Length: 1'], undefined],
  ['POST', ['Content-Length: +1'], undefined],
  ['POST', ['Content-Length: 1, 1'], undefined],
  ['POST', ['Content-Length: '], undefined],
  ['POST', ['Content-Length: 9999999999999999'], undefined],
  ['POST', ['Transfer-Encoding: chunked'], undefined],
  ['POST', ['Content-Length: 5', 'Transfer-Encoding: chunked'], undefined],
  ['POST', ['Content-Length: 5', 'Expect: 100-continue'], undefined],
  ['POST', ['Content-Length: 5', 'Connection: close'], undefined],
  ['CONNECT', [], undefined],
  ['post', [], undefined],
] as const)('the body of %s with %j has %p bytes', (method, headers, length) => {
  const framed = bodyLengthOf(head(`${method} /api/shorten HTTP/1.1`, HOST, ...headers))
  expect(framed).toEqual(length === undefined ? undefined : { method, bodyLength: length })
})

test('each beginning of a plain head is one, and other bytes are not', () => {
  const whole = head(LINE, HOST, 'Accept: */*')
  for (let end = 1; end < whole.length; end++) expect(isHeadStart(whole.slice(0, end))).toBe(true)
  for (const start of ['OPTIONS *', 'GET h', 'GET http://hop.test', 'M-SEARCH /']) {
    expect([start, isHeadStart(start)]).toEqual([start, true])
  }
  const others = ['get', 'G\n', 'GET x', 'GET  /', '\x16\x03\x01', `${LINE}\nHost: a`]
  for (const text of [...others, `${LINE}\r\rH`, `GET /${'a'.repeat(17_000)}`]) {
    expect([text, isHeadStart(text)]).toEqual([text, false])
  }
})
