import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { invalid } from '../support/refusals.ts'

/** Titles, tags, notes and rules of links, through GET and PATCH /api/links/{code}. */

const CODE = 'SPRING26'
const URL = 'https://example.com/landing'

const get = (app: TestApp, code = CODE, key = 'free') =>
  app.call('GET', `/api/links/${code}`, { key })
const patch = (app: TestApp, json: unknown, code = CODE, key = 'free') =>
  app.call('PATCH', `/api/links/${code}`, { key, json })

const PLAIN = {
  code: CODE,
  url: URL,
  short_url: `http://hop.test/${CODE}`,
  qr_url: `http://hop.test/qr/${CODE}`,
  created_at: '2026-03-01T12:00:00.000Z',
  hit_count: 0,
  title: null,
  note: null,
  tags: [],
  paused: false,
  starts_at: null,
  expires_at: null,
  max_hits: null,
  expired_url: null,
  destinations: [],
  forward_query: false,
  forward_path: 'off',
  no_index: false,
  protected: false,
  delete_at: null,
  domain: null,
  aliases: [],
  domain_aliases: {},
  display_url: 'http://hop.test/SPRING26',
  display_alias: null,
}

test('a link without properties has none of them', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  expect(await get(app, 'spring26')).toMatchObject({ status: 200, body: PLAIN })
  expect(await patch(app, {})).toMatchObject({ status: 200, body: PLAIN })
})

test('each property can be set, kept and cleared', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const sent = {
    title: '  Spring poster ',
    note: 'Line one\nLine two',
    tags: ['Poster', ' spring   2026', 'poster'],
    paused: true,
    starts_at: '2026-04-01T00:00:00+02:00',
    expires_at: '2026-05-01T00:00:00.5Z',
    max_hits: 1_000_000_000,
    expired_url: 'https://example.com/over',
    destinations: [{ when: { os: ['ios'] }, url: 'https://example.com/ios' }],
    forward_query: true,
    forward_path: 'append',
    no_index: true,
  }
  const stored = {
    ...PLAIN,
    ...sent,
    title: 'Spring poster',
    tags: ['poster', 'spring 2026'],
    starts_at: '2026-03-31T22:00:00.000Z',
    expires_at: '2026-05-01T00:00:00.500Z',
  }
  expect(await patch(app, sent)).toMatchObject({ status: 200, body: stored })
  expect((await patch(app, { title: 'Other' })).body).toEqual({ ...stored, title: 'Other' })
  expect((await get(app)).body).toEqual({ ...stored, title: 'Other' })
  const cleared = Object.fromEntries(Object.keys(sent).map((name) => [name, null]))
  expect((await patch(app, cleared)).body).toEqual(PLAIN)
  expect(problemsOf(app)).toEqual([])
})

const FIELDS =
  'The fields are url, title, tags, note, paused, starts_at, expires_at, max_hits, expired_url, forward_query, forward_path, no_index, destinations, domain, password, aliases, domain_aliases, display_alias.'

const REFUSED: [json: unknown, error: string][] = [
  [[], invalid('properties')],
  ['title', invalid('properties')],
  [null, invalid('properties')],
  [{ delete_at: null }, `Unknown field: delete_at. ${FIELDS}`],
  [{ title: 1 }, invalid('title')],
  [{ title: 'x'.repeat(201) }, invalid('title')],
  [{ title: 'two\nlines' }, invalid('title')],
  [{ title: '\ud800' }, invalid('title')],
  [{ note: 'x'.repeat(2001) }, invalid('note')],
  [{ note: 'a\u0000' }, invalid('note')],
  [{ tags: 'spring' }, invalid('tags')],
  [{ tags: Array.from({ length: 21 }, (_, n) => `tag ${n}`) }, invalid('tags')],
  [{ tags: [''] }, invalid('tags')],
  [{ tags: ['a,b'] }, invalid('tags')],
  [{ tags: ['x'.repeat(41)] }, invalid('tags')],
  [{ tags: [null] }, invalid('tags')],
  [{ paused: 'yes' }, invalid('paused')],
  [{ forward_query: 1 }, invalid('forward_query')],
  [{ forward_path: true }, invalid('forward_path')],
  [{ max_hits: 0 }, invalid('max_hits')],
  [{ max_hits: 1.5 }, invalid('max_hits')],
  [{ max_hits: 1_000_000_001 }, invalid('max_hits')],
  [{ max_hits: '5' }, invalid('max_hits')],
  [{ starts_at: 1 }, invalid('starts_at')],
  [{ starts_at: '2026-03-01' }, invalid('starts_at')],
  [{ starts_at: '2026-13-01T00:00:00Z' }, invalid('starts_at')],
  [{ starts_at: '2030-04-31T00:00:00Z' }, invalid('starts_at')],
  [{ expires_at: '2030-02-30T00:00:00Z' }, invalid('expires_at')],
  [{ expired_url: 'ftp://example.com' }, invalid('expired_url')],
  [{ starts_at: '2026-05-01T00:00:00Z', expires_at: '2026-05-01T00:00:00Z' }, invalid('starts_at')],
]
test('a leap day and the end of a day are times', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const times = { starts_at: '2028-02-29T00:00:00Z', expires_at: '2028-02-29T24:00:00Z' }
  expect(await patch(app, times)).toMatchObject({
    status: 200,
    body: { starts_at: '2028-02-29T00:00:00.000Z', expires_at: '2028-03-01T00:00:00.000Z' },
  })
})

test('PATCH refuses what a property may not contain, and changes nothing', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  for (const [json, error] of REFUSED) {
    expect(await patch(app, json)).toMatchObject({ status: 400, body: { error } })
  }
  await patch(app, { expires_at: '2026-05-01T00:00:00Z' })
  const late = await patch(app, { starts_at: '2026-06-01T00:00:00Z', title: 'Late' })
  expect(late).toMatchObject({ status: 400 })
  expect((await get(app)).body).toEqual({ ...PLAIN, expires_at: '2026-05-01T00:00:00.000Z' })
})

test('a code of another account is answered like an unknown one', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL, 'pro')
  for (const code of [CODE, 'UNKNOWN26', 'x', 'a-b']) {
    const refused = { status: 404, body: { error: `Code not found: ${code.toUpperCase()}` } }
    expect(await get(app, code)).toMatchObject(refused)
    expect(await patch(app, { title: 'Mine' }, code)).toMatchObject(refused)
  }
  expect((await get(app, CODE, 'pro')).body).toEqual(PLAIN)
})

test('properties count towards the quota of bytes, and a deletion makes room', async () => {
  await using app = await testApp({ env: { FREE_URL_BYTES_MAX: '1024' } })
  const { passcode } = await app.claim(CODE, URL)
  const full = { status: 422, body: { error: expect.stringContaining('Quota exceeded') } }
  expect(await patch(app, { note: 'ü'.repeat(500) })).toMatchObject(full)
  expect(await patch(app, { note: 'ü'.repeat(450), tags: ['a'] })).toMatchObject({ status: 200 })
  expect(await patch(app, { title: 'x'.repeat(150) })).toMatchObject(full)
  expect(await patch(app, { paused: true })).toMatchObject({ status: 200 })
  expect(problemsOf(app)).toEqual([])
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  expect(problemsOf(app)).toEqual([])
  await app.claim(CODE, `${URL}/${'x'.repeat(900)}`)
  expect(await get(app)).toMatchObject({
    status: 200,
    body: { note: null, tags: [], paused: false },
  })
})

test('the other endpoints answer the same for a link with properties', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const answers = async () => {
    const paths = [`/api/lookup/${CODE}`, '/api/list', `/api/qr-image/${CODE}`]
    return Promise.all(
      paths.map(async (path) => (await app.call('GET', path, { key: 'free' })).text),
    )
  }
  const before = await answers()
  await patch(app, { title: 'Hidden', tags: ['hidden'], paused: true, max_hits: 1 })
  expect(await answers()).toEqual(before)
  const found = await app.call('GET', '/api/list?search=hidden', { key: 'free' })
  expect(found.body).toMatchObject({ total: 0 })
})

test('a revoked key changes nothing, also if it was revoked while the body arrived', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const old = app.rotateKey('free', { now: true })
  expect(await patch(app, { title: 'x' }, CODE, old)).toMatchObject({ status: 401 })
  expect((await get(app)).body).toEqual(PLAIN)
})

test('links are listed with their properties, and found by them', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  await app.claim(CODE, URL)
  await app.claim('MENU2026', 'https://example.com/menu')
  const change = { title: 'Café sale', tags: ['poster'], paused: true, aliases: ['sommer-fest'] }
  const { body: changed } = await patch(app, change)
  const list = async (query: string, key = 'free') => {
    const { status, body } = await app.call('GET', `/api/links?${query}`, { key })
    expect([query, status]).toEqual([query, 200])
    return body as { total: number; count: number; items: { code: string }[] }
  }
  const all = await list('')
  expect([all.total, all.count]).toEqual([2, 2])
  expect(all.items[0]).toEqual((await get(app, 'MENU2026')).body as never)
  expect(all.items[1]).toEqual(changed as never)
  const FOUND = [
    ['search=cafe', [CODE]],
    ['search=SALE%20caf%C3%A9', [CODE]],
    ['search=sommer', [CODE]],
    ['search=hop.test/sommer-fest', [CODE]],
    ['search=menu', ['MENU2026']],
    ['tag=Poster', [CODE]],
    ['state=paused', [CODE]],
    ['state=active', ['MENU2026']],
    ['state=active&tag=poster', []],
    ['limit=1&offset=1', [CODE]],
  ] as const
  for (const [query, codes] of FOUND) {
    const { items } = await list(query)
    expect([query, items.map(({ code }) => code)]).toEqual([query, [...codes]])
  }
  expect((await list('', 'pro')).items).toEqual([])
})
