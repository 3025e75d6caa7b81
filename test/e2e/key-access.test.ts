import { expect, test } from 'bun:test'
import { type CallOptions, type TestApp, testApp } from '../support/app.ts'
import { ALL, nameOf, PUBLIC, pathOf } from '../support/endpoints.ts'
import { addKey, addManager, makeMember } from '../support/members.ts'
import { messageOf } from '../support/refusals.ts'

/** What keys with the access `create` and `manage` may do, and what pays for their requests. */

const URL = 'https://example.com/'
const CREATIONS = ['POST /api/shorten', 'POST /api/reserve', 'POST /api/bulk-shorten']
const left = (headers: Headers) => headers.get('x-ratelimit-remaining')

function addCreator(app: TestApp, perMinute = 60, name = 'Page'): string {
  app.key('free')
  return addKey(app, 'free@example.com', { name, scope: 'create', perMinute })
}

test('a key that creates shortens, reserves and shortens in bulk', async () => {
  await using app = await testApp()
  const key = addCreator(app)
  const bodies = {
    shorten: { url: URL },
    reserve: { code: 'SPRING26' },
    'bulk-shorten': { urls: [URL] },
  }
  for (const [name, json] of Object.entries(bodies)) {
    const { status } = await app.call('POST', `/api/${name}`, { key, json })
    expect([name, status]).toEqual([name, 201])
  }
})

test('everything else is 403 for a key that creates, also with the passcode, and changes nothing', async () => {
  await using app = await testApp({ env: { ANONYMOUS_WRITES_PER_MINUTE: '0' } })
  const key = addCreator(app)
  const link = await app.claim('SPRING26', URL)
  const before = await app.call('GET', '/api/links/SPRING26', { key: 'free' })
  const refused = ALL.filter((one) => one.needsKey && !CREATIONS.includes(nameOf(one)))
  expect(refused.length).toBeGreaterThan(10)
  for (const endpoint of refused) {
    const at = nameOf(endpoint)
    const json = { ...link, url: 'https://example.com/other', title: 'Other' }
    const options = endpoint.method === 'GET' ? { key } : { key, json }
    const { status, body } = await app.call(endpoint.method, pathOf(endpoint, link.code), options)
    const error = messageOf('read_only_key')
    expect({ at, status, body }).toEqual({ at, status: 403, body: { error } })
  }
  const after = await app.call('GET', '/api/links/SPRING26', { key: 'free' })
  expect(after.body).toEqual(before.body)
})

const SHOP = 'https://shop.example'
const WITHIN_FORM = { 'content-type': 'application/x-www-form-urlencoded' }

test.each([
  ['a program', {}, 201],
  ['a page that it lists', { origin: SHOP, 'sec-fetch-site': 'cross-site' }, 201],
  ['a page of the service', { origin: 'http://hop.test', host: 'hop.test' }, 201],
  ['a page of another site', { origin: 'https://evil.example' }, 403],
  ['a page without an origin', { origin: 'null' }, 403],
  ['a script element', { 'sec-fetch-site': 'cross-site' }, 403],
] as const)('a key that creates, used by %s', async (_, headers, expected) => {
  await using app = await testApp()
  app.key('free')
  const label = { name: 'Page', perMinute: 60, origins: [SHOP] }
  const key = addKey(app, 'free@example.com', { ...label, scope: 'create' })
  const { status } = await app.call('POST', '/api/shorten', { key, json: { url: URL }, headers })
  expect(status).toBe(expected)
  const form = new URLSearchParams({ signature: key, action: 'shorturl', url: `${URL}form` })
  const asForm = { raw: form.toString(), headers: { ...headers, ...WITHIN_FORM } }
  const { status: compatible } = await app.call('POST', '/yourls-api.php', asForm)
  expect(compatible).toBe(expected === 201 ? 200 : 403)
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  expect(body.total).toBe(expected === 201 ? 2 : 0)
})

test('a key that creates does not undo a deletion', async () => {
  await using app = await testApp()
  const key = addCreator(app)
  const free = await makeMember(app, 'free@example.com')
  const { code } = await app.shorten(URL)
  const path = `/app/links/${code}`
  await free.post(`${path}/delete`, {}, { from: path })
  const { body } = await app.call('POST', '/api/shorten', { key, json: { url: URL } })
  expect(body).toMatchObject({ reused: false, code: expect.not.stringMatching(String(code)) })
  const again = await app.call('POST', '/api/shorten', { key: 'free', json: { url: URL } })
  expect(again.body).toMatchObject({ reused: true, code })
})

test('a key that creates has a limit of its own, and spends the budget of its account', async () => {
  await using app = await testApp()
  const key = addCreator(app, 2)
  const other = addCreator(app, 59, 'Other')
  const shorten = (sent: string) =>
    app.call('POST', '/api/shorten', { key: sent, json: { url: URL } })
  const remaining = async (sent: string) => left((await shorten(sent)).headers)
  expect(await remaining(key)).toBe('1')
  expect(await remaining(key)).toBe('0')
  const { status, headers, body } = await shorten(key)
  expect([status, headers.get('retry-after'), headers.get('x-ratelimit-limit')]).toEqual([
    429,
    '60',
    '2',
  ])
  expect(body).toEqual({ error: messageOf('rate_limited', '60') })
  // The refused request has spent nothing of the 60 of the account.
  expect(await remaining('free')).toBe('57')
  expect(await remaining(other)).toBe('56')
  for (let i = 0; i < 56; i++) await shorten('free')
  expect((await shorten(other)).headers.get('x-ratelimit-limit')).toBe('60')
  app.advance(60_000)
  expect((await shorten(key)).status).toBe(200)
})

test('what a key that creates may not do, and public requests with it, are charged to the address', async () => {
  await using app = await testApp()
  const key = addCreator(app)
  const { code } = await app.shorten(URL, 'free')
  const ask = async (method: string, path: string, options: CallOptions) =>
    left((await app.call(method, path, options)).headers)
  expect(await ask('GET', '/api/list', { key })).toBe('299')
  expect(await ask('POST', '/api/update', { key, json: {} })).toBe('59')
  for (const [index, endpoint] of PUBLIC.entries()) {
    const from = `198.51.100.${index}`
    const first = await ask('GET', pathOf(endpoint, code), { key, from })
    const second = await ask('GET', pathOf(endpoint, code), { from })
    expect([nameOf(endpoint), Number(second)]).toEqual([nameOf(endpoint), Number(first) - 1])
  }
  expect(await ask('GET', '/api/list', { key: 'free' })).toBe('299')
})

test('a key that manages changes the destination with other properties, all or nothing', async () => {
  await using app = await testApp()
  const key = addManager(app, 'free')
  await app.reserve('SPRING26')
  await app.claim('FOREIGN1', URL, 'pro')
  const patch = (json: object, code = 'SPRING26') =>
    app.call('PATCH', `/api/links/${code}`, { key, json })
  const whereTo = async () => (await app.call('GET', '/SPRING26')).headers.get('location')
  const url = 'https://example.com/one'
  const changed = await patch({ url: URL, title: 'One' })
  expect(changed).toMatchObject({ status: 200, body: { url: URL, title: 'One' } })
  expect(await whereTo()).toBe(URL)
  expect(await patch({ url })).toMatchObject({ status: 200, body: { url, title: 'One' } })
  expect(await whereTo()).toBe(url)
  const found = await app.call('GET', '/api/list?search=example.com/one', { key })
  expect(found.body).toMatchObject({ total: 1 })
  const refused: [number, object][] = [
    [400, { url: 'ftp://example.com/', title: 'Two' }],
    [400, { url: null, title: 'Two' }],
    [400, { url: 'https://example.com/#part', forward_path: 'append', title: 'Two' }],
    [400, { url: 'https://example.com/two', tags: 'no list' }],
    [409, { url: 'https://example.com/two', aliases: ['api/status'] }],
    [422, { url: 'http://hop.test/SPRING26', title: 'Two' }],
  ]
  for (const [status, json] of refused)
    expect({ json, status: (await patch(json)).status }).toEqual({ json, status })
  expect((await patch({ url: 'https://example.com/two' }, 'FOREIGN1')).status).toBe(404)
  expect(await whereTo()).toBe(url)
  const { body } = await app.call('GET', '/api/links/SPRING26', { key })
  expect(body).toMatchObject({ url, title: 'One', tags: [], forward_path: 'off', aliases: [] })
})

test('a URL that is set by PATCH counts towards the quota of stored URLs', async () => {
  await using app = await testApp({ env: { FREE_URL_BYTES_MAX: '100' } })
  const key = addManager(app, 'free')
  await app.claim('SPRING26', URL)
  const patch = (url: string) => app.call('PATCH', '/api/links/SPRING26', { key, json: { url } })
  expect((await patch(URL.padEnd(101, 'x'))).status).toBe(422)
  expect((await patch(URL.padEnd(100, 'x'))).status).toBe(200)
  expect((await app.call('POST', '/api/shorten', { key, json: { url: URL } })).status).toBe(422)
  expect((await patch(URL)).status).toBe(200)
  const json = { url: 'https://example.com/b' }
  expect((await app.call('POST', '/api/shorten', { key, json })).status).toBe(201)
})

test('a key that manages deletes links of its account without their passcodes', async () => {
  await using app = await testApp({ env: { ANONYMOUS_READS_PER_MINUTE: '0' } })
  const key = addManager(app, 'free')
  await app.claim('SPRING26', URL)
  await app.claim('FOREIGN1', URL, 'pro')
  const remove = (code: string, sent = key) =>
    app.call('DELETE', `/api/links/${code}`, { key: sent })
  expect(await remove('FOREIGN1')).toMatchObject({ status: 404 })
  expect(await remove('spring26')).toMatchObject({
    status: 200,
    body: { code: 'SPRING26', deleted: true },
  })
  expect(await remove('SPRING26')).toMatchObject({ status: 404 })
  expect((await app.call('GET', '/SPRING26')).status).toBe(404)
  expect((await app.call('GET', '/FOREIGN1')).status).toBe(302)
})

test('a key that manages still needs the passcode for update and delete', async () => {
  await using app = await testApp()
  const key = addManager(app, 'free')
  const { code } = await app.claim('SPRING26', URL)
  const json = { code, passcode: 'A'.repeat(24) }
  for (const [path, body] of [
    ['/api/update', { ...json, url: URL }],
    ['/api/delete', json],
  ] as const) {
    expect(await app.call('POST', path, { key, json: body })).toMatchObject({
      status: 403,
      body: { error: messageOf('invalid_passcode', code) },
    })
  }
})

test('a key that reads and writes neither sets a URL by PATCH nor deletes without a passcode', async () => {
  await using app = await testApp()
  await app.claim('SPRING26', URL)
  const path = '/api/links/SPRING26'
  const refused = { status: 403, body: { error: messageOf('manage_key_needed') } }
  const json = { url: `${URL}b`, title: 'Two' }
  expect(await app.call('PATCH', path, { key: 'free', json })).toMatchObject(refused)
  expect(await app.call('DELETE', path, { key: 'free' })).toMatchObject(refused)
  const { body } = await app.call('GET', path, { key: 'free' })
  expect(body).toMatchObject({ url: URL, title: null })
})
