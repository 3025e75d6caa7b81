import { expect, test } from 'bun:test'
import { disableLink } from '../support/administration.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { invalid, messageOf } from '../support/refusals.ts'

/** POST /api/shorten and /api/reserve with a code, properties and aliases, in one transaction. */

const URL = 'https://example.com/landing'
const ALL = { env: { IMPORT_ALIASES: 'all' } }
const PROPERTIES = {
  title: 'Poster',
  tags: ['spring', 'print'],
  note: 'Hall 3',
  starts_at: '2026-01-01T00:00:00Z',
  expires_at: '2030-01-01T00:00:00Z',
  max_hits: 5,
  expired_url: 'https://example.com/over',
  forward_query: true,
  forward_path: 'append',
  no_index: true,
}
const STORED = {
  ...PROPERTIES,
  tags: ['print', 'spring'],
  starts_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2030-01-01T00:00:00.000Z',
}

const shorten = (app: TestApp, json: object, key = 'free') =>
  app.call('POST', '/api/shorten', { key, json })
const reserve = (app: TestApp, json: object, key = 'free') =>
  app.call('POST', '/api/reserve', { key, json })
const linkOf = async (app: TestApp, code: string) =>
  (await app.call('GET', `/api/links/${code}`, { key: 'free' })).body
const total = async (app: TestApp, key = 'free') =>
  (await app.call('GET', '/api/list', { key })).body.total

test('a new link has the code, the properties and the aliases of the request', async () => {
  await using app = await testApp(ALL)
  const created = await shorten(app, {
    url: URL,
    code: 'spring26',
    ...PROPERTIES,
    aliases: ['a-first', 'Z/second'],
    display_alias: 'a-first',
  })
  expect(created).toMatchObject({ status: 201, body: { code: 'SPRING26', reused: false } })
  expect(Object.keys(created.body).sort()).toEqual(
    ['code', 'created_at', 'passcode', 'qr_url', 'reused', 'short_url', 'url'].sort(),
  )
  expect(await linkOf(app, 'SPRING26')).toMatchObject({
    ...STORED,
    url: URL,
    aliases: ['Z/second', 'a-first'],
    display_url: expect.stringMatching(/\/a-first$/),
  })
  for (const path of ['SPRING26', 'a-first', 'Z/second']) {
    expect((await app.call('GET', `/${path}?x=1`)).headers.get('location')).toBe(`${URL}?x=1`)
  }
  const { body } = await app.call('GET', '/api/list?search=landing', { key: 'free' })
  expect(body.total).toBe(1)
  expect(problemsOf(app)).toEqual([])
})

test('a generated code goes with properties, and a reserved one too', async () => {
  await using app = await testApp(ALL)
  const { body } = await shorten(app, { url: URL, title: 'Generated', tags: null, code: null })
  expect(await linkOf(app, String(body.code))).toMatchObject({ title: 'Generated', tags: [] })
  const reserved = await reserve(app, { code: 'SUMMER26', ...PROPERTIES, aliases: ['soon'] })
  expect(reserved).toMatchObject({ status: 201, body: { reserved: true, url: null } })
  expect(await linkOf(app, 'SUMMER26')).toMatchObject({ ...STORED, url: null, aliases: ['soon'] })
  expect((await app.call('GET', '/soon')).status).toBe(404)
  expect(problemsOf(app)).toEqual([])
})

test('a URL that the account has keeps its code and properties', async () => {
  await using app = await testApp(ALL)
  await shorten(app, { url: URL, code: 'SPRING26', title: 'First' })
  const again = await shorten(app, {
    url: URL,
    code: 'OTHER026',
    title: 'Second',
    aliases: ['second'],
  })
  expect(again).toMatchObject({
    status: 200,
    body: { code: 'SPRING26', reused: true, passcode: null },
  })
  expect(await linkOf(app, 'SPRING26')).toMatchObject({ title: 'First', aliases: [] })
  expect((await app.call('GET', '/api/lookup/OTHER026')).status).toBe(404)
  // The same request twice is safe, although its code and alias are in use the second time.
  const one = { url: 'https://example.com/retry', code: 'RETRY026', aliases: ['retried'] }
  expect(await shorten(app, one)).toMatchObject({ status: 201 })
  expect(await shorten(app, one)).toMatchObject({ status: 200, body: { code: 'RETRY026' } })
})

test('a request with the fields of the contract only has exactly those of its answer', async () => {
  await using app = await testApp()
  expect((await shorten(app, { url: URL })).text).toMatch(
    /^\{"code":"\w+","url":"[^"]+","short_url":"[^"]+","qr_url":"[^"]+","created_at":"[^"]+","passcode":"\w{24}","reused":false\}$/,
  )
})

const BAD: [fields: object, error: string | RegExp][] = [
  [{ code: 'SPRING-26' }, messageOf('invalid_code')],
  [{ code: 5 }, messageOf('invalid_code')],
  [{ title: 5 }, /^Invalid title: /],
  [{ title: 'x'.repeat(201) }, /^Invalid title: /],
  [{ tags: 'a' }, /^Invalid tags: /],
  [{ tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }, /^Invalid tags: /],
  [{ note: false }, /^Invalid note: /],
  [{ paused: 'yes' }, /^Invalid paused: /],
  [{ starts_at: 'soon' }, /^Invalid starts_at: /],
  [{ expires_at: '2030-02-30T00:00:00Z' }, /^Invalid expires_at: /],
  [
    { starts_at: '2030-01-01T00:00:00Z', expires_at: '2029-01-01T00:00:00Z' },
    /^Invalid starts_at: /,
  ],
  [{ max_hits: 0 }, /^Invalid max_hits: /],
  [{ expired_url: 'ftp://example.com' }, /^Invalid expired_url: /],
  [{ expired_url: 'https://' }, /^Invalid expired_url: /],
  [{ forward_query: 1 }, /^Invalid forward_query: /],
  [{ no_index: 'x' }, /^Invalid no_index: /],
  [{ aliases: 'x' }, /^Invalid aliases: /],
  [{ aliases: ['a//b'] }, /^Invalid aliases: /],
  [{ aliases: ['a-b'], display_alias: 'other' }, /^Invalid display_alias: /],
  [{ display_alias: 'other' }, /^Invalid display_alias: /],
]
test.each(BAD)(
  '%j is refused with the name of the field, and creates nothing',
  async (fields, error) => {
    await using app = await testApp(ALL)
    const refusal = { status: 400, body: { error: expect.stringMatching(error) } }
    expect(await shorten(app, { url: URL, ...fields })).toMatchObject(refusal)
    expect(await reserve(app, { code: 'SPRING26', ...fields })).toMatchObject(refusal)
    expect(await total(app)).toBe(0)
    expect(problemsOf(app)).toEqual([])
  },
)

test('what is in use is 409 and creates nothing', async () => {
  await using app = await testApp(ALL)
  const { passcode } = await app.claim('TAKEN026', URL, 'pro')
  await app.call('PATCH', '/api/links/TAKEN026', {
    key: 'pro',
    json: { aliases: ['printed', 'MixedC'] },
  })
  await app.claim('DISABLED', `${URL}/2`, 'pro')
  await disableLink(app, 'DISABLED', 'spam')
  const inUse = (code: string) => `Code already in use: ${code}`
  const rows: [object, string][] = [
    [{ code: 'taken026' }, inUse('TAKEN026')],
    [{ code: 'mixedc' }, inUse('MIXEDC')],
    [{ code: 'disabled' }, inUse('DISABLED')],
    [{ code: 'SPRING26', aliases: ['printed'] }, 'Path already in use: printed'],
    [{ code: 'SPRING26', aliases: ['free-1', 'TAKEN026'] }, 'Path already in use: TAKEN026'],
    [{ code: 'SPRING26', aliases: ['spring26'] }, 'Path already in use: spring26'],
    [{ code: 'SPRING26', aliases: ['api/x'] }, 'Path already in use: api/x'],
  ]
  for (const [fields, error] of rows) {
    const refusal = { status: 409, body: { error } }
    expect(await shorten(app, { url: `${URL}/new`, ...fields })).toMatchObject(refusal)
    expect(await reserve(app, fields)).toMatchObject(refusal)
  }
  // A code in use is reported before a blocked URL.
  expect(await shorten(app, { url: 'http://hop.test/x', code: 'TAKEN026' })).toMatchObject({
    status: 409,
  })
  expect(await shorten(app, { url: 'http://hop.test/x', code: 'SPRING26' })).toMatchObject({
    status: 422,
  })
  expect(await reserve(app, { code: 'SPRING26', expired_url: 'http://hop.test/' })).toMatchObject({
    status: 422,
  })
  expect(await total(app)).toBe(0)
  await app.call('POST', '/api/delete', { key: 'pro', json: { code: 'TAKEN026', passcode } })
  expect(await shorten(app, { url: URL, code: 'TAKEN026', aliases: ['printed'] })).toMatchObject({
    status: 201,
  })
  expect(problemsOf(app)).toEqual([])
})

test('only owners create links with aliases, and the whole link counts towards the quota', async () => {
  await using app = await testApp({ env: { ALIASES: 'owners', FREE_URL_BYTES_MAX: '100' } })
  expect(await shorten(app, { url: URL, aliases: ['printed'] })).toMatchObject({
    status: 400,
    body: { error: invalid('aliases') },
  })
  expect(await shorten(app, { url: URL, aliases: [] })).toMatchObject({ status: 201 })
  expect(await shorten(app, { url: `${URL}/2`, note: 'x'.repeat(100) })).toMatchObject({
    status: 422,
  })
  expect(await total(app)).toBe(1)
  expect(problemsOf(app)).toEqual([])
})

test('of simultaneous requests for one code, one is answered with it', async () => {
  await using app = await testApp(ALL)
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      shorten(app, { url: `${URL}/${n}`, code: 'SPRING26', aliases: [`path-${n}`], title: 'x' }),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(409)])
  expect((await linkOf(app, 'SPRING26')).aliases).toHaveLength(1)
  expect(await total(app)).toBe(1)
  expect(problemsOf(app)).toEqual([])
})
