import { expect, test } from 'bun:test'
import { type Answer, START, type TestApp, testApp } from '../support/app.ts'
import { rawRequest } from '../support/conversation.ts'

/** The spec's chapter "GET /{code}". What it says of hits is in hits.test.ts. */

const DESTINATION = 'https://example.com/landing?a=b#c'

async function hitsOf(app: TestApp, code: string): Promise<unknown> {
  return (await app.call('GET', `/api/lookup/${code}`)).body.hit_count
}

async function total(app: TestApp): Promise<unknown> {
  return (await app.call('GET', '/api/status')).body.total_redirects
}

function expectRefused(answer: Answer, status: number, error: string): void {
  expect(answer.body).toEqual({ error })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('location')).toBeNull()
  expect(answer.headers.get('x-service-code')).toBeNull()
}

// spec: What the service does | Anyone who visits the short URL
// spec: Endpoints | GET /{code}
// spec: GET /{code} | Response 302
// spec: States and transitions | active GET /{code}
// spec: Authentication | 2
test('GET /{code} answers anyone 302 with Location, Cache-Control: no-store and X-Service-Code', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten(DESTINATION)
  const answer = await app.call('GET', `/${code}`)
  expect(answer.status).toBe(302)
  expect(answer.bytes.length).toBe(0)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    location: DESTINATION,
    'cache-control': 'no-store',
    'x-service-code': code,
    'x-ratelimit-limit': '6000',
    'x-ratelimit-remaining': '5999',
    'x-ratelimit-reset': String(START / 1000 + 60),
  })
  for (const name of ['set-cookie', 'content-type', 'retry-after', 'expires', 'etag']) {
    expect(answer.headers.get(name)).toBeNull()
  }
  expect(JSON.stringify([...answer.headers])).not.toContain(passcode)
})

// spec: What the service does | Codes are always uppercase
test('a code is found in any letter case, percent-encoded, with a last slash and with a query', async () => {
  await using app = await testApp()
  await app.claim('SPRING26', DESTINATION)
  const absolute = await rawRequest(app.url, ['GET http://hop.test/SPRING26 HTTP/1.1'])
  expect([absolute.status, absolute.headers.get('location')]).toEqual([302, DESTINATION])
  const paths = [
    '/SPRING26',
    '/spring26',
    '/sPrInG26',
    '/SPRING26/',
    '/SPRING26?utm=1&url=https://evil.test',
    '/SPRING26?',
    '/%53PRING26',
    '/%73pring%32%36',
    '/SPRING26/?x',
  ]
  for (const path of paths) {
    const { status, headers } = await app.call('GET', path)
    const seen = [headers.get('location'), headers.get('x-service-code')]
    expect([path, status, ...seen]).toEqual([path, 302, DESTINATION, 'SPRING26'])
  }
  for (const host of ['a', 'localhost:1']) {
    const { status, headers } = await app.call('GET', '/SPRING26', { headers: { host } })
    expect([host, status, headers.get('location')]).toEqual([host, 302, DESTINATION])
  }
  expect(await hitsOf(app, 'SPRING26')).toBe(paths.length + 3)
})

// spec: Errors | 404 code does not exist or has no destination
// spec: States and transitions | reserved
// design: 4.9 malformed codes
test('GET /{code} is 404 for a code that does not exist or has no destination, and counts nothing', async () => {
  await using app = await testApp()
  await app.reserve('SPRING26')
  await app.claim('ABCDEF')
  const rows = [
    ['/NOBODY1', 'NOBODY1'],
    ['/nobody1', 'NOBODY1'],
    ['/SPRING26', 'SPRING26'],
    ['/spring26/', 'SPRING26'],
    ['/ABCDE', 'ABCDE'],
    [`/${'a'.repeat(21)}`, 'A'.repeat(21)],
    ['/my-code', 'MY-CODE'],
    ['/favicon.png', 'FAVICON.PNG'],
    ['/NOBODY1%20', 'NOBODY1 '],
    ['/ABCDEF%0A', 'ABCDEF\n'],
    ['/ABCDEF%00', 'ABCDEF\0'],
    ['/ABC%2FDEF', 'ABC/DEF'],
    ['/%EF%BC%A1BCDEF', 'ＡBCDEF'],
    ['/ABCDEF%3Fx', 'ABCDEF?X'],
    ['/%2541BCDEF', '%41BCDEF'],
    ["/ABCDEF'OR'1'='1", "ABCDEF'OR'1'='1"],
    ['/__proto__', '__PROTO__'],
  ] as const
  for (const [index, [path, code]] of rows.entries()) {
    const answer = await app.call('GET', path)
    expectRefused(answer, 404, `Code not found: ${code}`)
    expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(299 - index))
  }
  for (const path of ['/ABC%ZZDEF', '/ABCDEF%', '/%', '/%E0%A4%A', '/%C3%9FABCDE', '/%FFABCDEF']) {
    const answer = await app.call('GET', path)
    expect([path, answer.status]).toEqual([path, 404])
    expect(answer.body).toEqual({ error: expect.stringMatching(/^Code not found: /) })
  }
  expect(await total(app)).toBe(0)
  expect(await hitsOf(app, 'ABCDEF')).toBe(0)
})

// spec: States and transitions | (none) POST /api/reserve
// spec: States and transitions | reserved POST /api/update
// spec: States and transitions | active POST /api/update
// spec: States and transitions | reserved or active POST /api/delete
// spec: States and transitions | deleted
test.each(['1', '200000'])(
  'each change of a code shows at the very next visit, with LINK_CACHE_MAX=%s',
  async (max) => {
    await using app = await testApp({ env: { LINK_CACHE_MAX: max } })
    await app.claim('OTHERS')
    const visit = async () => {
      const { status, headers } = await app.call('GET', '/SPRING26')
      await app.call('GET', '/OTHERS')
      return [status, headers.get('location')]
    }
    const change = (path: string, json: object, key = 'free') =>
      app.call('POST', `/api/${path}`, { key, json })
    expect(await visit()).toEqual([404, null])
    const { passcode } = await app.reserve('SPRING26')
    expect(await visit()).toEqual([404, null])
    const code = 'SPRING26'
    for (const url of ['https://example.com/1', 'https://example.com/2', 'https://example.com/1']) {
      await change('update', { code, passcode, url })
      expect(await visit()).toEqual([302, url])
    }
    await change('update', { code, passcode: 'A'.repeat(24), url: 'https://example.com/3' })
    expect(await visit()).toEqual([302, 'https://example.com/1'])
    await change('delete', { code, passcode })
    expect(await visit()).toEqual([404, null])
    await app.claim(code, 'https://example.com/4', 'pro')
    expect(await visit()).toEqual([302, 'https://example.com/4'])
  },
)
