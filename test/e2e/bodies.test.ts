import { expect, test } from 'bun:test'
import { longestUrls } from '../abuse/bodies.ts'
import { eventually, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { nameOf, outcome, WRITES } from '../support/endpoints.ts'
import { messageOf } from '../support/refusals.ts'

/** What the service takes as a JSON body, and how it refuses the rest. */

const KIB = 1024
const LIMIT = 64 * KIB
const BULK_LIMIT = 8 * KIB * KIB
const limitOf = (path: string) => (path === '/api/bulk-shorten' ? BULK_LIMIT : LIMIT)
const NOT_JSON = expect.stringMatching(/^Invalid JSON/)

/** A document, a creation's by default, padded with spaces to a length in bytes. */
function bodyOf(
  length: number,
  document = '{"url":"https://example.com/"}',
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length).fill(0x20)
  bytes.set(new TextEncoder().encode(document))
  return bytes
}

/** In chunks of undeclared total length. */
async function sendChunked(app: TestApp, bytes: Uint8Array, path = '/api/shorten', key = 'free') {
  const chunk = 16 * KIB
  let offset = 0
  const body = new ReadableStream({
    pull(controller) {
      if (offset >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(offset, offset + chunk))
      offset += chunk
    },
  })
  const headers = { 'content-type': JSON_TYPE, 'x-api-key': app.key(key) }
  const response = await fetch(app.url + path, { method: 'POST', headers, body })
  return { status: response.status, body: await response.json() }
}

async function expectNothingStored(app: TestApp) {
  expect(await app.call('GET', '/api/list', { key: 'free' })).toMatchObject({ body: { total: 0 } })
}

// spec: What the service does | Request and response bodies are JSON
// spec: Endpoints | Request bodies are JSON
// design: 4.16 content types
test('a body is JSON whatever the letter case and the parameters of its content type', async () => {
  await using app = await testApp()
  const types = [
    'application/json',
    'Application/JSON',
    'APPLICATION/JSON;CHARSET=UTF-8',
    'application/json; charset=utf-8',
    'application/json ; charset="utf-8"',
    'application/json;odd=parameter;other',
    'application/json;',
  ]
  for (const [index, type] of types.entries()) {
    const at = type
    const raw = JSON.stringify({ code: `TYPED${index}` })
    const headers = { 'content-type': type }
    const answer = await app.call('POST', '/api/reserve', { key: 'free', raw, headers })
    expect(outcome(at, answer)).toMatchObject({ at, status: 201, body: { code: `TYPED${index}` } })
    expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/)
  }
})

// design: 4.16 another content type is 415
test('415: a body of another content type or of none is not looked at, at every write', async () => {
  await using app = await testApp()
  const types = [
    undefined,
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json5',
    'application/ld+json',
    'application/json, text/plain',
    'x-application/json',
    'json',
    '*/*',
  ]
  const fields = { url: 'https://example.com/', code: 'TYPED1', urls: ['https://example.com/'] }
  const raw = new TextEncoder().encode(JSON.stringify(fields))
  for (const endpoint of WRITES) {
    for (const type of types) {
      const at = `${nameOf(endpoint)} with ${type}`
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
      const answer = await app.call('POST', endpoint.path, { key: 'free', raw, headers })
      const body = { error: expect.stringMatching(/^Unsupported media type/) }
      expect(outcome(at, answer)).toEqual({ at, status: 415, body })
    }
    app.advance(60_000)
  }
  await expectNothingStored(app)
})

// design: 4.16 what is not JSON is 400
test('400: what is not JSON, at every write', async () => {
  await using app = await testApp()
  const texts = {
    empty: '',
    'a space': ' ',
    'cut short': '{"url":"https://example.com/"',
    'single quotes': "{'url':'https://example.com/'}",
    'a comma too many': '{"url":"https://example.com/",}',
    'a comment': '{"url":"https://example.com/"} // no',
    'two documents': '{"url":"https://example.com/"}{}',
    'a form': 'url=https%3A%2F%2Fexample.com%2F',
    'not a number': '{"url":NaN}',
    undefined: 'undefined',
    'a raw newline in a string': '{"url":"https://example.com/\n"}',
    'sixty thousand open brackets': '['.repeat(60_000),
    'a literal cut short': 'nul',
    'a quote': '"',
    'a control character': '\u0000',
    'UTF-16': '\u0000{\u0000}',
  }
  for (const endpoint of WRITES) {
    for (const [name, raw] of Object.entries(texts)) {
      const at = `${nameOf(endpoint)}: ${name}`
      const headers = { 'content-type': JSON_TYPE }
      const answer = await app.call('POST', endpoint.path, { key: 'free', raw, headers })
      expect(outcome(at, answer)).toEqual({ at, status: 400, body: { error: NOT_JSON } })
    }
    app.advance(60_000)
  }
  await expectNothingStored(app)
})

test('400: JSON that is no object of known fields, at every write', async () => {
  await using app = await testApp({ env: UNLIMITED })
  const headers = { 'content-type': JSON_TYPE }
  const deep = 20_000
  for (const raw of [
    '{"__proto__":{"url":"https://example.com/"},"constructor":{}}',
    '{"url":1e999}',
    '{"url":"\\ud800"}',
    '[[[]]]',
    '-0',
    '\ufeff{}',
    '{"urls":{"length":1,"0":"https://example.com"}}',
    '{"code":{"toUpperCase":1}}',
    `${'['.repeat(deep)}${']'.repeat(deep)}`,
    `{"urls":${'['.repeat(deep)}${']'.repeat(deep)}}`,
  ]) {
    for (const endpoint of WRITES) {
      const at = `${nameOf(endpoint)}: ${raw.slice(0, 60)}`
      const answer = await app.call('POST', endpoint.path, { key: 'enterprise', raw, headers })
      const body = { error: expect.stringMatching(/^(Invalid|Missing|urls must)/) }
      expect(outcome(at, answer)).toEqual({ at, status: 400, body })
    }
  }
})

test('of two fields with the same name, the last one counts', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const raw = '{"url":"x","url":"https://example.com/2"}'
  const answer = await app.call('POST', '/api/shorten', { key: 'free', raw, headers })
  expect(answer).toMatchObject({ status: 201, body: { url: 'https://example.com/2' } })
})

// design: 4.16 bodies up to the limit of the endpoint
test('a body of exactly the limit of its endpoint is read, declared or in chunks', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const raw = bodyOf(LIMIT)
  expect(await app.call('POST', '/api/shorten', { key: 'free', raw, headers })).toMatchObject({
    status: 201,
    body: { url: 'https://example.com/' },
  })
  expect(await sendChunked(app, raw)).toMatchObject({ status: 200, body: { reused: true } })
  const bulk = bodyOf(BULK_LIMIT, '{"urls":["https://example.com/"]}')
  const answer = await app.call('POST', '/api/bulk-shorten', { key: 'free', raw: bulk, headers })
  expect(answer).toMatchObject({ status: 201, body: { count: 1 } })
  expect(await sendChunked(app, bulk, '/api/bulk-shorten')).toMatchObject({ status: 201 })
})

// design: 4.16 a larger body is 413
test('413 with the limit: a body of one byte more, declared or in chunks, at every write', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  for (const { path } of WRITES) {
    const raw = bodyOf(limitOf(path) + 1)
    const limit = limitOf(path) === LIMIT ? '64 KiB' : '8 MiB'
    const body = { error: `Request body too large: at most ${limit}` }
    const answer = await app.call('POST', path, { key: 'free', raw, headers })
    expect(outcome(path, answer)).toEqual({ at: path, status: 413, body })
    expect(await sendChunked(app, raw, path)).toEqual({ status: 413, body })
  }
  await expectNothingStored(app)
})

test('the limit of a batch is the same for every plan, and 1,000 of the longest URLs fit', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  for (const key of ['free', 'pro', 'enterprise']) {
    const raw = bodyOf(15 * KIB * KIB)
    const answer = await app.call('POST', '/api/bulk-shorten', { key, raw, headers })
    expect(outcome(key, answer)).toEqual({
      at: key,
      status: 413,
      body: { error: 'Request body too large: at most 8 MiB' },
    })
  }
  const urls = longestUrls(1000)
  const answer = await app.call('POST', '/api/bulk-shorten', { key: 'pro', json: { urls } })
  expect(answer).toMatchObject({ status: 201, body: { count: 1000 } })
  expect((answer.body.results as { url: string }[]).map(({ url }) => url)).toEqual(urls)
})

test('a URL may be sent with each character escaped', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  // As Python's json.dumps writes it.
  const escaped = `https://example.com/${'\\u4e2d'.repeat(900)}`
  const raw = `{"urls":[${Array(100).fill(`"${escaped}"`).join()}]}`
  const batch = await app.call('POST', '/api/bulk-shorten', { key: 'free', raw, headers })
  expect(batch).toMatchObject({ status: 201, body: { count: 100 } })
  const longest = `{"url":"https://example.com/${'\\u0061'.repeat(8172)}"}`
  const one = await app.call('POST', '/api/shorten', { key: 'free', raw: longest, headers })
  expect(one.status).toBe(201)
})

test('a large batch with an unknown field names it, and one with too many URLs its limit', async () => {
  await using app = await testApp()
  const urls = longestUrls(100)
  const bodies: [json: object, error: unknown][] = [
    [{ urls, extra: { list: [1, 2] } }, expect.stringContaining('extra')],
    [{ urls: [...urls, 'https://example.com/'] }, expect.stringMatching(/^urls must .* 100 /)],
    [
      { urls: Array(30_000).fill('https://example.com/') },
      expect.stringMatching(/^urls must .* 100 /),
    ],
  ]
  for (const [json, error] of bodies) {
    const answer = await app.call('POST', '/api/bulk-shorten', { key: 'free', json })
    expect({ status: answer.status, body: answer.body }).toEqual({ status: 400, body: { error } })
  }
  // Commas, brackets and quotation marks in a URL are no values.
  const odd = urls.map((url) => `${url.slice(0, 8000)}${',[{'.repeat(20)}\\"\\\\`)
  const raw = `{"urls":[${odd.map((url) => `"${url}"`).join()}]}`
  const headers = { 'content-type': JSON_TYPE }
  const answer = await app.call('POST', '/api/bulk-shorten', { key: 'free', raw, headers })
  expect(answer).toMatchObject({ status: 201, body: { count: 100 } })
})

test('400: a body that is not UTF-8 is not stored with other characters in its place', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const [start, end] = [Buffer.from('{"url":"https://a.example/'), Buffer.from('"}')]
  const bodies = [
    [0xff, 0xfe],
    [0xc0, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xe4, 0xb8],
    [0xf4, 0x90, 0x80, 0x80],
  ]
  for (const { path } of WRITES) {
    for (const bytes of bodies) {
      const raw = new Uint8Array(Buffer.concat([start, Buffer.from(bytes), end]))
      const answer = await app.call('POST', path, { key: 'pro', raw, headers })
      const body = { error: messageOf('invalid_utf8') }
      expect(outcome(path, answer)).toEqual({ at: path, status: 400, body })
    }
  }
  await expectNothingStored(app)
})

test('a byte order mark before the document is not part of it', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const shorten = { key: 'free', raw: '\ufeff{"url":"https://a.example/"}', headers }
  expect(await app.call('POST', '/api/shorten', shorten)).toMatchObject({ status: 201 })
  const bulk = { key: 'free', raw: '\ufeff{"urls":["https://a.example/"]}', headers }
  expect(await app.call('POST', '/api/bulk-shorten', bulk)).toMatchObject({ status: 201 })
})

test('415: a compressed body, and one in another charset than UTF-8, are not misread', async () => {
  await using app = await testApp()
  const raw = JSON.stringify({ url: 'https://example.com/' })
  const refused: [Record<string, string>, RegExp][] = [
    [{ 'content-encoding': 'gzip' }, /^Unsupported content encoding/],
    [{ 'content-encoding': 'identity, br' }, /^Unsupported content encoding/],
    [{ 'content-type': 'application/json; charset=utf-16' }, /^Unsupported charset/],
    [{ 'content-type': 'application/json;a=b; Charset = "latin1"' }, /^Unsupported charset/],
  ]
  for (const { path } of WRITES) {
    for (const [more, error] of refused) {
      const headers = { 'content-type': JSON_TYPE, ...more }
      const answer = await app.call('POST', path, { key: 'pro', raw, headers })
      const body = { error: expect.stringMatching(error) }
      expect(outcome(JSON.stringify(more), answer)).toMatchObject({ status: 415, body })
    }
  }
  for (const more of [
    { 'content-encoding': 'Identity' },
    { 'content-type': 'application/json; charset=UTF8' },
  ]) {
    const headers = { 'content-type': JSON_TYPE, ...more }
    const answer = await app.call('POST', '/api/shorten', { key: 'free', raw, headers })
    expect(answer.status).toBeOneOf([200, 201])
  }
})

test('a body that is cut off is the sender’s doing: no failure in the log, and nothing is stored', async () => {
  await using app = await testApp({ env: { LOG_REQUESTS: 'api' } })
  const json = JSON.stringify({ url: 'https://example.com/cut-off' })
  const head = ['POST /api/shorten HTTP/1.1', 'Host: hop.test', `X-API-Key: ${app.key('free')}`]
  const types = [`Content-Length: ${json.length + 1}`, 'Transfer-Encoding: chunked']
  for (const type of types) {
    using sender = await Conversation.open(app.url)
    const chunk = type.startsWith('T') ? `${json.length.toString(16)}\r\n` : ''
    sender.send([...head, `Content-Type: ${JSON_TYPE}`, type, '', chunk + json].join('\r\n'))
    // A whole request on another connection: the first one has been let in by then.
    await app.call('GET', '/-/live')
  }
  const refused = () => app.log.filter((line) => line.includes('"status":400')).length
  await eventually('both are refused', () => refused() === 2)
  expect(app.log.join('\n')).not.toContain('request.failed')
  await expectNothingStored(app)
})
