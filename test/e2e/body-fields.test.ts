import { expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { invalid, messageOf } from '../support/refusals.ts'

/** Values that the fields of each body refuse. */

const INVALID_URL = messageOf('invalid_url')
const INVALID_CODE = messageOf('invalid_code')
const missing = (field: string) => `Missing required field: ${field}`
const OLD = 'https://example.com/old'
const NEW = 'https://example.com/new'

const NO_STRINGS = [undefined, null, 42, true, ['https://example.com/'], { code: 'SPRING26' }]
const NO_OBJECTS = [null, [], ['https://example.com/'], 'SPRING26', 7, true, {}, { more: 'x' }]

const NO_HTTP = [
  '',
  'example.com',
  '//example.com',
  'ftp://example.com',
  'https',
  'httpx://example.com',
  'mailto:a@example.com',
  ' https://example.com',
  '\nhttps://example.com',
  'http:/example.com',
  'https:example.com',
  'xhttps://example.com',
  'data:text/html,https://',
  'javascript:alert(1)//https://a.b',
  'javascript://example.com/%0aalert(1)',
]
const BAD_URLS = [
  `https://example.com/${'я'.repeat(1363)}`,
  'https://',
  'http://',
  'https:///',
  'https://?q',
  'https://#',
  'http://:80/',
  'https://u@',
  'https://user@/x',
  'https://[::1',
  'https://[gg::]/',
  'https://a^b.example/',
  'https://%00/',
  'https://example.com:99999/',
  'https://example.com:x/',
  'https://1.2.3.256/',
  'https://a.b/c d',
  'https://a.b/ ',
  'https://a b/',
  'https://a.b/\t',
  'https://a\tb/',
  'https://a.b/\n',
  'https://a.b/\r\nX: 1',
  'https://a.b/\ud800',
  'https://\udc00.b/',
  'https://a.b/\u0000',
  'https://a.b/\u001f',
  'https://a.b/\u007f',
  'https://a.b/\u0085',
  `https://example.com/${'x'.repeat(8193 - 20)}`,
  `https://a.b/${'x'.repeat(60_000)}`,
]
const BAD_CODES = [
  '',
  'ABCDE',
  'A'.repeat(21),
  'A'.repeat(60_000),
  'MY-CODE',
  'MY_CODE',
  'MY CODE',
  ' SPRING26',
  'SPRING26 ',
  'SPRING26\n',
  'SPRING\0',
  'SPRING.6',
  'SPRING+26',
  '../../',
  'ÄBCDEF',
  'STRAßE',
  'ABCDEı',
  'ABCDE\u212a',
  'ＳＰＲＩＮＧ',
  '١٢٣٤٥٦',
  'SPRING🎄',
  '%41BCDEF',
]

interface Link {
  code: string
  passcode: string
}
type Refusal = readonly [path: string, json: unknown, error: unknown]

function refusalsOf(link: Link): Refusal[] {
  const whole = { ...link, url: NEW }
  const badUrl = expect.stringMatching(/^Invalid URL: .{1,180}$/)
  const required = ['code', 'passcode', 'url'].flatMap((field) =>
    NO_STRINGS.map((value) => ({ field, json: { ...whole, [field]: value } })),
  )
  const urls = [
    ...NO_HTTP.map((url) => ({ url, error: INVALID_URL })),
    ...BAD_URLS.map((url) => ({ url, error: badUrl })),
  ]
  return [
    ...NO_STRINGS.map((url) => ['/api/shorten', { url }, INVALID_URL] as const),
    ...NO_OBJECTS.map((json) => ['/api/shorten', json, INVALID_URL] as const),
    ...NO_STRINGS.map((code) => ['/api/reserve', { code }, INVALID_CODE] as const),
    ...BAD_CODES.map((code) => ['/api/reserve', { code }, INVALID_CODE] as const),
    ...NO_OBJECTS.map((json) => ['/api/reserve', json, INVALID_CODE] as const),
    ...NO_STRINGS.map((url) => ['/api/bulk-shorten', { urls: [url] }, INVALID_URL] as const),
    ...urls.flatMap(({ url, error }) => [
      ['/api/shorten', { url }, error] as const,
      ['/api/update', { ...link, url }, error] as const,
      ['/api/bulk-shorten', { urls: [url, url] }, error] as const,
    ]),
    ...['/api/update', '/api/delete'].flatMap((path) => [
      ...NO_OBJECTS.map((json) => [path, json, missing('code')] as const),
      ...required
        .filter(({ field }) => field !== 'url' || path === '/api/update')
        .map(({ field, json }) => [path, json, missing(field)] as const),
    ]),
  ]
}

// spec: Errors | 400 URL missing
// spec: Errors | 400 custom code
// spec: Errors | 400 required body field missing
// spec: Code rules | 2
// spec: Limits | Code length
// design: 4.3 a URL
// design: 4.8 update and delete
test('400: each field refuses what it may not contain with its own message, and nothing changes', async () => {
  await using app = await testApp()
  const key = 'enterprise'
  const link = await app.claim('KEPT26', OLD, key)
  const before = await app.call('GET', '/api/list', { key })
  for (const [path, json, error] of refusalsOf(link)) {
    const { status, body } = await app.call('POST', path, { key, json })
    expect({ path, json, status, body }).toEqual({ path, json, status: 400, body: { error } })
  }
  expect((await app.call('GET', '/api/list', { key })).body).toEqual(before.body)
})

/** Names that other services have, and those that objects have anyway. */
const UNKNOWN_FIELDS = [
  'customSlug',
  'alias',
  'slug',
  'titel',
  'Title',
  '',
  'constructor',
  '__proto__',
  'sp ace\n"',
  'x'.repeat(40_000),
]

// design: 4.16 an unknown field of an endpoint that creates or changes is 400
test('400: a field that an endpoint does not know is named, after what else is wrong, and nothing changes', async () => {
  await using app = await testApp()
  const key = 'enterprise'
  const link = await app.claim('KEPT26', OLD, key)
  const before = await app.call('GET', '/api/links/KEPT26', { key })
  const bodies = {
    'POST /api/shorten': { good: { url: NEW }, bad: { url: 5 }, error: INVALID_URL },
    'POST /api/reserve': { good: { code: 'OTHER26' }, bad: { code: 'x' }, error: INVALID_CODE },
    'POST /api/update': { good: { ...link, url: NEW }, bad: link, error: missing('url') },
    'POST /api/delete': { good: link, bad: { code: link.code }, error: missing('passcode') },
    'POST /api/bulk-shorten': {
      good: { urls: [NEW] },
      bad: { urls: [] },
      error: expect.stringMatching(/^urls must /),
    },
    'PATCH /api/links/KEPT26': {
      good: { title: 'Poster' },
      bad: { title: 5 },
      error: invalid('title'),
    },
  }
  for (const [endpoint, { good, bad, error }] of Object.entries(bodies)) {
    const [method = '', path = ''] = endpoint.split(' ')
    const fields = Object.keys(method === 'PATCH' ? {} : good)
    const send = (body: object, name: string) => {
      const raw = JSON.stringify(Object.fromEntries([[name, 1], ...Object.entries(body)]))
      return app.call(method, path, { key, raw, headers: { 'content-type': 'application/json' } })
    }
    for (const name of UNKNOWN_FIELDS) {
      const { status, body } = await send(good, name)
      expect({ endpoint, name, status }).toEqual({ endpoint, name, status: 400 })
      expect(body.error).toStartWith(`Unknown field: ${name.slice(0, 100)}. The fields are `)
      for (const field of fields) expect(body.error).toContain(field)
    }
    // More names than one, and a name that has an escape.
    const escaped = `{"\\u0073lug":1,"other":[{"urls":["x"]}],${JSON.stringify(good).slice(1)}`
    const headers = { 'content-type': 'application/json' }
    expect((await app.call(method, path, { key, raw: escaped, headers })).body.error).toStartWith(
      'Unknown field: slug. ',
    )
    expect(await send(bad, 'slug')).toMatchObject({ status: 400, body: { error } })
  }
  expect((await app.call('GET', '/api/links/KEPT26', { key })).body).toEqual(before.body)
  expect((await app.call('GET', '/api/list', { key })).body.total).toBe(1)
})
