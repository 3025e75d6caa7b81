import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { ALL, type Endpoint, nameOf, pathOf } from '../support/endpoints.ts'

/** Scripts of other sites may make public reads, and nothing else. */

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
