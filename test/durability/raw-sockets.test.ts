import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'

/**
 * What the compiled program makes of bytes that no well-behaved client sends, and of connections
 * that are slow, idle, cut short or full. None may crash it, hold others up, or bring one client's
 * answer to another.
 */

/**
 * Malformed, ambiguous and oversized requests as bytes (latin1), with what must come back. The code
 * HOPCODE1 leads to `LANDING`, and the account of `{key}` has a code for the URL of `BODY`.
 */

const CRLF = '\r\n'
let key: string
const HOST = 'Host: hop.test'
const BODY = JSON.stringify({ url: 'https://example.com/known' })
const SIZE = BODY.length.toString(16)
const LIVE = '"status":"live"'

const lines = (...all: string[]) => [...all, '', ''].join(CRLF)
const get = (path: string, ...headers: string[]) => lines(`GET ${path} HTTP/1.1`, HOST, ...headers)
/** What an attacker would have answered on somebody else's behalf. */
const SMUGGLED = get('/-/live')
const REDIRECT = get('/HOPCODE1')
const utf8 = (text: string) => Buffer.from(text).toString('latin1')

const post = (headers: readonly string[], body: string, apiKey = key) =>
  lines(
    'POST /api/shorten HTTP/1.1',
    HOST,
    `X-API-Key: ${apiKey}`,
    'Content-Type: application/json',
    ...headers,
  ) + body
/** For the tables: the key is known later. */
const template = (headers: readonly string[], body: string) => post(headers, body, '{key}')
const chunked = (body: string, coding = 'Transfer-Encoding: chunked') => template([coding], body)
const CHUNKS = `${SIZE}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}`

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: y`)

/** Answered with one error at most; the connection ends, and nothing behind it is answered. */
const REFUSED: Record<string, string> = {
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
  'a request while a change is in progress': template(
    [`Content-Length: ${BODY.length}`],
    BODY + REDIRECT,
  ),
}

const codings = (...values: string[]) =>
  values.map((value) => chunked(CHUNKS + SMUGGLED, `Transfer-Encoding:${value}`))
const lengths = (...headers: string[]) => template(headers, BODY + SMUGGLED)
const length = (...values: string[]) => values.map((value) => lengths(`Content-Length:${value}`))
const sizes = (...values: string[]) =>
  values.map((value) => chunked(`${value}${CRLF}${BODY}${CRLF}0${CRLF}${CRLF}${SMUGGLED}`))
const { length: BYTES } = BODY
const LAST = `0${CRLF}${CRLF}`

/** Two servers could disagree on where these end: refused like those above. */
const AMBIGUOUS: Record<string, readonly string[]> = {
  'a length and a coding': [
    template(['Content-Length: 5', 'Transfer-Encoding: chunked'], LAST + SMUGGLED),
    template(['Transfer-Encoding: chunked', 'Content-Length: 5'], LAST + SMUGGLED),
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
const WITH_LENGTH = template([`Content-Length: ${BYTES}`], BODY)

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
  answered('two API keys', template(['X-API-Key: hop_other', `Content-Length: ${BYTES}`], BODY), [
    401,
    'Invalid or missing API key',
  ]),
  answered('one length twice', template(Array(2).fill(`Content-Length: ${BYTES}`), BODY), 200),
  answered('a length with zeros in front', template([`Content-Length: 000${BYTES}`], BODY), 200),
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
    template([`Content-Length: ${BYTES + SMUGGLED.length}`], BODY + SMUGGLED),
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
    template(['Expect: 100-continue', `Content-Length: ${BYTES}`], BODY),
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
      template([`Content-Length: ${BYTES - 3}`], BODY),
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

const ANSWERED: readonly HostileRequest[] = [...ONE, ...SEVERAL]

const KIB = 1024
const MIB = 1024 * KIB
/** The destination of HOPCODE1. */
const LANDING = 'https://example.com/landing'

const folder = temporaryFolder()
let service: Service

beforeAll(async () => {
  const env = { ...unlimited(folder.path), BASE_URL: 'http://hop.test' }
  key = await makeAccount(env)
  service = await Service.start(env)
  const reserved = await service.post('/api/reserve', key, { code: 'HOPCODE1' })
  const { passcode } = (await reserved.json()) as { passcode: string }
  await service.post('/api/update', key, { code: 'HOPCODE1', passcode, url: LANDING })
  await service.shorten(key, JSON.parse(BODY).url)
})

afterAll(async () => {
  await service[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const open = (bodiless: readonly number[] = []) => Conversation.open(service.url, bodiless)
const withKey = (bytes: string) => Buffer.from(bytes.replaceAll('{key}', key), 'latin1')

/** Somebody else is served, with an answer of their own. */
async function othersAreServed(): Promise<void> {
  const response = await service.fetch('/HOPCODE1')
  expect([response.status, response.headers.get('location')]).toEqual([302, LANDING])
  expect(response.headers.get('x-service-code')).toBe('HOPCODE1')
  expect((await service.fetch('/api/status')).status).toBe(200)
  expect((await service.post('/api/shorten', key, JSON.parse(BODY))).status).toBe(200)
}

/** What must stand in no answer, whatever was asked. */
function isNobodyElses(headers: Headers, text: string): void {
  expect(headers.has('x-injected')).toBe(false)
  expect(text).not.toContain(key)
  if (headers.has('location')) expect(headers.get('location')).toBe(LANDING)
}

test.each(ANSWERED)('$name', async ({ bytes, answers, connection, bodiless = [] }) => {
  using client = await open(bodiless)
  client.send(withKey(bytes))
  const wanted = answers.map((answer) => (typeof answer === 'number' ? answer : answer[0]))
  if (connection === 'closed') await client.closed()
  else {
    await client.answers(wanted.length)
    // Were a smuggled request answered, it would be before this one.
    client.send(get('/-/live'))
    if (connection === 'open') wanted.push(200)
  }
  const told = await client.answers(wanted.length)
  expect(told.map(({ status }) => status)).toEqual(wanted)
  if (connection === 'open') expect(told.at(-1)?.text).toContain(LIVE)
  for (const [i, { headers, text }] of told.entries()) {
    isNobodyElses(headers, text)
    const answer = answers[i]
    if (typeof answer === 'object') expect(text).toContain(answer[1])
  }
  await othersAreServed()
  if (connection === 'deaf') expect(await client.answers(0)).toHaveLength(wanted.length)
})

async function expectRefused(bytes: string): Promise<void> {
  using client = await open()
  client.send(withKey(bytes))
  const { answers } = await client.closed()
  expect([bytes.slice(0, 1000), answers.length > 1]).toEqual([bytes.slice(0, 1000), false])
  for (const { status, text } of answers) {
    expect([status >= 400 && status < 600, text]).toEqual([true, ''])
  }
  await othersAreServed()
}

test.each(Object.entries(REFUSED))('%s ends the connection', (_, bytes) => expectRefused(bytes))

test.each(Object.entries(AMBIGUOUS))('%s: no smuggled request is answered', async (_, rows) => {
  for (const bytes of rows) await expectRefused(bytes)
})

/** Several connections. After the block, the service has closed all of them. */
async function openMany(count: number): Promise<AsyncDisposable & { all: Conversation[] }> {
  const all = await Promise.all(Array.from({ length: count }, () => Conversation.open(service.url)))
  return {
    all,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(all.map((client) => client.end()))
    },
  }
}

const declared = (length: number) => [`Content-Length: ${length}`]
const CHUNKED = ['Transfer-Encoding: chunked']

test('100 pipelined redirects are answered in order, and each counts once', async () => {
  const before = await service.hitCount('HOPCODE1')
  using client = await Conversation.open(service.url)
  const numbers = Array.from({ length: 100 }, (_, i) => String(i).padStart(3, '0'))
  const asked = numbers.map((n) => REDIRECT + REDIRECT.replace('HOPCODE1', `NOCODE${n}`))
  client.send(asked.join(''))
  const told = await client.answers(200)
  const shown = told.map(({ headers, text }) => headers.get('location') ?? JSON.parse(text).error)
  expect(shown).toEqual(numbers.flatMap((n) => [LANDING, `Code not found: NOCODE${n}`]))
  expect(await service.hitCount('HOPCODE1')).toBe(before + 100)
})

test('a redirect that comes byte by byte counts once', async () => {
  const before = await service.hitCount('HOPCODE1')
  using client = await Conversation.open(service.url)
  for (const byte of REDIRECT) {
    client.send(byte)
    // Once around the loop: each byte is with the kernel before the next.
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect((await client.answers(1)).map(({ status }) => status)).toEqual([302])
  expect(await service.hitCount('HOPCODE1')).toBe(before + 1)
})

test.each([
  { what: 'the head of a redirect', bytes: () => REDIRECT, cut: 20, status: 302 },
  { what: 'a body of declared length', bytes: () => post(declared(BODY.length), BODY), cut: -5 },
  {
    what: 'a body in chunks',
    bytes: () => post(CHUNKED, `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`),
    cut: -20,
  },
])('100 clients that send half of $what hold nobody up', async ({ bytes, cut, status = 200 }) => {
  await using slow = await openMany(100)
  for (const client of slow.all) client.send(bytes().slice(0, cut))
  for (let i = 0; i < 20; i++) await othersAreServed()
  for (const client of slow.all) expect(await client.answers(0)).toEqual([])
  for (const client of slow.all) client.send(bytes().slice(cut))
  for (const client of slow.all) {
    expect((await client.answers(1)).map((answer) => answer.status)).toEqual([status])
  }
})

test('100 clients that leave in the middle of a body leave nothing behind', async () => {
  const list = () => service.fetch('/api/list', { headers: { 'x-api-key': key } })
  const { total } = (await (await list()).json()) as { total: number }
  {
    await using leaving = await openMany(100)
    for (const [i, client] of leaving.all.entries()) {
      const body = JSON.stringify({ url: `https://example.com/left/${i}` })
      const size = body.length.toString(16)
      client.send(
        i % 2 === 0
          ? post(declared(body.length + 1), body)
          : post(CHUNKED, `${size}\r\n${body}\r\n`),
      )
    }
    await othersAreServed()
  }
  await othersAreServed()
  expect(await (await list()).json()).toMatchObject({ total })
})

test('500 idle connections hold up no redirect, and each can still be used', async () => {
  await using idle = await openMany(500)
  for (const client of idle.all.slice(0, 250)) {
    client.send(REDIRECT)
    await client.answers(1)
  }
  for (let i = 0; i < 200; i++) {
    expect((await service.fetch('/HOPCODE1')).status).toBe(302)
  }
  for (const [i, client] of idle.all.entries()) {
    client.send(REDIRECT)
    const told = await client.answers(i < 250 ? 2 : 1)
    expect(told.at(-1)?.status).toBe(302)
  }
})

test('a connection is used again after every refusal', async () => {
  using client = await Conversation.open(service.url)
  const json = (path: string, body: unknown, apiKey = key) => {
    const text = JSON.stringify(body)
    return post(declared(text.length), text, apiKey).replace('/api/shorten', path)
  }
  const refusals = [
    [404, REDIRECT.replace('HOPCODE1', 'NOCODE000')],
    [404, REDIRECT.replace('/HOPCODE1', '/no/where')],
    [405, REDIRECT.replace('GET', 'DELETE')],
    [401, json('/api/shorten', {}, 'no-key')],
    [400, json('/api/shorten', {})],
    [400, post(declared(1), '{')],
    [415, json('/api/shorten', {}).replace('application/json', 'text/plain')],
    [403, json('/api/delete', { code: 'HOPCODE1', passcode: 'A'.repeat(24) })],
    [409, json('/api/reserve', { code: 'hopcode1' })],
    [422, json('/api/shorten', { url: 'http://hop.test/loop' })],
  ] as const
  for (const [i, [status, bytes]] of refusals.entries()) {
    client.send(bytes)
    expect((await client.answers(2 * i + 1)).at(-1)?.status).toBe(status)
    client.send(REDIRECT)
    expect((await client.answers(2 * i + 2)).at(-1)?.status).toBe(302)
  }
})

test('a refusal before the body has come does not spoil the connection', async () => {
  for (const [status, head] of [
    [401, post(declared(BODY.length), '', 'no-key')],
    [415, post(declared(BODY.length), '').replace('application/json', 'text/plain')],
    [404, post(declared(BODY.length), '').replace('/api/shorten', '/no/where')],
    [302, REDIRECT.replace('\r\n\r\n', `\r\n${declared(BODY.length)[0]}\r\n\r\n`)],
  ] as const) {
    using client = await Conversation.open(service.url)
    client.send(head)
    expect((await client.answers(1)).map((answer) => answer.status)).toEqual([status])
    client.send(BODY + REDIRECT)
    expect((await client.answers(2)).map((answer) => answer.status)).toEqual([status, 302])
  }
})

test('a body over 64 KiB is refused, whether it is declared, sent or neither', async () => {
  const part = `${MIB.toString(16)}\r\n${'a'.repeat(MIB)}\r\n`
  const cases = [
    { send: [post(declared(17 * MIB), '')], rest: 'a'.repeat(17 * MIB) },
    { send: [post(declared(17 * MIB), 'a'.repeat(17 * MIB))], rest: '' },
    { send: [post(CHUNKED, ''), ...Array<string>(17).fill(part)], rest: '0\r\n\r\n' },
    { send: [post(CHUNKED, ''), ...Array<string>(40).fill(part)], rest: '0\r\n\r\n' },
  ]
  for (const { send, rest } of cases) {
    using client = await Conversation.open(service.url)
    for (const bytes of send) client.send(bytes)
    const [answer] = await client.answers(1)
    expect(answer).toMatchObject({ status: 413, text: expect.stringContaining('64 KiB') })
    client.send(rest + REDIRECT)
    expect((await client.answers(2)).map(({ status }) => status)).toEqual([413, 302])
    await othersAreServed()
  }
  using client = await Conversation.open(service.url)
  client.send(post(declared(64 * KIB), 'a'.repeat(64 * KIB)))
  expect((await client.answers(1))[0]?.text).toContain('Invalid JSON')
})

test('a chunk that is none, in the middle of a body, ends that connection alone', async () => {
  using client = await Conversation.open(service.url)
  client.send(post(['Expect: 100-continue', ...CHUNKED], ''))
  // Only once it has asked for the body does the rest come.
  await client.answers(1)
  client.send(`5\r\n{"url\r\nzz\r\n`)
  const { answers } = await client.closed()
  expect(answers.map(({ status }) => status)).toEqual([100, 400])
  await othersAreServed()
})

test('no line break gets into a header through a stored URL', async () => {
  const bad = ['\r\nX-Injected: 1', '\nX-Injected: 1', '\r', '\u0085', '\u2028', '\0']
  for (const text of bad) {
    const url = `https://example.com/${text}`
    expect((await service.post('/api/shorten', key, { url })).status).toBe(400)
    expect((await service.post('/api/bulk-shorten', key, { urls: [url] })).status).toBe(400)
  }
  for (const text of ['%0d%0aX-Injected:%201', 'ä\u010a\u010d', '嘊嘍X-Injected']) {
    const code = await service.shorten(key, `https://example.com/${text}`)
    const { headers } = await service.fetch(`/${code}`)
    expect(headers.has('x-injected')).toBe(false)
    expect(headers.get('location')).toBe(new URL(`https://example.com/${text}`).href)
  }
})

test('whatever host a request names, addresses in answers are BASE_URL’s', async () => {
  const bytes = post(declared(BODY.length), BODY)
    .replace('/api/shorten', 'http://evil.example/api/shorten')
    .replace('Host: hop.test', 'Host: evil.example\r\nHost: evil.example')
    .replace(
      'X-API-Key',
      'X-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\nX-API-Key',
    )
  using client = await Conversation.open(service.url)
  client.send(bytes)
  const [answer] = await client.answers(1)
  const { short_url, qr_url } = JSON.parse(answer?.text ?? '')
  expect([new URL(short_url).origin, new URL(qr_url).origin]).toEqual(
    Array(2).fill('http://hop.test'),
  )
  for (const path of ['/qr/HOPCODE1', '/docs/json', '/app', '/api/qr-image/HOPCODE1', '/docs']) {
    const response = await service.fetch(path, {
      headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
    })
    const shown = `${JSON.stringify([...response.headers])}${await response.text()}`
    expect(shown).not.toContain('evil.example')
  }
})

test('after all that, it stops as it should', async () => {
  expect(await service.end('SIGTERM')).toBe(0)
})
