import { expect, test } from 'bun:test'
import { eventually, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { Conversation } from '../support/conversation.ts'
import { nameOf, WRITES } from '../support/endpoints.ts'
import { outcome } from '../support/outcome.ts'
import { rawRequest } from '../support/raw-http.ts'

/** What the service takes as a JSON body, and how it refuses the rest. */

const MIB = 1024 * 1024
const LIMIT = 16 * MIB
const NOT_JSON = expect.stringMatching(/^Invalid JSON/)

/** A creation's body, padded with spaces to a length in bytes. */
function bodyOf(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length).fill(0x20)
  bytes.set(new TextEncoder().encode('{"url":"https://example.com/"}'))
  return bytes
}

/** In chunks of undeclared total length. */
async function sendChunked(app: TestApp, bytes: Uint8Array, path = '/api/shorten', key = 'free') {
  const chunk = 256 * 1024
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
    'a hundred thousand open brackets': '['.repeat(100_000),
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

test('unknown fields are ignored, and a field called __proto__ is one of them', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const raw = '{"__proto__":{"url":"https://example.com/"},"constructor":{}}'
  expect(await app.call('POST', '/api/shorten', { key: 'free', raw, headers })).toMatchObject({
    status: 400,
    body: { error: 'Invalid URL: must start with http:// or https://' },
  })
  const json = { url: 'https://example.com/', code: 'MYOWNCODE', passcode: 'A'.repeat(24), id: 1 }
  const { status, body } = await app.call('POST', '/api/shorten', { key: 'free', json })
  expect(status).toBe(201)
  expect(body.code).not.toBe(json.code)
  expect(body.passcode).not.toBe(json.passcode)
})

// design: 4.16 bodies of at most 16 MiB
test('a body of exactly 16 MiB is read, declared or in chunks', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const raw = bodyOf(LIMIT)
  expect(await app.call('POST', '/api/shorten', { key: 'free', raw, headers })).toMatchObject({
    status: 201,
    body: { url: 'https://example.com/' },
  })
  expect(await sendChunked(app, raw)).toMatchObject({ status: 200, body: { reused: true } })
})

// design: 4.16 a larger body is 413
test('413: a body of one byte more than 16 MiB, declared or in chunks, at every write', async () => {
  await using app = await testApp()
  const headers = { 'content-type': JSON_TYPE }
  const raw = bodyOf(LIMIT + 1)
  for (const { path } of WRITES) {
    const body = { error: expect.stringMatching(/^Request body too large/) }
    const answer = await app.call('POST', path, { key: 'free', raw, headers })
    expect(outcome(path, answer)).toEqual({ at: path, status: 413, body })
    expect(await sendChunked(app, raw, path)).toEqual({ status: 413, body })
  }
  await expectNothingStored(app)
})

test('413 in JSON: a body that is declared far larger is not waited for', async () => {
  await using app = await testApp()
  for (const bytes of [LIMIT + 1, 2 * LIMIT, 2 * LIMIT + 1, 1024 * MIB]) {
    const { status, text, headers } = await rawRequest(app.url, [
      'POST /api/shorten HTTP/1.1',
      `X-API-Key: ${app.key('free')}`,
      `Content-Type: ${JSON_TYPE}`,
      `Content-Length: ${bytes}`,
    ])
    expect({ bytes, status, type: headers.get('content-type') }).toEqual({
      bytes,
      status: 413,
      type: expect.stringMatching(/^application\/json\b/),
    })
    expect(Object.keys(JSON.parse(text))).toEqual(['error'])
  }
})

test('a caller without a key learns nothing from a body: it is 401 whatever was sent', async () => {
  await using app = await testApp()
  const raws = ['', '{', 'url=x', bodyOf(LIMIT + 1)]
  for (const { path } of WRITES) {
    for (const raw of raws) {
      for (const type of [JSON_TYPE, 'text/plain']) {
        const answer = await app.call('POST', path, { raw, headers: { 'content-type': type } })
        const body = { error: 'Invalid or missing API key' }
        expect(outcome(path, answer)).toEqual({ at: path, status: 401, body })
      }
    }
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
