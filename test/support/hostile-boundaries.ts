import {
  answered,
  BODY,
  CHUNKS,
  CRLF,
  chunked,
  type HostileRequest,
  post,
  refused,
  SIZE,
  SMUGGLED,
} from './hostile-bytes.ts'

/** Where two servers could disagree on where a request ends. */
const codings = (...values: string[]) =>
  Object.fromEntries(
    values.map((value) => [
      `the coding ${JSON.stringify(value)}`,
      chunked(CHUNKS + SMUGGLED, `Transfer-Encoding:${value}`),
    ]),
  )

const lengths = (...values: string[]) =>
  Object.fromEntries(
    values.map((value) => [
      `the length ${JSON.stringify(value)}`,
      post([`Content-Length:${value}`], BODY + SMUGGLED),
    ]),
  )

const sizes = (...values: string[]) =>
  Object.fromEntries(
    values.map((value) => [
      `a chunk of the size ${JSON.stringify(value)}`,
      chunked(`${value}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}${SMUGGLED}`),
    ]),
  )

export const BOUNDARIES: readonly HostileRequest[] = [
  ...refused(400, {
    'a length, then a coding': post(
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      `0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    'a coding, then a length': post(
      ['Transfer-Encoding: chunked', 'Content-Length: 5'],
      `0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    'a length that fits, and a coding': post(
      [`Content-Length: ${BODY.length}`, 'Transfer-Encoding: chunked'],
      BODY + SMUGGLED,
    ),
    ...codings(
      ' xchunked',
      ' chunked, identity',
      ' identity, chunked',
      ' identity',
      ' gzip, chunked',
    ),
    ...codings(' chunked, chunked', ' "chunked"', ' chunked;x=1', ' \x0bchunked', '', ' chun\0ked'),
    'two codings': chunked(CHUNKS + SMUGGLED, 'Transfer-Encoding: chunked\r\nTransfer-Encoding: x'),
    'two codings, the last one right': chunked(
      CHUNKS + SMUGGLED,
      'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    ),
    'a space before the colon of a coding': chunked(
      CHUNKS + SMUGGLED,
      'Transfer-Encoding : chunked',
    ),
    'a coding in a line that goes on': chunked(
      CHUNKS + SMUGGLED,
      'X: y\r\n Transfer-Encoding: chunked',
    ),
    'a coding in HTTP/1.0': chunked(CHUNKS + SMUGGLED).replace('HTTP/1.1', 'HTTP/1.0'),
    'two lengths that differ': post(
      [`Content-Length: ${BODY.length}`, 'Content-Length: 0'],
      BODY + SMUGGLED,
    ),
    ...lengths(` ${BODY.length}, ${BODY.length}`, ' -1', ` +${BODY.length}`, ` 0x${SIZE}`, ' 1e1'),
    ...lengths(' 18446744073709551617', ` ${'9'.repeat(40)}`, ' 9223372036854775807', ''),
    ...lengths(' 3 8', ` ${BODY.length}.0`, ` ${BODY.length};`),
    'a space before the colon of a length': post(
      [`Content-Length : ${BODY.length}`],
      BODY + SMUGGLED,
    ),
  }),
  ...answered(200, {
    'the same length twice': post(
      [`Content-Length: ${BODY.length}`, `Content-Length: ${BODY.length}`],
      BODY,
    ),
    'a length with zeros in front': post([`Content-Length: 000${BODY.length}`], BODY),
    'the coding in capitals': chunked(CHUNKS, 'TRANSFER-ENCODING: CHUNKED'),
    'the coding between spaces and tabs': chunked(CHUNKS, 'Transfer-Encoding: \t chunked \t'),
    'an unknown expectation': post(['Expect: 200-maybe', `Content-Length: ${BODY.length}`], BODY),
    'a chunk for each byte': chunked(
      `${[...BODY].map((byte) => `1${CRLF}${byte}${CRLF}`).join('')}0${CRLF}${CRLF}`,
    ),
    'extensions of chunks': chunked(`${SIZE};a=b;c="d"${CRLF}${BODY}${CRLF}0;last${CRLF}${CRLF}`),
  }),
  ...answered([400, 'Invalid JSON'], {
    'a length that takes in the next request': post(
      [`Content-Length: ${BODY.length + SMUGGLED.length}`],
      BODY + SMUGGLED,
    ),
  }),
  ...answered([415, 'Unsupported content encoding'], {
    'a body in gzip that is none': post(
      ['Content-Encoding: gzip', `Content-Length: ${BODY.length - 1}`],
      BODY.slice(1),
    ),
  }),
]

export const CHUNKED: readonly HostileRequest[] = [
  ...refused(400, {
    ...sizes('zz', '-1', 'fffffffffffffffff', 'ffffffffffffffff', '7fffffffffffffff', `0x${SIZE}`),
    ...sizes(`${SIZE} `, ` ${SIZE}`, '', `${SIZE};a\nb`, `+${SIZE}`, `${SIZE}\r`),
    'chunks with line feeds alone': chunked(`${SIZE}\n${BODY}\n0\n\n${SMUGGLED}`),
    'a chunk that is longer than its size': chunked(
      `${SIZE}${CRLF}${BODY}XX0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    trailers: chunked(
      `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}X-API-Key: y${CRLF}Content-Length: 5${CRLF}${CRLF}`,
    ),
  }),
  ...refused(413, {
    'an extension of a chunk of 100,000 letters': chunked(
      `${SIZE};${'a'.repeat(100_000)}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}`,
    ),
  }),
]
