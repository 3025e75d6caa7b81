import { expect, test } from 'bun:test'
import { type Answer, type TestApp, testApp } from '../support/app.ts'
import { ALL, type Endpoint, nameOf, pathOf } from '../support/endpoints.ts'
import { addKey } from '../support/members.ts'

/**
 * Scripts of other sites may make public reads, and create links with a key that lists their
 * origin.
 */

const OPEN = ['/api/lookup/{code}', '/api/status', '/api/qr/{code}', '/api/qr-image/{code}']
const CORS = 'access-control-allow-origin'
const ORIGIN = { origin: 'https://shop.example' }
const isOpen = ({ path }: Endpoint) => OPEN.includes(path)

test('responses of the public reads can be read from every origin, refusals too', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '4' } })
  await app.claim('SPRING26')
  for (const [n, path] of OPEN.entries()) {
    const from = `198.51.100.${n}`
    const ask = (code: string, method = 'GET') =>
      app.call(method, path.replace('{code}', code), { from, headers: ORIGIN })
    const answers = [await ask('SPRING26'), await ask('SPRING26', 'HEAD'), await ask('NOSUCH26')]
    app.maintenance(app.now() + 60_000)
    answers.push(await ask('SPRING26'), await ask('SPRING26'))
    app.maintenance(undefined)
    answers.push(await ask('SPRING26'))
    for (const { status, headers } of answers) {
      expect([path, status, headers.get(CORS)]).toEqual([path, status, '*'])
      expect(headers.get('access-control-expose-headers')).toBe(
        'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, Retry-After',
      )
      expect(headers.has('access-control-allow-credentials')).toBe(false)
    }
    const unknown = path.includes('{code}') ? 404 : 200
    expect(answers.map(({ status }) => status)).toEqual([200, 200, unknown, 503, 503, 429])
  }
})

test('a preflight of a public read allows GET and HEAD with an API key, during maintenance too', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '4' } })
  for (const [n, path] of OPEN.entries()) {
    const from = `198.51.100.${n}`
    const preflight = () =>
      app.call('OPTIONS', path.replace('{code}', 'SPRING26'), {
        from,
        headers: {
          ...ORIGIN,
          'access-control-request-method': 'GET',
          'access-control-request-headers': 'x-api-key',
        },
      })
    app.maintenance(n % 2 === 0 ? app.now() + 60_000 : undefined)
    const { status, headers, text } = await preflight()
    expect([path, status, text]).toEqual([path, 204, ''])
    expect(headers.get(CORS)).toBe('*')
    expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD')
    const allowed = headers.get('access-control-allow-headers')
    expect(allowed).toBe('X-API-Key, Authorization, Content-Type')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-ratelimit-remaining')).toBe('3')
    for (let i = 0; i < 3; i++) await preflight()
    expect((await preflight()).status).toBe(429)
  }
})

test('nothing else can be read from another origin', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  const paths = ['/', '/docs', '/docs/json', '/app/sign-in', '/-/live', '/robots.txt', '/a/b']
  const requests = [
    ...ALL.filter((endpoint) => !isOpen(endpoint)).map((endpoint) => ({
      name: nameOf(endpoint),
      method: endpoint.method as string,
      path: pathOf(endpoint, 'SPRING26'),
    })),
    ...[...paths, '/cdn/qr/SPRING26.png'].map((path) => ({ name: path, method: 'GET', path })),
  ]
  for (const { name, method, path } of requests) {
    for (const tried of [method, 'OPTIONS']) {
      const json = method === 'GET' || tried === 'OPTIONS' ? {} : { json: {} }
      const { headers } = await app.call(tried, path, { ...json, key: 'free', headers: ORIGIN })
      const found = [...headers.keys()].filter((header) => header.startsWith('access-control'))
      expect([name, tried, found]).toEqual([name, tried, []])
    }
  }
})

const CREATIONS = ['/api/shorten', '/api/bulk-shorten', '/api/reserve']
const SHOP = ORIGIN.origin
const MAY_POST = { ...ORIGIN, 'access-control-request-method': 'POST' }
const BODY = { url: 'https://example.com/', urls: ['https://example.com/'], code: 'SPRING26' }

/** A key of the Free account that only creates, for pages of these origins. */
function addPageKey(app: TestApp, origins: string[] | null, perMinute = 60): string {
  app.key('free')
  const name = String(origins)
  return addKey(app, 'free@example.com', { name, scope: 'create', perMinute, origins })
}

const corsOf = ({ headers }: Answer) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control')))

test('scripts of an origin that a key lists create links with this key, and read its refusals', async () => {
  await using app = await testApp()
  const key = addPageKey(app, [SHOP, 'https://other.example'], 4)
  const preflight = await app.call('OPTIONS', '/api/shorten', { headers: MAY_POST })
  expect([preflight.status, preflight.text]).toEqual([204, ''])
  expect(preflight.headers.get('vary')).toContain('Origin')
  expect(corsOf(preflight)).toMatchObject({
    [CORS]: SHOP,
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'X-API-Key, Authorization, Content-Type',
  })
  const statuses: number[] = []
  for (const path of [...CREATIONS, '/api/reserve', '/api/shorten']) {
    const fields = { '/api/shorten': ['url'], '/api/bulk-shorten': ['urls'] }[path] ?? ['code']
    const json = Object.fromEntries(Object.entries(BODY).filter(([name]) => fields.includes(name)))
    const answer = await app.call('POST', path, { key, json, headers: ORIGIN })
    statuses.push(answer.status)
    expect(corsOf(answer)).toEqual({
      [CORS]: SHOP,
      'access-control-expose-headers': expect.stringContaining('Retry-After'),
    })
    expect(answer.headers.get('vary')).toContain('Origin')
  }
  expect(statuses).toEqual([201, 201, 201, 409, 429])
})

test('no other endpoint, origin or key has CORS headers of creations', async () => {
  await using app = await testApp()
  const key = addPageKey(app, [SHOP])
  const other = addPageKey(app, ['https://other.example'])
  const open = addPageKey(app, null)
  const ended = app.key('pro')
  const none = async (method: string, path: string, headers: object, sent = key) => {
    const isPost = method === 'POST'
    const options = { headers: headers as Record<string, string>, ...(isPost && { json: {} }) }
    const answer = await app.call(method, path, { ...options, ...(isPost && { key: sent }) })
    const at = `${method} ${path} ${JSON.stringify(headers)}`
    expect({ at, found: corsOf(answer) }).toEqual({ at, found: {} })
    return answer
  }
  for (const path of ['/api/update', '/api/delete', '/api/import', '/api/links/SPRING26']) {
    await none('OPTIONS', path, MAY_POST)
    await none('POST', path, ORIGIN)
  }
  for (const path of CREATIONS) {
    // A listed origin with a key that does not list it.
    for (const sent of [other, open, ended, 'nonsense']) await none('POST', path, ORIGIN, sent)
    for (const origin of [
      'https://evil.example',
      'null',
      '*',
      `${SHOP}:8443`,
      'http://shop.example',
    ]) {
      const answer = await none('OPTIONS', path, { ...MAY_POST, origin })
      expect(answer.status).toBe(405)
      await none('POST', path, { origin })
    }
    await none('OPTIONS', path, ORIGIN)
    app.advance(60_000)
  }
})

test('a revoked key, and one of a disabled account, let no preflight pass', async () => {
  await using app = await testApp()
  addPageKey(app, [SHOP])
  const status = async () =>
    (await app.call('OPTIONS', '/api/shorten', { headers: MAY_POST })).status
  expect(await status()).toBe(204)
  app.administer(({ accounts }) => accounts.change(1, { disabledAt: app.now() }))
  expect(await status()).toBe(405)
  app.administer(({ accounts }) => accounts.change(1, { disabledAt: null }))
  expect(await status()).toBe(204)
  app.administer(({ accounts }) => accounts.revokeKeys(1, app.now() + 1000, `${SHOP}`))
  app.advance(1000)
  expect(await status()).toBe(405)
})
