import { BOUNDARIES, CHUNKED } from './hostile-boundaries.ts'
import {
  answered,
  BODY,
  CHUNKS,
  CRLF,
  get,
  HOST,
  type HostileRequest,
  LIVE,
  lines,
  post,
  REDIRECT,
  refused,
  SMUGGLED,
  silent,
  utf8,
} from './hostile-bytes.ts'

const REQUEST_LINES: readonly HostileRequest[] = [
  ...refused(400, {
    'a request line of one word': lines('GARBAGE') + REDIRECT,
    'a method alone': lines('GET'),
    'two spaces after the method': lines('GET  /HOPCODE1 HTTP/1.1', HOST),
    'an empty line first': CRLF + REDIRECT,
    'a space first': ` ${REDIRECT}`,
    'a target in authority form': get('hop.test:80'),
    'OPTIONS *': lines('OPTIONS * HTTP/1.1', HOST),
    'GET *': get('*'),
    'a path that begins with a backslash': get('\\HOPCODE1'),
    'the HTTP/2 connection preface': lines('PRI * HTTP/2.0', '', 'SM'),
    'a TLS ClientHello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  }),
  ...refused(505, {
    'a space in the path': get('/HOP CODE1'),
    'tabs instead of spaces': lines('GET\t/HOPCODE1\tHTTP/1.1', HOST),
    'NUL in the path': get('/HOPCODE1\0'),
    'HTTP/0.9': lines('GET /HOPCODE1'),
    'HTTP/1.2': lines('GET /HOPCODE1 HTTP/1.2', HOST),
    'HTTP/2.0': lines('GET /HOPCODE1 HTTP/2.0', HOST),
    'a character after the version': lines('GET /HOPCODE1 HTTP/1.1x', HOST),
    'the version in lower case': lines('GET /HOPCODE1 http/1.1', HOST),
    'bare LF line endings': `GET /HOPCODE1 HTTP/1.1\n${HOST}\n\n`,
  }),
  ...silent({
    'a method in lower case': lines('get /HOPCODE1 HTTP/1.1', HOST),
    'an unknown method': lines('BREW /HOPCODE1 HTTP/1.1', HOST),
    'a method of 5,000 characters': lines(`${'A'.repeat(5000)} /HOPCODE1 HTTP/1.1`, HOST),
  }),
  ...answered([405, 'Method not allowed: TRACE'], {
    TRACE: lines('TRACE /HOPCODE1 HTTP/1.1', HOST),
  }),
  ...answered([405, 'Method not allowed: CONNECT'], {
    'CONNECT with a path': lines('CONNECT /HOPCODE1 HTTP/1.1', HOST),
  }),
  ...answered(
    [405, 'Method not allowed: CONNECT'],
    { 'CONNECT to another host': lines('CONNECT evil.example:443 HTTP/1.1', HOST) },
    'deaf',
  ),
  ...answered([405, 'Method not allowed: PROPFIND'], {
    'a WebDAV method': lines('PROPFIND /HOPCODE1 HTTP/1.1', HOST),
  }),
  ...answered(302, {
    'the absolute form': get('http://hop.test/HOPCODE1'),
    'the absolute form of another host': get('https://evil.example/HOPCODE1'),
  }),
  ...answered(302, { 'HTTP/1.0 without a Host': lines('GET /HOPCODE1 HTTP/1.0') }, 'closed'),
]

const PATHS: readonly HostileRequest[] = [
  ...answered(302, {
    'a code with a percent-encoded letter': get('/%48OPCODE1'),
    'a code after ..': get('/api/../HOPCODE1'),
    'a code after %2e%2e': get('/api/%2e%2e/HOPCODE1'),
    'a code with a query': get('/HOPCODE1?x=%0d%0aX-Injected:1'),
  }),
  ...answered([404, 'Code not found: /HOPCODE1'], { 'a slash as %2F': get('/%2FHOPCODE1') }),
  ...answered([404, 'Code not found: API/STATUS'], {
    'an encoded slash in a path': get('/api%2Fstatus'),
  }),
  ...answered([404, 'Code not found: HOPCODE1\\u0000'], { 'NUL as %00': get('/HOPCODE1%00') }),
  ...answered([404, 'Code not found: HOPCODE1;X'], { 'a semicolon': get('/HOPCODE1;x') }),
  ...answered([404, 'Code not found: HOPCODE1#X'], { 'a fragment': get('/HOPCODE1#x') }),
  ...answered([404, 'Code not found: ÄÖÜÄÖÜ'], { 'bytes of UTF-8': get(utf8('/äöüÄÖÜ')) }),
  ...answered([404, 'Code not found: '], {
    'bytes that are not UTF-8': get('/\xff\xfeABCD'),
    'percent-encoded bytes that are not UTF-8': get('/api/lookup/%ff%fe'),
    'percent signs that encode nothing': get('/%zz%4'),
    'a path of 10,000 characters': get(`/${'A'.repeat(10_000)}`),
  }),
  ...answered([404, 'Not found'], {
    'two slashes': get('//HOPCODE1'),
    'two slashes inside': get('/api//status'),
    'two slashes and a host': get('//evil.example/api/status'),
    'a file outside of the images, encoded': get('/cdn/qr/..%2f..%2f..%2fsecret.key'),
    'a file outside of the images, encoded twice': get('/cdn/qr/%252e%252e%252fsecret.key'),
  }),
  ...answered([404, 'Code not found: SECRET.KEY'], {
    'a file outside of the images': get('/cdn/qr/../../../secret.key'),
  }),
  ...answered([404, '\\r\\nX-INJECTED: 1'], {
    'a line break in a code': get('/HOPCODE1%0d%0aX-Injected:%201'),
    'a line break in a code that is looked up': get('/api/lookup/A%0d%0aX-Injected:%201'),
    'a line break in a code of an image': get('/qr/A%0d%0aX-Injected:%201'),
  }),
  ...refused(431, {
    'a path of 20,000 characters': get(`/${'A'.repeat(20_000)}`),
    'a path of a million characters': get(`/${'A'.repeat(1_000_000)}`),
  }),
]

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: y`)

const HEADERS: readonly HostileRequest[] = [
  ...refused(400, {
    'no Host': lines('GET /HOPCODE1 HTTP/1.1'),
    'a bare LF after a header': `GET /HOPCODE1 HTTP/1.1${CRLF}${HOST}\nX: y${CRLF}${CRLF}`,
    'a bare CR after a header': lines('GET /HOPCODE1 HTTP/1.1', `${HOST}\rX: y`),
    'NUL in a header value': get('/HOPCODE1', 'X: a\0b'),
    'NUL in a header name': get('/HOPCODE1', 'X\0: b'),
    'a folded header value (obs-fold)': get('/HOPCODE1', 'X: a', ' b'),
    'a space before the first header': lines('GET /HOPCODE1 HTTP/1.1', ' X: y', HOST),
    'a space before the colon of a header': get('/HOPCODE1', 'X : y'),
    'a header without a colon': get('/HOPCODE1', 'garbage'),
    'a header without a name': get('/HOPCODE1', ': x'),
    'a header name in braces': get('/HOPCODE1', 'X{y}: z'),
  }),
  ...refused(431, {
    'a header of 20,000 characters': get('/HOPCODE1', `X: ${'a'.repeat(20_000)}`),
    'a header of a million characters': get('/HOPCODE1', `X: ${'a'.repeat(1_000_000)}`),
    '300 headers': get('/HOPCODE1', ...numbered(300)),
  }),
  ...answered(302, {
    'an empty Host': lines('GET /HOPCODE1 HTTP/1.1', 'Host:'),
    'two Hosts': get('/HOPCODE1', 'Host: evil.example'),
    'a Host that is not a host name': lines('GET /HOPCODE1 HTTP/1.1', 'Host: a b/c?d#e@f'),
    'a header of 15,000 characters': get('/HOPCODE1', `X: ${'a'.repeat(15_000)}`),
    '100 headers': get('/HOPCODE1', ...numbered(100)),
    'bytes of latin1 in a value': get('/HOPCODE1', 'X: \xe9'),
    'another method in a header': get('/HOPCODE1', 'X-HTTP-Method-Override: DELETE'),
    'another path in a header': get('/HOPCODE1', 'X-Original-URL: /app', 'X-Rewrite-URL: /app'),
    'a range': get('/HOPCODE1', 'Range: bytes=0-0'),
  }),
  ...answered([200, '"status":"operational"'], {
    'a path in the Host': lines('GET /api/status HTTP/1.1', 'Host: x/HOPCODE1?'),
  }),
  ...answered([401, 'Invalid or missing API key'], {
    'two API keys': post(['X-API-Key: hop_other', `Content-Length: ${BODY.length}`], BODY),
  }),
]

const AFTER: readonly HostileRequest[] = [
  ...refused(400, { 'a request after a malformed one': lines('GET') + REDIRECT }),
  ...silent({
    'a request while an earlier one is in progress': post(
      [`Content-Length: ${BODY.length}`],
      BODY + REDIRECT,
    ),
  }),
  {
    name: 'a redirect after a 404 of the control thread',
    bytes: get('/nowhere/at-all') + REDIRECT,
    answers: [404, 302],
    connection: 'open',
  },
  {
    name: 'a request after a POST without a route',
    bytes: post([`Content-Length: ${BODY.length}`], BODY).replace('/api/shorten', '/x') + SMUGGLED,
    answers: [405, [200, LIVE]],
    connection: 'open',
  },
  {
    name: 'a request after a POST without a key',
    bytes: post([`Content-Length: ${BODY.length}`], BODY).replace('{key}', 'x') + SMUGGLED,
    answers: [401, [200, LIVE]],
    connection: 'open',
  },
  {
    name: 'a Content-Length that is too short',
    bytes: post([`Content-Length: ${BODY.length - 3}`], BODY),
    answers: [400, 400],
    connection: 'closed',
  },
  {
    name: 'a redirect after an unknown code',
    bytes: get('/NOBODY99') + REDIRECT,
    answers: [[404, 'Code not found'], 302],
    connection: 'open',
  },
  {
    name: 'a GET with a body that looks like a request',
    bytes: get('/HOPCODE1', `Content-Length: ${SMUGGLED.length}`) + SMUGGLED + REDIRECT,
    answers: [302, 302],
    connection: 'open',
  },
  {
    name: 'a GET with a body in chunks',
    bytes: `${get('/HOPCODE1', 'Transfer-Encoding: chunked')}${CHUNKS}${REDIRECT}`,
    answers: [302, 302],
    connection: 'open',
  },
  {
    name: 'HEAD, twice, and a GET',
    bytes: REDIRECT.replace('GET', 'HEAD') + get('/NOBODY99').replace('GET', 'HEAD') + SMUGGLED,
    answers: [302, 404, [200, LIVE]],
    connection: 'open',
    bodiless: [0, 1],
  },
  {
    name: 'an upgrade to WebSocket',
    bytes:
      get(
        ...(['/HOPCODE1', 'Connection: Upgrade', 'Upgrade: websocket'] as const),
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Version: 13',
      ) + SMUGGLED,
    answers: [302, [200, LIVE]],
    connection: 'open',
  },
  {
    name: 'an upgrade to HTTP/2',
    bytes:
      get(
        '/HOPCODE1',
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: AA',
      ) + SMUGGLED,
    answers: [302, [200, LIVE]],
    connection: 'open',
  },
  {
    name: 'a request after Connection: close',
    bytes: get('/HOPCODE1', 'Connection: close') + SMUGGLED,
    answers: [302],
    connection: 'closed',
  },
  {
    name: 'Expect: 100-continue',
    bytes: post(['Expect: 100-continue', `Content-Length: ${BODY.length}`], BODY),
    answers: [100, 200],
    connection: 'open',
  },
]

export const HOSTILE_REQUESTS: readonly HostileRequest[] = [
  ...REQUEST_LINES,
  ...PATHS,
  ...HEADERS,
  ...BOUNDARIES,
  ...CHUNKED,
  ...AFTER,
]
