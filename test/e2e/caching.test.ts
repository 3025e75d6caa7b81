import { expect, test } from 'bun:test'
import { disableLink } from '../support/administration.ts'
import { type Answer, type TestApp, testApp } from '../support/app.ts'
import { rawRequest } from '../support/conversation.ts'
import { setUpOwner, Visitor } from '../support/dashboard.ts'
import { breakDatabase } from '../support/database.ts'

/** `Cache-Control` of every response: shared caches store what does not forbid it. */

const IMAGE = 'public, max-age=86400, immutable'
const FOREVER = 'public, max-age=31536000, immutable'
const HTML = { accept: 'text/html' }

/** The only responses that a cache may store. */
const STORED: Readonly<Record<string, string>> = {
  '200 GET /api/qr/{code}': IMAGE,
  '302 GET /qr/{code}': FOREVER,
  '200 GET /cdn/qr/{code}.png': IMAGE,
}

const cachingOf = ({ headers }: Pick<Answer, 'headers'>) => headers.get('cache-control')

interface Operation {
  method: string
  path: string
}

/** The operations of the API description. */
async function operationsOf(app: TestApp): Promise<Operation[]> {
  const { body } = await app.call('GET', '/docs/json')
  const paths = Object.entries(body.paths as Record<string, object>)
  return paths.flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
  )
}

interface Asked extends Operation {
  key?: string
  json?: unknown
  raw?: string
  headers?: Record<string, string>
  from?: string
}

/** Sends the request as GET and, if it is one, as HEAD. Returns the status. */
async function expectCaching(app: TestApp, code: string, asked: Asked): Promise<number> {
  const { path, method, ...options } = asked
  const target = path.replace('{code}', code)
  const answer = await app.call(method, target, options)
  const about = `${answer.status} ${method} ${path.split('?')[0]}`
  expect([about, cachingOf(answer)]).toEqual([about, STORED[about] ?? 'no-store'])
  if (method === 'GET') {
    const head = await app.call('HEAD', target, options)
    expect([about, cachingOf(head)]).toEqual([about, cachingOf(answer)])
    expect([about, head.headers.get('date')]).toEqual([about, expect.stringMatching(/GMT$/)])
  }
  return answer.status
}

const BODIES: Readonly<Record<string, (code: string, passcode: string) => unknown>> = {
  '/api/shorten': () => ({ url: 'https://example.com/1' }),
  '/api/reserve': () => ({ code: 'RESERVED1' }),
  '/api/update': (code, passcode) => ({ code, passcode, url: 'https://example.com/2' }),
  '/api/delete': () => ({ code: 'RESERVED1', passcode: 'A'.repeat(24) }),
  '/api/bulk-shorten': () => ({ urls: ['https://example.com/3'] }),
  '/api/links/{code}': () => ({ title: 'Title' }),
}

test('every operation of the API description says whether its responses may be stored', async () => {
  await using app = await testApp({ env: { FREE_WRITES_PER_MINUTE: '0' } })
  const { code, passcode } = await app.claim('SPRING26', 'https://example.com/', 'pro')
  const seen = new Set<number>()
  const ask = async (asked: Asked) => seen.add(await expectCaching(app, code, asked))
  const operations = await operationsOf(app)
  expect(operations.length).toBeGreaterThanOrEqual(20)
  for (const operation of operations) {
    const { method, path } = operation
    const isGet = method === 'GET'
    const good = isGet ? {} : { json: BODIES[path]?.(code, passcode) ?? {} }
    await ask({ ...operation, ...good, key: 'pro' })
    await ask({ ...operation, ...good, key: 'wrong' })
    await ask({ ...operation, ...good })
    for (const other of ['OPTIONS', 'PUT', 'POST', 'DELETE']) await ask({ method: other, path })
    if (isGet) {
      await ask({ method, path: path.replace('{code}', 'NOSUCH26') })
      await ask({ method, path: `${path}?size=1&limit=x&by=x&format=x`, key: 'pro' })
      continue
    }
    await ask({ ...operation, key: 'pro', raw: '{' })
    await ask({ ...operation, key: 'pro', json: {} })
    await ask({ ...operation, key: 'pro', raw: '{}', headers: { 'content-type': 'text/plain' } })
    const large = JSON.stringify({ url: 'x'.repeat(70_000) })
    await ask({
      ...operation,
      key: 'pro',
      raw: large,
      headers: { 'content-type': 'application/json' },
    })
  }
  app.maintenance(app.now() + 60_000)
  for (const operation of operations) await ask({ ...operation, key: 'pro' })
  expect([...seen].sort()).toEqual([200, 201, 302, 400, 401, 403, 404, 405, 413, 415, 429, 503])
})

test('every refusal of a short link forbids to store it, as JSON and as a page', async () => {
  const env = { ANONYMOUS_READS_PER_MINUTE: '0', ANONYMOUS_REDIRECTS_PER_MINUTE: '3' }
  await using app = await testApp({ env })
  const codes = ['ACTIVE26', 'PAUSED26', 'EXPIRED26', 'DISABLED26', 'LIMITED26', 'MOVED26']
  for (const code of codes) await app.claim(code)
  await app.reserve('RESERVED26')
  const patch = (code: string, json: object) =>
    app.call('PATCH', `/api/links/${code}`, { key: 'free', json })
  await patch('PAUSED26', { paused: true })
  await patch('EXPIRED26', { expires_at: '2026-03-01T12:00:00.001Z' })
  await patch('MOVED26', {
    expires_at: '2026-03-01T12:00:00.001Z',
    expired_url: 'https://example.com/over',
  })
  await patch('LIMITED26', { max_hits: 1 })
  await app.call('GET', '/LIMITED26')
  await disableLink(app, 'DISABLED26', 'Phishing')
  app.advance(61_000)
  const expected: [string, number][] = [
    ['/PAUSED26', 404],
    ['/RESERVED26', 404],
    ['/NOSUCH26', 404],
    ['/not-a-code', 404],
    ['/a/b', 404],
    ['/EXPIRED26', 410],
    ['/LIMITED26', 410],
    ['/DISABLED26', 410],
    ['/MOVED26', 302],
    ['/ACTIVE26', 302],
  ]
  for (const headers of [{}, HTML, { 'x-api-key': app.key('free') }]) {
    for (const [n, [path, status]] of expected.entries()) {
      const about = { method: 'GET', path, headers, from: `198.51.100.${n}` }
      expect([path, await expectCaching(app, '', about)]).toEqual([path, status])
      const { headers: sent } = await app.call('GET', path, about)
      const isRedirect = status === 302
      expect([path, sent.get('vary') ?? '']).toEqual([
        path,
        isRedirect ? '' : 'Accept, Accept-Language, Sec-Fetch-Dest',
      ])
    }
    app.advance(61_000)
  }
  for (const headers of [{}, HTML]) {
    for (let i = 0; i < 3; i++) await app.call('GET', '/ACTIVE26', { headers })
    const about = { method: 'GET', path: '/ACTIVE26', headers }
    expect(await expectCaching(app, '', about)).toBe(429)
    app.advance(61_000)
  }
  for (const method of ['POST', 'OPTIONS', 'DELETE']) {
    expect(await expectCaching(app, '', { method, path: '/ACTIVE26' })).toBe(405)
  }
})

test('a failure of the database and a redirect to NOT_FOUND_URL may not be stored', async () => {
  await using app = await testApp({ env: { NOT_FOUND_URL: 'https://example.com/sorry' } })
  const unknown = { method: 'GET', path: '/NOSUCH26', headers: HTML }
  expect(await expectCaching(app, '', unknown)).toBe(302)
  const { headers } = await app.call('GET', '/NOSUCH26', { headers: HTML })
  expect(headers.get('vary')).toBe('Accept, Accept-Language, Sec-Fetch-Dest')
  await app.claim('SPRING26')
  using _ = breakDatabase(app.dataDir)
  for (const path of ['/SPRING26', '/api/lookup/SPRING26']) {
    for (const about of [{}, { headers: HTML }]) {
      const status = await expectCaching(app, '', { method: 'GET', path, ...about })
      expect([path, status]).toEqual([path, 500])
    }
  }
})

test('pages, probes and files say whether they may be stored', async () => {
  await using app = await testApp({ env: { SIGNUP: 'open' } })
  const { owner } = await setUpOwner(app)
  const { code } = await app.claim('SPRING26')
  const never = [
    '/',
    '/-/live',
    '/-/ready',
    '/-/metrics',
    '/-/nothing',
    '/docs',
    '/docs/json',
    '/docs/start.js',
    '/docs/bundle.js',
    '/docs/swagger.css',
    '/docs/style.css',
    '/docs/nothing',
    '/api/nothing',
    '/.well-known/security.txt',
    '/app/assets/nothing',
    '/cdn/nothing',
    '/cdn/qr/nothing.txt',
    '/cdn/qr/NOSUCH26.png',
  ]
  for (const path of never) {
    await expectCaching(app, code, { method: 'GET', path })
    await expectCaching(app, code, { method: 'OPTIONS', path })
  }
  await expectCaching(app, code, { method: 'GET', path: '/cdn/qr/{code}.png' })
  const links = ['', '/bulk', '/code', '/export.csv', '/import', '/import/export/yourls']
  const link = ['', '/delete', '/hits.csv', '/qr.png', '/qr.svg', '/visits', '/visits.csv']
  const service = [
    '',
    '/accounts',
    '/accounts/1',
    '/accounts/1/disable',
    '/links',
    `/links/${code}`,
  ]
  const analytics = ['', '.csv', '/campaigns', '/campaigns.csv', '/visits', '/visits.csv']
  const other = ['account', 'account/delete', 'account/two-factor', 'keys', 'keys/end', 'qr']
  const anonymous = ['sign-in', 'sign-in/code', 'sign-up', 'setup/x', 'shared/x', 'nothing', '']
  const pages = [
    ...links.map((rest) => `links${rest}`),
    ...link.map((rest) => `links/${code}${rest}`),
    ...service.map((rest) => `service${rest}`),
    ...analytics.map((rest) => `analytics${rest}`),
    ...other,
    `analytics/${code}`,
    'links/hits',
    'qr/logo.png',
    'qr/preview.svg',
    ...anonymous,
  ]
  for (const visitor of [owner, new Visitor(app)]) {
    for (const path of pages.map((rest) => `/app/${rest}`)) {
      const answer = await visitor.get(path)
      expect([path, cachingOf(answer)]).toEqual([path, 'no-store'])
    }
  }
  const { text } = await owner.get('/app/sign-in')
  const [asset = ''] =
    /\/app\/assets\/[^"]+/.exec((await new Visitor(app).get('/app/sign-in')).text) ?? []
  expect(text).toBeString()
  const files = { [asset]: FOREVER, '/robots.txt': 'public, max-age=86400' }
  for (const [path, caching] of Object.entries({
    ...files,
    '/favicon.ico': files['/robots.txt'],
  })) {
    for (const method of ['GET', 'HEAD']) {
      expect([path, cachingOf(await app.call(method, path))]).toEqual([path, caching ?? null])
    }
  }
})

test('metrics and probes on an address of their own may not be stored', async () => {
  await using app = await testApp({ env: { METRICS_LISTEN: '127.0.0.1:0' } })
  for (const path of ['/-/live', '/-/ready', '/-/metrics', '/nothing']) {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const answer = await fetch(app.operatorsUrl + path, { method })
      expect([method, path, cachingOf(answer)]).toEqual([method, path, 'no-store'])
      expect(answer.headers.has('date')).toBe(true)
    }
  }
})

test('a request that cannot be parsed is refused for its sender alone', async () => {
  await using app = await testApp()
  const requests: [string[], number][] = [
    [['GET /SPRING26 . HTTP/1.1'], 505],
    [['GET /SPRING26 HTTP/1.1', 'Content-Length: x'], 400],
    [['GET /SPRING26 HTTP/1.1', `X: ${'x'.repeat(30_000)}`], 431],
    [['GET /api/status HTTP/1.1', `Host: ${'x'.repeat(400)}`], 400],
  ]
  for (const [lines, status] of requests) {
    const answer = await rawRequest(app.url, lines)
    expect([status, cachingOf(answer)]).toEqual([answer.status, 'no-store'])
  }
})
