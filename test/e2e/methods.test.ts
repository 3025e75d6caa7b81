import { expect, test } from 'bun:test'
import { type Answer, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { rawRequest } from '../support/conversation.ts'
import { ALL, ENDPOINTS, nameOf, outcome, pathOf, READS } from '../support/endpoints.ts'

/** Wrong methods, unknown and malformed paths, and HEAD. */

const NOT_ALLOWED = { error: expect.stringMatching(/^Method not allowed/) }

const NOT_CHARGED = ['/docs', '/docs/json', '/-/live', '/-/ready', '/cdn/qr/{code}.png']
/** The methods of each path, and the budget that another method is charged to. */
const PATHS = [
  ...[...Map.groupBy(ALL, ({ path }) => path)].map(([path, endpoints]) => ({
    path,
    methods: endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
    limit: endpoints.some(({ budget }) => budget === 'read') ? '300' : '60',
  })),
  ...NOT_CHARGED.map((path) => ({ path, methods: ['GET', 'HEAD'], limit: null })),
]

// design: 4.16 a known path with another method is 405
test('405 with Allow for every other method of a path', async () => {
  await using app = await testApp()
  await app.reserve('ABCDEF')
  for (const { path, methods, limit } of PATHS) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
      if (methods.includes(method)) continue
      const at = `${method} ${path}`
      const answer = await app.call(method, path.replace('{code}', 'ABCDEF'), { key: 'free' })
      const body = method === 'HEAD' ? {} : { error: `Method not allowed: ${method}` }
      expect(outcome(at, answer)).toEqual({ at, status: 405, body })
      const { headers } = answer
      expect({ at, allow: headers.get('allow')?.split(', ').sort() }).toEqual({
        at,
        allow: methods.toSorted(),
      })
      // A wrong method is charged like the path's own.
      expect({ at, limit: headers.get('x-ratelimit-limit') }).toEqual({ at, limit })
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
  }
  expect(await app.call('GET', '/api/lookup/ABCDEF')).toMatchObject({ status: 200 })
})

test('a method that HTTP has and fetch has not is refused as well', async () => {
  await using app = await testApp()
  for (const method of ['TRACE', 'PROPFIND']) {
    const { status, text } = await rawRequest(app.url, [`${method} /api/list HTTP/1.1`])
    expect({ method, status, body: JSON.parse(text) }).toEqual({
      method,
      status: 405,
      body: NOT_ALLOWED,
    })
  }
})

// design: 4.16 an unknown path is 404
test('an unknown path is 404 in JSON, for any method', async () => {
  await using app = await testApp()
  const paths = [
    '/api/nothing',
    '/api/lookup',
    '/api/lookup/ABCDEF/more',
    '/api/shorten/more',
    '/api/v1/shorten',
    '/.well-known/nothing',
    '/-/nothing',
    '/cdn/nothing',
    '/docs/nothing',
  ]
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
      const at = `${method} ${path}`
      const answer = await app.call(method, path, { key: 'free' })
      const body = { error: 'Not found' }
      expect(outcome(at, answer)).toEqual({ at, status: 404, body })
      expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/)
    }
  }
})

test('a path of several segments is an unknown short link', async () => {
  await using app = await testApp()
  await app.claim('SPRING26')
  const html = { accept: 'text/html' }
  for (const path of ['/a/b', '/a/b/', '/SPRING26/x', '/SPRING26//', '/%2e%61/%zz']) {
    const program = await app.call('GET', path)
    expect([path, program.status, program.body]).toEqual([
      path,
      404,
      { error: expect.stringMatching(/^Code not found: /) },
    ])
    expect(program.headers.get('vary')).toContain('Accept')
    const browser = await app.call('GET', path, { headers: html })
    expect([path, browser.status]).toEqual([path, 404])
    expect(browser.headers.get('content-type')).toBe('text/html;charset=utf-8')
    expect(browser.text).toContain('<h1>This link does not exist</h1>')
    expect((await app.call('HEAD', path)).status).toBe(404)
    expect(await app.call('POST', path)).toMatchObject({
      status: 404,
      body: { error: 'Not found' },
    })
  }
  // fetch would send one slash.
  const slashes = await rawRequest(app.url, ['GET //SPRING26 HTTP/1.1'])
  expect([slashes.status, JSON.parse(slashes.text).error]).toEqual([
    404,
    'Code not found: /SPRING26',
  ])
})

test('no unknown path can be tried without a limit', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '2' } })
  const paths = ['/a/b', '/no/such', '/app/nope', '/api/nope', '/docs/nope', '/-/nope', '/qr/a/b']
  const files = ['/cdn/nope', '/cdn/qr/nope.txt', '/.well-known/nope']
  for (const [n, path] of [...paths, ...files].entries()) {
    const from = `198.51.100.${n + 1}`
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await app.call('GET', path, { from })).status)
    expect([path, statuses]).toEqual([path, [404, 404, 429]])
  }
  const other = await app.call('POST', '/no/such', { from: '198.51.100.1' })
  expect(other.status).toBe(429)
})

test('a path of one segment stands in the place of a code, whatever it is', async () => {
  await using app = await testApp()
  for (const path of ['/api', '/qr', '/v1', '/favicon.png', '/humans.txt', '/api/']) {
    const name = path.replaceAll('/', '').toUpperCase()
    const answer = await app.call('GET', path)
    const body = { error: `Code not found: ${name}` }
    expect(outcome(path, answer)).toEqual({ at: path, status: 404, body })
    expect(await app.call('POST', path)).toMatchObject({ status: 405 })
  }
})

const COUNTED = ['date', 'x-request-id', 'x-ratelimit-remaining']

function lasting({ headers }: Answer): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !COUNTED.includes(name)))
}

// design: 4.6 HEAD
test("HEAD on any GET path gives GET's status and headers without a body", async () => {
  await using app = await testApp()
  const { code } = await app.shorten('https://example.com/')
  const paths = [
    ...READS.flatMap((endpoint) => [pathOf(endpoint, code), pathOf(endpoint, 'UNKNOWN1')]),
    `/api/qr/${code}?format=svg`,
    `/api/qr/${code}?size=5`,
    '/api/list?limit=x',
    '/nothing/here',
    '/docs',
    '/docs/json',
    '/-/live',
    '/-/ready',
    `/cdn/qr/${code}.png`,
    '/cdn/qr/UNKNOWN1.png',
  ]
  for (const path of paths) {
    const get = await app.call('GET', path, { key: 'free' })
    const head = await app.call('HEAD', path, { key: 'free' })
    expect({ path, status: head.status, headers: lasting(head), bytes: head.bytes.length }).toEqual(
      {
        path,
        status: get.status,
        headers: lasting(get),
        bytes: 0,
      },
    )
    const remaining = [get, head].map(({ headers }) => headers.get('x-ratelimit-remaining'))
    if (remaining[0] !== null) expect(Number(remaining[1])).toBe(Number(remaining[0]) - 1)
  }
})

// spec: Versioning | Paths carry no version segment
test('the paths carry no version segment', async () => {
  await using app = await testApp()
  for (const endpoint of ENDPOINTS) {
    const at = nameOf(endpoint)
    const path = `/v1${pathOf(endpoint)}`
    const { status } = await app.call(endpoint.method, path, { key: 'free' })
    expect({ at, status }).toEqual({ at, status: 404 })
  }
})

const MALFORMED: readonly string[] = [
  '/%',
  '/%zz',
  '/%ff',
  '/%00',
  '/%E0%A4%A',
  '/..%2f..%2fetc%2fpasswd',
  '/%2e%2e',
  '//',
  '/ABCDEF/',
  '/api/lookup/%',
  '/api/lookup/%ff',
  '/api/lookup/',
  '/api/lookup//ABCDEF',
  '/api/lookup/A%2FB',
  '/api/qr/%',
  '/qr/%ff',
  '/qr/',
  '/cdn/qr/%',
  '/cdn/qr/..%2f..%2fhopcode.db',
  '/cdn/qr/.png',
  '/cdn/qr/%2e%2e%2f%2e%2e%2fsecret.key.png',
  '/api',
  '/api/',
  '/api/nothing',
  '/__proto__',
  '/api/qr/ABCDEF?size=64&size=65',
  '/api/qr/ABCDEF?size[]=64',
  '/api/qr/ABCDEF?format=%ff',
  '/api/list?limit=1&limit=2',
  '/api/list?search=%',
  '/api/list?search=%ff',
  '/api/list?=&&=&',
  '/api/list?__proto__=1',
  '/api/list?search=%00',
  '/api/list?search=a&search=b',
  '/api/list??',
  `/${'A'.repeat(8000)}`,
  `/api/lookup/${'%41'.repeat(2000)}`,
  `/api/list?search=${'a'.repeat(8000)}`,
]

test('no path or query, however it is written, is a failure of the service', async () => {
  await using app = await testApp({ env: UNLIMITED })
  await app.claim('ABCDEF', 'https://example.com/', 'enterprise')
  for (const path of MALFORMED) {
    const head = [`GET ${path} HTTP/1.1`, `X-API-Key: ${app.key('enterprise')}`]
    const { status, headers, text } = await rawRequest(app.url, head)
    expect([path.slice(0, 60), [200, 302, 400, 404].includes(status) ? '' : status]).toEqual([
      path.slice(0, 60),
      '',
    ])
    if (status < 400) continue
    expect([path.slice(0, 60), headers.get('content-type')]).toEqual([
      path.slice(0, 60),
      expect.stringMatching(/^application\/json\b/),
    ])
    expect(Object.keys(JSON.parse(text))).toEqual(['error'])
    const id = headers.get('x-request-id')
    expect({ path, id }).toEqual({ path, id: expect.stringMatching(/./) })
  }
  expect(app.log.filter((line) => line.includes('"error"'))).toEqual([])
})
