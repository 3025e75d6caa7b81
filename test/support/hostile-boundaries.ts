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
      `Transfer-Encoding:${JSON.stringify(value)}`,
      chunked(CHUNKS + SMUGGLED, `Transfer-Encoding:${value}`),
    ]),
  )

const lengths = (...values: string[]) =>
  Object.fromEntries(
    values.map((value) => [
      `Content-Length:${JSON.stringify(value)}`,
      post([`Content-Length:${value}`], BODY + SMUGGLED),
    ]),
  )

const sizes = (...values: string[]) =>
  Object.fromEntries(
    values.map((value) => [
      `a chunk size of ${JSON.stringify(value)}`,
      chunked(`${value}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}${SMUGGLED}`),
    ]),
  )

export const BOUNDARIES: readonly HostileRequest[] = [
  ...refused(400, {
    'Content-Length, then Transfer-Encoding': post(
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      `0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    'Transfer-Encoding, then Content-Length': post(
      ['Transfer-Encoding: chunked', 'Content-Length: 5'],
      `0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    'a correct Content-Length, and Transfer-Encoding': post(
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
    'two Transfer-Encoding headers': chunked(
      CHUNKS + SMUGGLED,
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: x',
    ),
    'two Transfer-Encoding headers, the last one valid': chunked(
      CHUNKS + SMUGGLED,
      'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    ),
    'a space before the colon of Transfer-Encoding': chunked(
      CHUNKS + SMUGGLED,
      'Transfer-Encoding : chunked',
    ),
    'Transfer-Encoding in a folded line': chunked(
      CHUNKS + SMUGGLED,
      'X: y\r\n Transfer-Encoding: chunked',
    ),
    'Transfer-Encoding in HTTP/1.0': chunked(CHUNKS + SMUGGLED).replace('HTTP/1.1', 'HTTP/1.0'),
    'two different Content-Length headers': post(
      [`Content-Length: ${BODY.length}`, 'Content-Length: 0'],
      BODY + SMUGGLED,
    ),
    ...lengths(` ${BODY.length}, ${BODY.length}`, ' -1', ` +${BODY.length}`, ` 0x${SIZE}`, ' 1e1'),
    ...lengths(' 18446744073709551617', ` ${'9'.repeat(40)}`, ' 9223372036854775807', ''),
    ...lengths(' 3 8', ` ${BODY.length}.0`, ` ${BODY.length};`),
    'a space before the colon of Content-Length': post(
      [`Content-Length : ${BODY.length}`],
      BODY + SMUGGLED,
    ),
  }),
  ...answered(200, {
    'the same Content-Length twice': post(
      [`Content-Length: ${BODY.length}`, `Content-Length: ${BODY.length}`],
      BODY,
    ),
    'a Content-Length with leading zeros': post([`Content-Length: 000${BODY.length}`], BODY),
    'Transfer-Encoding in capitals': chunked(CHUNKS, 'TRANSFER-ENCODING: CHUNKED'),
    'Transfer-Encoding between spaces and tabs': chunked(
      CHUNKS,
      'Transfer-Encoding: \t chunked \t',
    ),
    'an unknown expectation': post(['Expect: 200-maybe', `Content-Length: ${BODY.length}`], BODY),
    'a chunk for each byte': chunked(
      `${[...BODY].map((byte) => `1${CRLF}${byte}${CRLF}`).join('')}0${CRLF}${CRLF}`,
    ),
    'chunk extensions': chunked(`${SIZE};a=b;c="d"${CRLF}${BODY}${CRLF}0;last${CRLF}${CRLF}`),
  }),
  ...answered([400, 'Invalid JSON'], {
    'a Content-Length that includes the next request': post(
      [`Content-Length: ${BODY.length + SMUGGLED.length}`],
      BODY + SMUGGLED,
    ),
  }),
  ...answered([415, 'Unsupported content encoding'], {
    'a Content-Encoding of gzip for a body that is not gzip': post(
      ['Content-Encoding: gzip', `Content-Length: ${BODY.length - 1}`],
      BODY.slice(1),
    ),
  }),
]

export const CHUNKED: readonly HostileRequest[] = [
  ...refused(400, {
    ...sizes('zz', '-1', 'fffffffffffffffff', 'ffffffffffffffff', '7fffffffffffffff', `0x${SIZE}`),
    ...sizes(`${SIZE} `, ` ${SIZE}`, '', `${SIZE};a\nb`, `+${SIZE}`, `${SIZE}\r`),
    'chunks with bare LF line endings': chunked(`${SIZE}\n${BODY}\n0\n\n${SMUGGLED}`),
    'a chunk that is longer than its size': chunked(
      `${SIZE}${CRLF}${BODY}XX0${CRLF}${CRLF}${SMUGGLED}`,
    ),
    'trailer fields': chunked(
      `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}X-API-Key: y${CRLF}Content-Length: 5${CRLF}${CRLF}`,
    ),
  }),
  ...refused(413, {
    'a chunk extension of 100,000 characters': chunked(
      `${SIZE};${'a'.repeat(100_000)}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}`,
    ),
  }),
]
