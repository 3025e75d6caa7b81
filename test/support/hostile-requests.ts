/**
 * Malformed, ambiguous and oversized requests as bytes (latin1), with what must come back. The code
 * HOPCODE1 leads to https://example.com/landing, and the account of `{key}` has a code for
 * https://example.com/known.
 */

const CRLF = '\r\n'
const HOST = 'Host: hop.test'
export const BODY = JSON.stringify({ url: 'https://example.com/known' })
const SIZE = BODY.length.toString(16)
export const LIVE = '"status":"live"'

const lines = (...all: string[]) => [...all, '', ''].join(CRLF)
export const get = (path: string, ...headers: string[]) =>
  lines(`GET ${path} HTTP/1.1`, HOST, ...headers)
/** What an attacker would have answered on somebody else's behalf. */
const SMUGGLED = get('/-/live')
export const REDIRECT = get('/HOPCODE1')
const utf8 = (text: string) => Buffer.from(text).toString('latin1')

const post = (headers: readonly string[], body: string) =>
  lines(
    'POST /api/shorten HTTP/1.1',
    HOST,
    'X-API-Key: {key}',
    'Content-Type: application/json',
    ...headers,
  ) + body
const chunked = (body: string, coding = 'Transfer-Encoding: chunked') => post([coding], body)
const CHUNKS = `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}`

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: y`)

/** Answered with one error at most; the connection ends, and nothing behind it is answered. */
export const REFUSED: Record<string, string> = {
  'an empty line first': CRLF + REDIRECT,
  'a space first': ` ${REDIRECT}`,
  'a request after a malformed one': lines('GET') + REDIRECT,
  'bare LF line endings': `GET /HOPCODE1 HTTP/1.1\n${HOST}\n\n${REDIRECT}`,
  'HTTP/0.9': lines('GET /HOPCODE1') + REDIRECT,
  'a TLS ClientHello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'a bare LF after a header': `GET /HOPCODE1 HTTP/1.1${CRLF}${HOST}\nX: y${CRLF}${CRLF}`,
  'a bare CR after a header': lines('GET /HOPCODE1 HTTP/1.1', `${HOST}\rX: y`),
  'NUL in a header value': get('/HOPCODE1', 'X: a\0b'),
  'a folded header value': get('/HOPCODE1', 'X: a', ' b'),
  'a space before the first header': lines('GET /HOPCODE1 HTTP/1.1', ' X: y', HOST),
  'a space before the colon of a header': get('/HOPCODE1', 'X : y'),
  'a path of a million characters': get(`/${'A'.repeat(1_000_000)}`),
  'a header of a million characters': get('/HOPCODE1', `X: ${'a'.repeat(1_000_000)}`),
  '300 headers': get('/HOPCODE1', ...numbered(300)),
  'a request while a change is in progress': post(
    [`Content-Length: ${BODY.length}`],
    BODY + REDIRECT,
  ),
}

const codings = (...values: string[]) =>
  values.map((value) => chunked(CHUNKS + SMUGGLED, `Transfer-Encoding:${value}`))
const lengths = (...headers: string[]) => post(headers, BODY + SMUGGLED)
const length = (...values: string[]) => values.map((value) => lengths(`Content-Length:${value}`))
const sizes = (...values: string[]) =>
  values.map((value) => chunked(`${value}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}${SMUGGLED}`))
const { length: BYTES } = BODY
const LAST = `0${CRLF}${CRLF}`

/** Two servers could disagree on where these end: refused like those above. */
export const AMBIGUOUS: Record<string, readonly string[]> = {
  'a length and a coding': [
    post(['Content-Length: 5', 'Transfer-Encoding: chunked'], LAST + SMUGGLED),
    post(['Transfer-Encoding: chunked', 'Content-Length: 5'], LAST + SMUGGLED),
    lengths(`Content-Length: ${BYTES}`, 'Transfer-Encoding: chunked'),
  ],
  'another coding': [
    ...codings(' xchunked', ' chunked, identity', ' identity, chunked', ' identity', ''),
    ...codings(' gzip, chunked', ' chunked, chunked', ' "chunked"', ' chunked;x=1'),
    ...codings(' \x0bchunked', ' chun\0ked'),
  ],
  'two codings': [
    ...codings(' chunked\r\nTransfer-Encoding: x', ' identity\r\nTransfer-Encoding: chunked'),
  ],
  'a coding in disguise': [
    chunked(CHUNKS + SMUGGLED, 'Transfer-Encoding : chunked'),
    chunked(CHUNKS + SMUGGLED, 'X: y\r\n Transfer-Encoding: chunked'),
    chunked(CHUNKS + SMUGGLED).replace('HTTP/1.1', 'HTTP/1.0'),
  ],
  'a length that is no number': [
    ...length(` ${BYTES}, ${BYTES}`, ' -1', ` +${BYTES}`, ` 0x${SIZE}`, ' 1e1', '', ' 3 8'),
    ...length(` ${BYTES}.0`, ` ${BYTES};`),
    lengths(`Content-Length : ${BYTES}`),
  ],
  'a length beyond 64 bits': length(
    ' 18446744073709551617',
    ` ${'9'.repeat(40)}`,
    ' 9223372036854775807',
  ),
  'two lengths': [lengths(`Content-Length: ${BYTES}`, 'Content-Length: 0')],
  'a chunk size that is no number': [
    ...sizes('zz', '-1', `0x${SIZE}`, `${SIZE} `, ` ${SIZE}`, '', `+${SIZE}`),
    ...sizes(`${SIZE};a\nb`, `${SIZE}\r`),
  ],
  'a chunk size beyond 64 bits': sizes('fffffffffffffffff', 'ffffffffffffffff', '7fffffffffffffff'),
  'chunks with bare LF line endings': [chunked(`${SIZE}\n${BODY}\n0\n\n${SMUGGLED}`)],
  'a chunk longer than its size': [chunked(`${SIZE}${CRLF}${BODY}XX${LAST}${SMUGGLED}`)],
  'trailer fields': [
    chunked(
      `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}X-API-Key: y${CRLF}Content-Length: 5${CRLF.repeat(2)}`,
    ),
  ],
  'a chunk extension of 100,000 characters': [
    chunked(`${SIZE};${'a'.repeat(100_000)}${CRLF}${BODY}${CRLF}${LAST}`),
  ],
}

interface HostileRequest {
  name: string
  bytes: string
  /** Statuses in order; with a text, that is in the answer's body. */
  answers: readonly (number | readonly [status: number, text: string])[]
  /** The connection goes on after them, is closed by the service, or is no longer listened to. */
  connection: 'open' | 'closed' | 'deaf'
  /** Which answers are to HEAD. */
  bodiless?: readonly number[]
}

type Answer = HostileRequest['answers'][number]
const answered = (name: string, bytes: string, ...answers: Answer[]): HostileRequest => ({
  name,
  bytes,
  answers,
  connection: 'open',
})
const notFound = (text: string): Answer => [404, `Code not found: ${text}`]
const notAllowed = (method: string): Answer => [405, `Method not allowed: ${method}`]
const toHopcode = (...headers: string[]) => get('/HOPCODE1', ...headers)
const withMethod = (method: string) => lines(`${method} /HOPCODE1 HTTP/1.1`, HOST)
const WITH_LENGTH = post([`Content-Length: ${BYTES}`], BODY)

const ONE: readonly HostileRequest[] = [
  answered('TRACE', withMethod('TRACE'), notAllowed('TRACE')),
  answered('CONNECT with a path', withMethod('CONNECT'), notAllowed('CONNECT')),
  answered('a WebDAV method', withMethod('PROPFIND'), notAllowed('PROPFIND')),
  answered('the absolute form of another host', get('https://evil.example/HOPCODE1'), 302),
  answered('a code after ..', get('/api/../HOPCODE1'), 302),
  answered('a code after %2e%2e', get('/api/%2e%2e/HOPCODE1'), 302),
  answered('a line break in a query', get('/HOPCODE1?x=%0d%0aX-Injected:1'), 302),
  answered('a slash as %2F', get('/%2FHOPCODE1'), notFound('/HOPCODE1')),
  answered('an encoded slash in a path', get('/api%2Fstatus'), notFound('API/STATUS')),
  answered('NUL as %00', get('/HOPCODE1%00'), notFound('HOPCODE1\\u0000')),
  answered('a fragment', get('/HOPCODE1#x'), notFound('HOPCODE1#X')),
  answered('bytes of UTF-8', get(utf8('/äöüÄÖÜ')), notFound('ÄÖÜÄÖÜ')),
  answered('bytes that are not UTF-8', get('/\xff\xfeABCD'), notFound('')),
  answered('encoded bytes that are not UTF-8', get('/api/lookup/%ff%fe'), notFound('')),
  answered('percent signs that encode nothing', get('/%zz%4'), notFound('')),
  answered('a path of 10,000 characters', get(`/${'A'.repeat(10_000)}`), notFound('')),
  answered('two slashes', get('//HOPCODE1'), notFound('/HOPCODE1')),
  answered('two slashes and a host', get('//evil.example/api/status'), notFound('/EVIL')),
  answered('a file outside of the images', get('/cdn/qr/../../../secret.key'), notFound('SECRET')),
  answered('the same, encoded', get('/cdn/qr/..%2f..%2fsecret.key'), [404, 'Not found']),
  answered('the same, encoded twice', get('/cdn/qr/%252e%252e%252fsecret.key'), [404, 'Not found']),
  ...['/HOPCODE1', '/api/lookup/A', '/qr/A'].map((path) =>
    answered(`a line break behind ${path}`, get(`${path}%0d%0aX-Injected:%201`), [
      404,
      '\\r\\nX-INJECTED: 1',
    ]),
  ),
  answered('an empty Host', lines('GET /HOPCODE1 HTTP/1.1', 'Host:'), 302),
  answered('two Hosts', toHopcode('Host: evil.example'), 302),
  answered('a path in the Host', lines('GET /api/status HTTP/1.1', 'Host: x/HOPCODE1?'), [
    200,
    '"status":"operational"',
  ]),
  answered('a header of 15,000 characters', toHopcode(`X: ${'a'.repeat(15_000)}`), 302),
  answered('100 headers', toHopcode(...numbered(100)), 302),
  answered('another method in a header', toHopcode('X-HTTP-Method-Override: DELETE'), 302),
  answered('another path in a header', toHopcode('X-Original-URL: /app', 'X-Rewrite-URL: /a'), 302),
  answered('a range', toHopcode('Range: bytes=0-0'), 302),
  answered('two API keys', post(['X-API-Key: hop_other', `Content-Length: ${BYTES}`], BODY), [
    401,
    'Invalid or missing API key',
  ]),
  answered('one length twice', post(Array(2).fill(`Content-Length: ${BYTES}`), BODY), 200),
  answered('a length with zeros in front', post([`Content-Length: 000${BYTES}`], BODY), 200),
  answered('a coding in capitals', chunked(CHUNKS, 'TRANSFER-ENCODING: CHUNKED'), 200),
  answered('a coding between blanks', chunked(CHUNKS, 'Transfer-Encoding: \t chunked \t'), 200),
  answered(
    'a chunk for each byte',
    chunked([...BODY].map((byte) => `1${CRLF}${byte}${CRLF}`).join('') + LAST),
    200,
  ),
  answered(
    'chunk extensions',
    chunked(`${SIZE};a=b;c="d"${CRLF}${BODY}${CRLF}0;last${CRLF}${CRLF}`),
    200,
  ),
  answered(
    'a length that includes the next request',
    post([`Content-Length: ${BYTES + SMUGGLED.length}`], BODY + SMUGGLED),
    [400, 'Invalid JSON'],
  ),
]

const SEVERAL: readonly HostileRequest[] = [
  answered('a redirect after a 404', get('/nowhere/at-all') + REDIRECT, 404, 302),
  answered('a redirect after an unknown code', get('/NOBODY99') + REDIRECT, notFound(''), 302),
  answered(
    'a request after a POST without a route',
    WITH_LENGTH.replace('/api/shorten', '/x') + SMUGGLED,
    405,
    [200, LIVE],
  ),
  answered(
    'a request after a POST without a key',
    WITH_LENGTH.replace('{key}', 'x') + SMUGGLED,
    401,
    [200, LIVE],
  ),
  answered(
    'a GET with a body that looks like a request',
    toHopcode(`Content-Length: ${SMUGGLED.length}`) + SMUGGLED + REDIRECT,
    302,
    302,
  ),
  answered(
    'a GET with a body in chunks',
    toHopcode('Transfer-Encoding: chunked') + CHUNKS + REDIRECT,
    302,
    302,
  ),
  answered(
    'an upgrade to WebSocket',
    toHopcode('Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13') + SMUGGLED,
    302,
    [200, LIVE],
  ),
  answered(
    'an upgrade to HTTP/2',
    toHopcode('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c') + SMUGGLED,
    302,
    [200, LIVE],
  ),
  answered(
    'Expect: 100-continue',
    post(['Expect: 100-continue', `Content-Length: ${BYTES}`], BODY),
    100,
    200,
  ),
  {
    ...answered(
      'HEAD, twice, and a GET',
      withMethod('HEAD') + get('/NOBODY99').replace('GET', 'HEAD') + SMUGGLED,
      302,
      404,
      [200, LIVE],
    ),
    bodiless: [0, 1],
  },
  {
    ...answered(
      'a length that is too short',
      post([`Content-Length: ${BYTES - 3}`], BODY),
      400,
      400,
    ),
    connection: 'closed',
  },
  {
    ...answered(
      'a request after Connection: close',
      toHopcode('Connection: close') + SMUGGLED,
      302,
    ),
    connection: 'closed',
  },
  {
    ...answered('HTTP/1.0 without a Host', lines('GET /HOPCODE1 HTTP/1.0'), 302),
    connection: 'closed',
  },
  {
    ...answered(
      'CONNECT to another host',
      lines('CONNECT evil.example:443 HTTP/1.1', HOST),
      notAllowed('CONNECT'),
    ),
    connection: 'deaf',
  },
]

export const ANSWERED: readonly HostileRequest[] = [...ONE, ...SEVERAL]
