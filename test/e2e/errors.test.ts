import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestApp, testApp } from '../support/app.ts'
import { nameOf, PUBLIC, pathOf } from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { outcome } from '../support/outcome.ts'

/** The spec's chapter "Errors": refusals that a caller can mend, each with its exact message. */

const INVALID_URL = 'Invalid URL: must start with http:// or https://'
const INVALID_CODE = 'Invalid code: must be 6-20 alphanumeric characters'
const BLOCKED_URL = 'Destination URL is not allowed (host on abuse blocklist)'

interface Refusal {
  name: string
  path: string
  json: unknown
  error: string
}

/** Each must be refused as it says, with `{ error }` alone, and must store nothing. */
async function expectRefusals(
  app: TestApp,
  status: number,
  rows: readonly Refusal[],
  key = 'free',
) {
  const before = await app.call('GET', '/api/list?limit=200', { key })
  for (const { name, path, json, error } of rows) {
    const at = `${path}: ${name}`
    const answer = await app.call('POST', path, { key, json })
    expect(outcome(at, answer)).toEqual({ at, status, body: { error } })
    expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/)
    // 60 writes in any minute: never one too many.
    app.advance(1000)
  }
  const after = await app.call('GET', '/api/list?limit=200', { key })
  expect(after.body).toEqual(before.body)
}

const badUrls: readonly (readonly [string, unknown])[] = [
  ['empty', ''],
  ['without a scheme', 'example.com'],
  ['ftp', 'ftp://example.com/'],
  ['javascript', 'javascript:alert(1)'],
  ['javascript with //', 'javascript://example.com/%0aalert(1)'],
  ['one slash', 'http:/example.com'],
  ['no slash', 'https:example.com'],
  ['a space before', ' https://example.com'],
  ['a scheme that begins like http', 'httpx://example.com'],
  ['network path', '//example.com'],
]
const notStrings: readonly (readonly [string, unknown])[] = [
  ['missing', undefined],
  ['null', null],
  ['a number', 5],
  ['a list', ['https://example.com/']],
  ['an object', { href: 'https://example.com/' }],
]

// spec: Errors | 400 URL missing
// spec: Code rules | 2
test('400: a URL missing, empty, not a string, or not starting with http:// or https://', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/kept')
  const rows = badUrls.flatMap(([name, url]) => [
    { name, path: '/api/shorten', json: { url } },
    { name, path: '/api/update', json: { code, passcode, url } },
    { name, path: '/api/bulk-shorten', json: { urls: [url] } },
  ])
  const strangers = notStrings.flatMap(([name, url]) => [
    { name, path: '/api/shorten', json: { url } },
    { name, path: '/api/bulk-shorten', json: { urls: [url ?? null] } },
  ])
  const bodies = [[], ['https://example.com/'], 'https://example.com/', 5, true, null].map(
    (json) => ({ name: `the body ${JSON.stringify(json)}`, path: '/api/shorten', json }),
  )
  const all = [...rows, ...strangers, ...bodies].map((row) => ({ ...row, error: INVALID_URL }))
  await expectRefusals(app, 400, all)
  expect(await app.call('GET', `/api/lookup/${code}`)).toMatchObject({
    body: { url: 'https://example.com/kept' },
  })
})

// spec: Errors | 400 custom code
// spec: Limits | Code length
test('400: a custom code that is not 6–20 alphanumeric characters', async () => {
  await using app = await testApp()
  const codes: readonly (readonly [string, unknown])[] = [
    ...notStrings,
    ['empty', ''],
    ['5 characters', 'ABCDE'],
    ['21 characters', 'ABCDEFGHIJKLMNOPQRSTU'],
    ['a dash', 'SPRING-26'],
    ['an underscore', 'SPRING_26'],
    ['a space', 'SPRING 26'],
    ['a newline at the end', 'SPRING26\n'],
    ['a dot', 'SPRING.26'],
    ['a letter beyond A to Z', 'SPRINGÉ26'],
    ['a sharp s, which is two letters in upper case', 'straße'],
    ['digits of another script', '١٢٣٤٥٦'],
    ['full-width letters', 'ＳＰＲＩＮＧ'],
  ]
  const rows = codes.map(([name, code]) => ({
    name,
    path: '/api/reserve',
    json: { code },
    error: INVALID_CODE,
  }))
  await expectRefusals(app, 400, rows)
})

// spec: Errors | 400 required body field missing
// design: 4.8 order of missing fields
test('400: a required body field missing, the first of code, passcode, url', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/kept')
  const url = 'https://example.com/new'
  const missing = (field: string) => `Missing required field: ${field}`
  const fields = { code, passcode, url }
  const rows: Refusal[] = []
  for (const [path, names] of [
    ['/api/update', ['code', 'passcode', 'url']],
    ['/api/delete', ['code', 'passcode']],
  ] as const) {
    for (const field of names) {
      for (const [name, value] of notStrings) {
        const json = { ...fields, [field]: value }
        rows.push({ name: `${field} is ${name}`, path, json, error: missing(field) })
      }
    }
    for (const json of [{}, [], null, 'text', { url }]) {
      rows.push({ name: JSON.stringify(json), path, json, error: missing('code') })
    }
    rows.push({ name: 'the code alone', path, json: { code }, error: missing('passcode') })
  }
  await expectRefusals(app, 400, rows)
  expect(await app.call('GET', `/api/lookup/${code}`)).toMatchObject({
    body: { url: 'https://example.com/kept' },
  })
})

// spec: Errors | 400 urls has 0 or more than 100 items
// spec: Limits | Bulk batch size, Free
// spec: Limits | Bulk batch size, Pro
// design: 4.7 the plan's batch size stands in the message
test("400: urls has no items or more than the plan's batch size", async () => {
  await using app = await testApp({ env: { ENTERPRISE_BULK_MAX: '3' } })
  const urls = (count: number) => Array(count).fill('https://example.com/')
  for (const [plan, most] of Object.entries({ free: 100, pro: 1000, enterprise: 3 })) {
    const error = `urls must contain between 1 and ${most} items`
    const bodies: readonly (readonly [string, unknown])[] = [
      ['no item', { urls: [] }],
      ['one item too many', { urls: urls(most + 1) }],
      ['urls missing', {}],
      ['a string', { urls: 'https://example.com/' }],
      ['an object', { urls: { 0: 'https://example.com/', length: 1 } }],
      ['null', { urls: null }],
      ['a list as the body', urls(2)],
    ]
    const rows = bodies.map(([name, json]) => ({ name, path: '/api/bulk-shorten', json, error }))
    await expectRefusals(app, 400, rows, plan)
    const whole = { key: plan, json: { urls: urls(most) } }
    expect(await app.call('POST', '/api/bulk-shorten', whole)).toMatchObject({
      status: 201,
      body: { count: most },
    })
  }
})

// spec: Errors | 404 code does not exist
// design: 4.9 public reads of a malformed code
test('404: the code does not exist or is malformed, said in upper case', async () => {
  await using app = await testApp()
  const { code } = await app.reserve('RESERVED1')
  for (const endpoint of PUBLIC.filter(({ path }) => path.includes('{code}'))) {
    for (const asked of ['unknown1', 'abc', 'A-B-C-D-E', 'A'.repeat(21), 'stra%C3%9Fe', '%20']) {
      const at = `${nameOf(endpoint)} ${asked}`
      const answer = await app.call('GET', pathOf(endpoint, asked))
      const error = `Code not found: ${decodeURIComponent(asked).toUpperCase()}`
      expect(outcome(at, answer)).toEqual({ at, status: 404, body: { error } })
    }
  }
  expect(await app.call('GET', `/${code}`)).toMatchObject({
    status: 404,
    body: { error: 'Code not found: RESERVED1' },
  })
})

// spec: Errors | 409 code already in use
test('409: the code is in use, reserved or active, in any letter case', async () => {
  await using app = await testApp()
  await app.reserve('RESERVED1', 'pro')
  const { code } = await app.shorten('https://example.com/', 'pro')
  const rows = ['RESERVED1', 'reserved1', code, code.toLowerCase()].map((asked) => ({
    name: asked,
    path: '/api/reserve',
    json: { code: asked },
    error: `Code already in use: ${asked.toUpperCase()}`,
  }))
  await expectRefusals(app, 409, rows)
})

// spec: Errors | 422 destination host on the abuse blocklist
test('422: the destination host is on the abuse blocklist', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, '0.0.0.0 blocked.example\n')
  await using app = await testApp({ env: { BLOCKLIST_FILES: list } })
  const { code, passcode } = await app.shorten('https://example.com/kept')
  const urls = [
    'http://blocked.example/',
    'https://www.BLOCKED.example:8443/a?b',
    'http://hop.test',
  ]
  const rows = urls.flatMap((url) => [
    { name: url, path: '/api/shorten', json: { url }, error: BLOCKED_URL },
    { name: url, path: '/api/update', json: { code, passcode, url }, error: BLOCKED_URL },
    { name: url, path: '/api/bulk-shorten', json: { urls: [url, url] }, error: BLOCKED_URL },
  ])
  await expectRefusals(app, 422, rows)
})
