import { expect, test } from 'bun:test'
import { type Answer, type Body, type CallOptions, type TestApp, testApp } from '../support/app.ts'
import { appWithDomains, GO } from '../support/domains.ts'
import { addKey } from '../support/members.ts'

/** The REST API of Shlink, for tools that ask for its address and a key. */

const ALL = '/rest/v3/short-urls'
const URL = 'https://example.com/landing'

const create = (app: TestApp, json: Body = {}, options: CallOptions = {}) =>
  app.call('POST', ALL, { key: 'free', json: { longUrl: URL, ...json }, ...options })
const call = (app: TestApp, method: string, path: string, options: CallOptions = {}) =>
  app.call(method, `${ALL}${path}`, { key: 'free', ...options })

/** Fails unless the answer is a problem of this type. */
function expectProblem({ status, headers, body }: Answer, expected: [number, string]): void {
  expect([status, body.type]).toEqual([expected[0], `https://shlink.io/api/error/${expected[1]}`])
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(body).toMatchObject({ status, title: expect.any(String), detail: expect.any(String) })
}

const managing = (app: TestApp): string => {
  app.key('free')
  return addKey(app, 'free@example.com', { name: 'Manager', scope: 'manage' })
}

test('Shlink: a short URL is created with its properties, and shown with its visits', async () => {
  await using app = await testApp()
  const created = await create(app, {
    customSlug: 'Spring26',
    title: 'Menu',
    tags: ['Food', 'spring'],
    validSince: '2026-02-01T00:00:00+01:00',
    validUntil: '2027-01-01T00:00:00Z',
    maxVisits: 10,
    crawlable: true,
    shortCodeLength: 5,
  })
  const expected = {
    shortCode: 'Spring26',
    shortUrl: 'http://hop.test/Spring26',
    longUrl: URL,
    dateCreated: '2026-03-01T12:00:00+00:00',
    visitsSummary: { total: 0, nonBots: 0, bots: 0 },
    tags: ['food', 'spring'],
    meta: {
      validSince: '2026-01-31T23:00:00+00:00',
      validUntil: '2027-01-01T00:00:00+00:00',
      maxVisits: 10,
    },
    domain: null,
    title: 'Menu',
    crawlable: true,
    forwardQuery: true,
    hasRedirectRules: false,
  }
  expect([created.status, created.body]).toEqual([200, expected])
  await app.call('GET', '/SPRING26')
  const visitsSummary = { total: 1, nonBots: 1, bots: 0 }
  for (const code of ['Spring26', 'SPRING26']) {
    const { body } = await call(app, 'GET', `/${code}`)
    expect(body).toEqual({ ...expected, visitsSummary })
  }
})

test('Shlink: queries are forwarded unless the request says otherwise, as there', async () => {
  await using app = await testApp()
  await create(app, { customSlug: 'WITHQUERY' })
  await create(app, { customSlug: 'NOQUERY', forwardQuery: false })
  const target = async (code: string) =>
    (await app.call('GET', `/${code}?a=1`)).headers.get('location')
  expect(await target('WITHQUERY')).toBe(`${URL}?a=1`)
  expect(await target('NOQUERY')).toBe(URL)
})

test('Shlink: a link that exists is found only with findIfExists, and for the URL alone', async () => {
  await using app = await testApp()
  const codeOf = async (json: Body) => (await create(app, json)).body.shortCode
  const first = await codeOf({})
  expect(await codeOf({ findIfExists: true })).toBe(first)
  const others = [await codeOf({}), await codeOf({ findIfExists: true, tags: ['spring'] })]
  expect(new Set([first, ...others]).size).toBe(3)
  expect(await codeOf({ findIfExists: true, customSlug: 'SPRING26' })).toBe('SPRING26')
})

test('Shlink: a slug that is no code is an alias, on the domain of the link', async () => {
  await using app = await appWithDomains()
  const menu = await create(app, { customSlug: 'our menu' })
  expect(menu.body).toMatchObject({ shortCode: 'our-menu', shortUrl: 'http://hop.test/our-menu' })
  const other = await create(app, { customSlug: 'our-menu', domain: GO, longUrl: `${URL}/2` })
  expect(other.body).toMatchObject({ shortUrl: `http://${GO}/our-menu`, domain: GO })
  const urls = await Promise.all(
    ['/our-menu', `/our-menu?domain=${GO}`, '/our-menu?domain=DEFAULT'].map(
      async (path) => (await call(app, 'GET', path)).body.longUrl,
    ),
  )
  expect(urls).toEqual([URL, `${URL}/2`, URL])
  expectProblem(await call(app, 'GET', '/our-menu?domain=no.example'), [404, 'short-url-not-found'])
})

test('Shlink: pages of links, by their tag, a search and the most visits', async () => {
  await using app = await testApp()
  for (const n of [1, 2, 3]) {
    await create(app, { customSlug: `LINK000${n}`, longUrl: `${URL}/${n}`, tags: [`tag${n % 2}`] })
  }
  await create(app, { customSlug: 'OTHERS04' }, { key: 'pro' })
  await app.call('GET', '/LINK0002')
  const list = async (query: string) => {
    const { body } = await call(app, 'GET', `?${query}`)
    const { data, pagination } = body.shortUrls as { data: Body[]; pagination: Body }
    return { codes: data.map(({ shortCode }) => shortCode), pagination }
  }
  expect(await list('itemsPerPage=2')).toEqual({
    codes: ['LINK0003', 'LINK0002'],
    pagination: {
      currentPage: 1,
      pagesCount: 2,
      itemsPerPage: 2,
      itemsInCurrentPage: 2,
      totalItems: 3,
    },
  })
  const codes = async (query: string) => (await list(query)).codes
  expect(await codes('itemsPerPage=2&page=2')).toEqual(['LINK0001'])
  expect(await codes('itemsPerPage=-1&page=1')).toHaveLength(3)
  expect((await list('itemsPerPage=10000')).pagination.itemsPerPage).toBe(200)
  expect(await codes('tags[]=tag1&tagsMode=all')).toEqual(['LINK0003', 'LINK0001'])
  // As Postiz sends it.
  expect(await codes('page=1&itemsPerPage=20&tags=tag0')).toEqual(['LINK0002'])
  expect(await codes('searchTerm=landing/3')).toEqual(['LINK0003'])
  expect((await codes('orderBy=dateCreated-DESC'))[0]).toBe('LINK0003')
  await app.untilCounted()
  expect((await codes('orderBy=visits-DESC'))[0]).toBe('LINK0002')
  for (const query of [
    'orderBy=title-ASC',
    'startDate=2026-01-01',
    'excludeTags[]=a',
    'tags[]=a&tags[]=b',
    'page=x',
    'page=0',
    'itemsPerPage=x',
  ]) {
    expectProblem(await call(app, 'GET', `?${query}`), [400, 'invalid-data'])
  }
})

test('Shlink: what is sent is changed, and only a key that manages links sets their URL or deletes them', async () => {
  await using app = await testApp()
  await create(app, { customSlug: 'SPRING26', title: 'Menu', maxVisits: 5 })
  const path = '/SPRING26'
  const changed = await call(app, 'PATCH', path, { json: { title: null, tags: ['new'] } })
  expect([changed.status, changed.body]).toEqual([
    200,
    expect.objectContaining({
      title: null,
      tags: ['new'],
      meta: expect.objectContaining({ maxVisits: 5 }),
    }),
  ])
  const json = { longUrl: `${URL}/new`, maxVisits: null }
  expect((await call(app, 'PATCH', path, { json })).status).toBe(403)
  expect((await call(app, 'DELETE', path)).status).toBe(403)
  expect((await call(app, 'GET', path)).body).toMatchObject({
    longUrl: URL,
    meta: { maxVisits: 5 },
  })
  const key = managing(app)
  const moved = await call(app, 'PATCH', path, { key, json })
  expect(moved.body).toMatchObject({ longUrl: `${URL}/new`, meta: { maxVisits: null } })
  expect((await app.call('GET', '/SPRING26')).headers.get('location')).toBe(`${URL}/new`)
  const gone = await call(app, 'DELETE', path, { key })
  expect([gone.status, gone.text]).toEqual([204, ''])
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    const answer = await call(app, method, path, { key, ...(method === 'PATCH' && { json: {} }) })
    expectProblem(answer, [404, 'short-url-not-found'])
  }
})

test('Shlink: refusals are problems of the types that it has', async () => {
  await using app = await testApp({ env: { ALIASES: 'all' } })
  await create(app, { customSlug: 'SPRING26' })
  await create(app, { customSlug: 'our-menu' })
  await create(app, { customSlug: 'OTHERS04' }, { key: 'pro' })
  for (const customSlug of ['spring26', 'OTHERS04', 'our-menu', 'Our-Menu']) {
    expectProblem(await create(app, { customSlug }), [400, 'non-unique-slug'])
  }
  for (const [json, field] of [
    [{ longUrl: 'ftp://example.com' }, 'longUrl'],
    [{ longUrl: null }, 'longUrl'],
    [{ maxVisits: 0 }, 'maxVisits'],
    [{ validSince: 'tomorrow' }, 'validSince'],
    [{ tags: 'spring' }, 'tags'],
    [{ customSlug: 7 }, 'customSlug'],
    [{ customSlug: '../x' }, 'customSlug'],
  ] as const) {
    const answer = await create(app, json)
    expectProblem(answer, [400, 'invalid-data'])
    expect(answer.body.invalidElements).toEqual([field])
  }
  expectProblem(await create(app, { longUrl: 'http://hop.test/x' }), [400, 'invalid-url'])
  const broken = await call(app, 'POST', '', { raw: '{"longUrl"' })
  expectProblem(broken, [400, 'malformed-request-body'])
  for (const raw of ['[]', '"x"', 'null']) {
    expectProblem(await call(app, 'POST', '', { raw }), [400, 'invalid-data'])
  }
  expectProblem(await call(app, 'GET', '/OTHERS04'), [404, 'short-url-not-found'])
  expectProblem(await app.call('GET', ALL), [401, 'missing-authentication'])
  expectProblem(await app.call('GET', ALL, { key: 'no-key' }), [401, 'invalid-api-key'])
  expectProblem(await app.call('GET', '/rest/v3/tags', { key: 'free' }), [404, 'not-found'])
  const put = await call(app, 'PUT', '')
  expect([put.status, put.body.status, put.headers.get('allow')]).toEqual([
    405,
    405,
    'POST, GET, HEAD',
  ])
})

test('Shlink: JSON is read whatever the content type is, as Raycast and PrivateBin send it', async () => {
  await using app = await testApp()
  const raw = JSON.stringify({ longUrl: 'https://paste.example/?a81b2c3d4e5f6071#H1kLpQ' })
  for (const type of [
    'application/json',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
  ]) {
    const { status, body } = await call(app, 'POST', '', { raw, headers: { 'content-type': type } })
    expect([type, status, body.longUrl]).toEqual([type, 200, JSON.parse(raw).longUrl])
  }
})

test('Shlink: requests are charged like those for which they stand, and a reading key changes nothing', async () => {
  await using app = await testApp()
  const limitOf = ({ headers }: Answer) => headers.get('x-ratelimit-limit')
  expect(limitOf(await create(app, { customSlug: 'SPRING26' }))).toBe('60')
  expect(limitOf(await call(app, 'PATCH', '/SPRING26', { json: {} }))).toBe('60')
  expect(limitOf(await call(app, 'GET', '/SPRING26'))).toBe('300')
  const key = addKey(app, 'free@example.com', { name: 'Reader', scope: 'read' })
  expect((await create(app, {}, { key })).status).toBe(403)
  expect((await call(app, 'PATCH', '/SPRING26', { key, json: {} })).status).toBe(403)
  expect((await call(app, 'DELETE', '/SPRING26', { key })).status).toBe(403)
  expect((await call(app, 'GET', '/SPRING26', { key })).status).toBe(200)
  for (let left = 60; left > 0; left--) await create(app)
  const over = await create(app)
  expect([over.status, over.headers.get('retry-after')]).toEqual([429, expect.any(String)])
  expect(over.body).toMatchObject({ type: 'about:blank', status: 429 })
  app.maintenance(app.now() + 60_000)
  expect((await call(app, 'GET', '/SPRING26')).status).toBe(503)
})

test('Shlink: health needs no key', async () => {
  await using app = await testApp()
  for (const path of ['/rest/health', '/rest/v3/health']) {
    const { status, headers, text } = await app.call('GET', path)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/health+json'])
    expect(JSON.parse(text)).toMatchObject({ status: 'pass', version: expect.any(String) })
  }
})

test('a key that can only create sees nothing of the links that an account has', async () => {
  await using app = await testApp()
  await create(app, { customSlug: 'SPRING26', title: 'Secret plan', tags: ['secret'] })
  const key = addKey(app, 'free@example.com', { name: 'Website', scope: 'create' })
  const yourls = (parameters: Record<string, string>) =>
    app.call(
      'GET',
      `/yourls-api.php?${new URLSearchParams({ format: 'json', signature: key, ...parameters })}`,
    )
  const found = await create(app, { findIfExists: true }, { key })
  expect(found.body).toMatchObject({ shortCode: 'SPRING26', title: null, tags: [] })
  const again = await yourls({ action: 'shorturl', url: URL })
  expect(again.body).toMatchObject({ code: 'error:url', shorturl: 'http://hop.test/SPRING26' })
  for (const { text } of [found, again]) expect(text).not.toContain('ecret')
  expect((await create(app, { longUrl: `${URL}/2` }, { key })).status).toBe(200)
  for (const action of ['expand', 'url-stats', 'stats', 'db-stats']) {
    expect([action, (await yourls({ action, shorturl: 'SPRING26' })).status]).toEqual([action, 403])
  }
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    expect([method, (await call(app, method, '/SPRING26', { key })).status]).toEqual([method, 403])
  }
  expect((await call(app, 'GET', '', { key })).status).toBe(403)
})
