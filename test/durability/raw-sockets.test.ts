import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeAccount, Service, unlimited } from '../support/binary.ts'
import { Conversation } from '../support/conversation.ts'
import { temporaryFolder } from '../support/folder.ts'
import {
  AMBIGUOUS,
  ANSWERED,
  BODY,
  get,
  LIVE,
  REDIRECT,
  REFUSED,
} from '../support/hostile-requests.ts'

/**
 * What the compiled program makes of bytes that no well-behaved client sends, and of connections
 * that are slow, idle, cut short or full. None may crash it, hold others up, or bring one client's
 * answer to another.
 */

const KIB = 1024
const MIB = 1024 * KIB
/** The destination of HOPCODE1. */
const LANDING = 'https://example.com/landing'

const folder = temporaryFolder()
let service: Service
let key: string

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

function post(headers: readonly string[], body: string, apiKey = key): string {
  const lines = ['POST /api/shorten HTTP/1.1', 'Host: hop.test', `X-API-Key: ${apiKey}`]
  return [...lines, 'Content-Type: application/json', ...headers, '', body].join('\r\n')
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
