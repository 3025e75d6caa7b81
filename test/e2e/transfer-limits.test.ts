import { expect, spyOn, test } from 'bun:test'
import {
  csvForm,
  hostileJson,
  JSON_KINDS,
  type JsonKind,
  MULTIPART_TYPE,
  manyFieldsForm,
  manyPartsForm,
  oneCharacterCsv,
} from '../abuse/bodies.ts'
import { eventually, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { Conversation, rawRequest } from '../support/conversation.ts'
import type { Visitor } from '../support/dashboard.ts'
import { makeMember } from '../support/members.ts'

/** Bytes in memory: what requests bring, and what waits to be read. */

const KIB = 1024
const MIB = 1024 * KIB
/** What differs between HEAD and a GET whose response comes in chunks. */
const FRAMING = ['content-length', 'transfer-encoding']
const BULK_LIMIT = 8 * MIB
const BULK = '/app/links/bulk'

const bodyBytes = async (app: TestApp): Promise<number> => {
  const text = await (await fetch(`${app.operatorsUrl}/-/metrics`)).text()
  return Number(/^hopcode_request_body_bytes (\d+)/m.exec(text)?.[1])
}

/** Sends a form of any type and content, with the cookies of somebody who is signed in. */
async function sendForm(
  app: TestApp,
  visitor: Visitor,
  { path = BULK, type, body }: { path?: string; type: string; body: string },
) {
  const headers = {
    cookie: visitor.cookie,
    'sec-fetch-site': 'same-origin',
    'content-type': type,
  }
  const answer = await fetch(app.url + path, { method: 'POST', headers, body })
  return { status: answer.status, text: await answer.text() }
}

/** What is few values however long it is, and cheap to parse. */
const FEW_VALUES: readonly JsonKind[] = ['one string', 'escapes', 'spaces']

test.each(JSON_KINDS)(
  'a hostile body of %s is refused at every write, by its length or by the number of its values',
  async (kind) => {
    await using app = await testApp()
    const headers = { 'content-type': JSON_TYPE }
    const raw = hostileJson(kind, BULK_LIMIT)
    app.key('free')
    using parse = spyOn(JSON, 'parse')
    for (const path of ['/api/shorten', '/api/reserve', '/api/update', '/api/delete']) {
      const answer = await app.call('POST', path, { key: 'free', raw, headers })
      expect({ path, status: answer.status }).toEqual({ path, status: 413 })
    }
    const answer = await app.call('POST', '/api/bulk-shorten', { key: 'free', raw, headers })
    expect(answer.status).toBe(400)
    const longest = Math.max(...parse.mock.calls.map(([text]) => String(text).length))
    // Each answer is read by this test.
    if (!FEW_VALUES.includes(kind)) expect(longest).toBeLessThan(64 * KIB)
  },
)

test('stalled bodies refuse nobody: the oldest of the largest holder gets 503 with Retry-After', async () => {
  await using app = await testApp({ env: { METRICS_LISTEN: '127.0.0.1:0' } })
  const stalled: Conversation[] = []
  const bytes = BULK_LIMIT - 1
  // 46 MiB in all: the larger part is of one account.
  for (const key of ['enterprise', 'enterprise', 'enterprise', 'enterprise', 'pro', 'pro']) {
    const sender = await Conversation.open(app.url)
    const head = [
      'POST /api/bulk-shorten HTTP/1.1',
      'Host: hop.test',
      `X-API-Key: ${app.key(key)}`,
      `Content-Type: ${JSON_TYPE}`,
      `Content-Length: ${BULK_LIMIT}`,
    ]
    sender.send(`${head.join('\r\n')}\r\n\r\n`)
    sender.send(Buffer.alloc(bytes, ' '))
    stalled.push(sender)
    const counted = stalled.length * (bytes - 64 * KIB)
    await eventually('its bytes are counted', async () => (await bodyBytes(app)) === counted)
  }
  const raw = ' '.repeat(BULK_LIMIT)
  const headers = { 'content-type': JSON_TYPE }
  const call = (key: string) => app.call('POST', '/api/bulk-shorten', { key, raw, headers })
  expect((await call('free')).status).toBe(400)
  const [refused] = (await stalled[0]?.answers(1)) ?? []
  expect(refused).toMatchObject({ status: 503, text: expect.stringMatching(/Too much/) })
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  await eventually(
    'the others go on',
    async () => (await bodyBytes(app)) === 5 * (bytes - 64 * KIB),
  )
  for (const sender of stalled) sender[Symbol.dispose]()
  await eventually('the bytes are given back', async () => (await bodyBytes(app)) === 0)
  expect((await call('enterprise')).status).toBe(400)
})

test('bodies of every ending give their bytes back', async () => {
  await using app = await testApp({ env: { METRICS_LISTEN: '127.0.0.1:0' } })
  const headers = { 'content-type': JSON_TYPE }
  const json = { urls: ['https://example.com/'] }
  const raws = ['{', JSON.stringify({ urls: [1] }), ' '.repeat(BULK_LIMIT), ' '.repeat(100 * KIB)]
  expect((await app.call('POST', '/api/bulk-shorten', { key: 'free', json })).status).toBe(201)
  for (const raw of [...raws, new Uint8Array([0xff])]) {
    expect(
      (await app.call('POST', '/api/bulk-shorten', { key: 'free', raw, headers })).status,
    ).toBe(400)
  }
  const member = await makeMember(app, 'free@example.com')
  for (const type of [MULTIPART_TYPE, 'application/x-www-form-urlencoded', 'text/plain']) {
    await sendForm(app, member, { type, body: 'csrf=x' })
  }
  expect(await bodyBytes(app)).toBe(0)
})

test('a CSV file of one letter a line is refused: over the limit with 413, below it with 422', async () => {
  await using app = await testApp()
  for (const [plan, bytes, status, says] of [
    ['free', BULK_LIMIT, 413, 'at most 8 MiB'],
    ['free', BULK_LIMIT - KIB, 422, 'more than 100 URLs'],
    ['enterprise', BULK_LIMIT - KIB, 422, 'more than 5,000 URLs'],
  ] as const) {
    const member = await makeMember(app, `${plan}@example.com`)
    const { csrf } = await member.get(BULK)
    const body = csvForm(csrf, oneCharacterCsv(bytes))
    const seen = await sendForm(app, member, { type: MULTIPART_TYPE, body })
    expect({ plan, bytes, status: seen.status }).toEqual({ plan, bytes, status })
    expect(seen.text).toContain(says)
    expect(seen.text.length).toBeLessThan(64 * KIB)
  }
})

const manyFields = [
  { type: 'application/x-www-form-urlencoded', body: manyFieldsForm(60 * KIB) },
  { type: MULTIPART_TYPE, body: manyPartsForm(60 * KIB) },
]
test.each(manyFields)('a form of very many fields is refused unparsed: $type', async (form) => {
  await using app = await testApp()
  const member = await makeMember(app, 'free@example.com')
  using urlencoded = spyOn(URLSearchParams.prototype, 'getAll')
  for (const path of ['/app/links', BULK]) {
    const { status, text } = await sendForm(app, member, { ...form, path })
    expect({ path, status }).toEqual({ path, status: 400 })
    expect(text).toContain('too many fields')
  }
  expect(urlencoded).not.toHaveBeenCalled()
})

test('a form over 64 KiB is accepted by the page for batches alone', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'free@example.com')
  const body = csvForm('wrong', 'x'.repeat(64 * KIB))
  for (const path of [
    '/app/links',
    '/app/keys/new',
    '/app/account/security/password',
    '/app/sign-out',
  ]) {
    const { status } = await sendForm(app, member, { path, type: MULTIPART_TYPE, body })
    expect({ path, status }).toEqual({ path, status: 413 })
  }
  expect((await sendForm(app, member, { type: MULTIPART_TYPE, body })).status).toBe(403)
})

test('a large form is charged before it is read: with no budget left it is not waited for', async () => {
  await using app = await testApp()
  const member = await makeMember(app, 'free@example.com')
  const head = (cookie: string) => [
    `POST ${BULK} HTTP/1.1`,
    'Sec-Fetch-Site: same-origin',
    `Cookie: ${cookie}`,
    `Content-Type: ${MULTIPART_TYPE}`,
    `Content-Length: ${MIB}`,
  ]
  const left = async () => {
    const { headers } = await app.call('POST', '/api/reserve', { key: 'free', json: {} })
    return Number(headers.get('x-ratelimit-remaining'))
  }
  const before = await left()
  const body = csvForm('wrong', oneCharacterCsv(100 * KIB))
  expect((await sendForm(app, member, { type: MULTIPART_TYPE, body })).status).toBe(403)
  const after = await left()
  expect(before - after).toBe(2)
  for (let n = after; n > 0; n--) await left()
  const { status, headers } = await rawRequest(app.url, head(member.cookie))
  expect(status).toBe(429)
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
})

test('a long list is whole, and HEAD has its headers', async () => {
  await using app = await testApp()
  for (const part of [0, 1]) {
    const urls = Array.from({ length: 100 }, (_, n) =>
      `https://a.example/${part}/${n}/`.padEnd(8000, 'a'),
    )
    const { status } = await app.call('POST', '/api/bulk-shorten', { key: 'free', json: { urls } })
    expect(status).toBe(201)
  }
  for (const limit of [200, 1]) {
    const path = `/api/list?limit=${limit}`
    const { status, headers, body, text } = await app.call('GET', path, { key: 'free' })
    expect({ status, total: body.total, count: body.count }).toEqual({
      status: 200,
      total: 200,
      count: limit,
    })
    const head = await app.call('HEAD', path, { key: 'free' })
    // The long list comes in chunks, without its length.
    const names = [...headers.keys()].filter((name) => !FRAMING.includes(name))
    const others = [...head.headers.keys()].filter((name) => !FRAMING.includes(name))
    expect(others.sort()).toEqual(names.sort())
    expect(Number(head.headers.get('content-length'))).toBe(Buffer.byteLength(text))
    expect(headers.get('x-ratelimit-limit')).toBe('300')
  }
})
