import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { invalid, messageOf } from '../support/refusals.ts'

/** Aliases: further paths of a link, in exact case. */

const CODE = 'SPRING26'
const URL = 'https://example.com/landing'
const ALL = { env: { IMPORT_ALIASES: 'all' } }

const patch = (app: TestApp, aliases: unknown, code = CODE, key = 'free') =>
  app.call('PATCH', `/api/links/${code}`, { key, json: { aliases } })
const follow = (app: TestApp, path: string) => app.call('GET', `/${path}`)

const WELL_FORMED = [
  'a',
  'spring-sale',
  'Under_Score',
  'abc',
  'AbCdEf',
  'exactly-20-signs-now',
  'one-and-twenty-signs-x',
  'campaign/2026/spring',
  'file.name.html',
  'grüße/wörld',
  'emoji-🎉',
  'x'.repeat(255),
  '100%',
  'a b',
]

test('an alias redirects as its link does, under its code, and counts there', async () => {
  await using app = await testApp(ALL)
  await app.claim(CODE, URL)
  for (const path of WELL_FORMED) {
    expect(await patch(app, [path])).toMatchObject({ status: 200, body: { aliases: [path] } })
    const encoded = path.split('/').map(encodeURIComponent).join('/')
    for (let time = 0; time < 2; time++) {
      const answer = await follow(app, encoded)
      expect([path, answer.status, answer.headers.get('location')]).toEqual([path, 302, URL])
      expect(answer.headers.get('x-service-code')).toBe(CODE)
    }
  }
  const { body } = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(body.hit_count).toBe(2 * WELL_FORMED.length)
  expect(problemsOf(app)).toEqual([])
})

test('an alias that was removed is unknown from the next request on', async () => {
  await using app = await testApp(ALL)
  await app.claim(CODE, URL)
  await patch(app, ['one-way', 'other-way', 'AbCdEf'])
  for (const path of ['one-way', 'other-way', 'AbCdEf']) {
    expect((await follow(app, path)).status).toBe(302)
  }
  expect((await patch(app, ['other-way'])).body.aliases).toEqual(['other-way'])
  for (const path of ['one-way', 'AbCdEf']) expect((await follow(app, path)).status).toBe(404)
  expect((await follow(app, 'other-way')).status).toBe(302)
  expect((await patch(app, null)).body.aliases).toEqual([])
  expect((await follow(app, 'other-way')).status).toBe(404)
})

test('two paths that differ in case only lead to different links, and close the code of their form', async () => {
  await using app = await testApp(ALL)
  const upper = await app.shorten('https://example.com/upper')
  const lower = await app.shorten('https://example.com/lower')
  await patch(app, ['AbCdEf'], upper.code)
  await patch(app, ['abcdef'], lower.code)
  const destinations = async () => {
    const answers = await Promise.all(['AbCdEf', 'abcdef'].map((path) => follow(app, path)))
    return answers.map(({ headers }) => headers.get('location'))
  }
  expect(await destinations()).toEqual(['https://example.com/upper', 'https://example.com/lower'])
  for (const path of ['ABCDEF', 'aBcDeF']) expect((await follow(app, path)).status).toBe(404)
  const refused = await app.call('POST', '/api/reserve', { key: 'pro', json: { code: 'ABCDEF' } })
  expect(refused).toMatchObject({ status: 409, body: { error: 'Code already in use: ABCDEF' } })
  expect(await destinations()).toEqual(['https://example.com/upper', 'https://example.com/lower'])
  await patch(app, [], upper.code)
  await patch(app, [], lower.code)
  expect(await app.reserve('ABCDEF')).toMatchObject({ code: 'ABCDEF' })
})

test('the aliases of a deleted link are gone, and never lead to the next link of its code', async () => {
  await using app = await testApp(ALL)
  const { passcode } = await app.claim(CODE, URL)
  await patch(app, ['printed-path', 'PRINTed'])
  expect((await follow(app, 'printed-path')).status).toBe(302)
  expect((await follow(app, 'PRINTed')).status).toBe(302)
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  expect((await follow(app, 'printed-path')).status).toBe(404)
  await app.claim(CODE, 'https://evil.example/', 'pro')
  expect((await follow(app, CODE)).status).toBe(302)
  for (const path of ['printed-path', 'PRINTed']) expect((await follow(app, path)).status).toBe(404)
  expect(await patch(app, ['printed-path'], CODE, 'pro')).toMatchObject({ status: 200 })
  expect((await follow(app, 'printed-path')).headers.get('location')).toBe('https://evil.example/')
  expect(problemsOf(app)).toEqual([])
})

test('an alias has the rules of its link', async () => {
  await using app = await testApp(ALL)
  await app.claim(CODE, URL)
  await patch(app, ['with-rules'])
  const set = (json: object) => app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  await set({ paused: true })
  expect((await follow(app, 'with-rules')).status).toBe(404)
  await set({ paused: false, max_hits: 1 })
  expect((await follow(app, 'with-rules')).status).toBe(302)
  expect((await follow(app, 'with-rules')).status).toBe(410)
  await set({ max_hits: null, forward_query: true })
  expect((await follow(app, 'with-rules?a=1')).headers.get('location')).toBe(`${URL}?a=1`)
})

const REFUSED: [aliases: unknown, status: number, error: string | RegExp][] = [
  ['x', 400, /^Invalid aliases: /],
  [[5], 400, /^Invalid aliases: /],
  [Array.from({ length: 21 }, (_, n) => `a-${n}`), 400, /at most 20/],
  [[''], 400, /must not be empty/],
  [['a//b'], 400, /must not be empty/],
  [['../../etc/passwd'], 400, /must not be empty/],
  [['a/.'], 400, /must not be empty/],
  [['a\u0000'], 400, /control characters/],
  [['a?b'], 400, /control characters/],
  [['\ud800'], 400, /control characters/],
  [['x'.repeat(256)], 400, /255 bytes/],
  [['ü'.repeat(128)], 400, /255 bytes/],
  [['api/anything'], 409, 'Path already in use: api/anything'],
  [['app'], 409, 'Path already in use: app'],
  [['docs'], 409, 'Path already in use: docs'],
  [['qr/SPRING'], 409, 'Path already in use: qr/SPRING'],
  [['cdn/x'], 409, 'Path already in use: cdn/x'],
  [['.well-known/acme-challenge/x'], 409, /^Path already in use/],
  [['-/ready'], 409, 'Path already in use: -/ready'],
  [['free-1', 'spring26'], 409, 'Path already in use: spring26'],
  [['free-1', 'Taken-1'], 409, 'Path already in use: Taken-1'],
]
test.each(REFUSED)('%j is refused, and nothing is changed', async (aliases, status, error) => {
  await using app = await testApp(ALL)
  await app.claim(CODE, URL)
  await app.claim('OTHER26')
  await patch(app, ['Taken-1'], 'OTHER26')
  const answer = await patch(app, aliases)
  expect(answer).toMatchObject({ status, body: { error: expect.stringMatching(error) } })
  expect((await app.call('GET', `/api/links/${CODE}`, { key: 'free' })).body.aliases).toEqual([])
  expect((await follow(app, 'free-1')).status).toBe(404)
})

test('a list of more than 20 aliases that the link has already changes nothing or removes some', async () => {
  await using app = await testApp(ALL)
  const paths = (name: string) => Array.from({ length: 20 }, (_, n) => `${name}-${n}`)
  const all = [...paths('a'), ...paths('b')]
  const line = { code: CODE, url: URL, aliases: paths('a'), aliases_any_case: paths('b') }
  const headers = { 'content-type': 'application/x-ndjson' }
  const raw = JSON.stringify(line)
  expect((await app.call('POST', '/api/import', { key: 'free', headers, raw })).status).toBe(200)
  for (const aliases of [all, all.slice(1), all.slice(10)]) {
    const answer = await patch(app, aliases)
    expect(answer.status).toBe(200)
    expect([...(answer.body.aliases as string[])].sort()).toEqual([...aliases].sort())
  }
  expect(await patch(app, [...all.slice(10), 'one-more'])).toMatchObject({
    status: 400,
    body: { error: invalid('aliases') },
  })
})

test('properties and aliases are changed together, or not at all', async () => {
  await using app = await testApp(ALL)
  await app.claim(CODE, URL)
  await app.claim('OTHER26')
  await patch(app, ['Taken-1'], 'OTHER26')
  const change = (json: object) => app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  expect(await change({ title: 'New', aliases: ['free-1', 'Taken-1'] })).toMatchObject({
    status: 409,
  })
  const times = { starts_at: '2030-01-02T00:00:00Z', expires_at: '2030-01-01T00:00:00Z' }
  expect(await change({ ...times, aliases: ['free-1'] })).toMatchObject({ status: 400 })
  const { body } = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
  expect(body).toMatchObject({ title: null, starts_at: null, aliases: [] })
  expect(await change({ title: 'New', aliases: ['free-1'] })).toMatchObject({
    body: { title: 'New', aliases: ['free-1'] },
  })
})

test('accounts that are not owners can remove aliases, and add none', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  expect(await patch(app, ['spring-sale'])).toMatchObject({
    status: 403,
    body: { error: messageOf('alias_not_allowed') },
  })
  app.administer(({ db }) => db.run('UPDATE accounts SET is_owner = 1'))
  expect(await patch(app, ['spring-sale', 'b-b'])).toMatchObject({ status: 200 })
  app.administer(({ db }) => db.run('UPDATE accounts SET is_owner = 0'))
  expect((await patch(app, ['b-b'])).body.aliases).toEqual(['b-b'])
})

test('aliases count towards the bytes that an account may store', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all', FREE_URL_BYTES_MAX: '100' } })
  await app.claim(CODE, URL)
  expect(await patch(app, ['x'.repeat(100)])).toMatchObject({ status: 422 })
  expect(await patch(app, ['x'.repeat(70)])).toMatchObject({ status: 200 })
  expect(problemsOf(app)).toEqual([])
})

test('an alias in any case works in each case after its link was deleted and imported again', async () => {
  await using app = await testApp(ALL)
  const { passcode } = await app.claim(CODE, URL)
  await patch(app, ['myslug26'])
  app.administer(({ db }) => db.run('UPDATE aliases SET any_case = 1'))
  expect((await follow(app, 'MYSlug26')).status).toBe(302)
  await app.call('POST', '/api/delete', { key: 'free', json: { code: CODE, passcode } })
  expect((await follow(app, 'MYSlug26')).status).toBe(404)
  const again = 'https://example.com/again'
  const raw = JSON.stringify({ url: again, aliases_any_case: ['myslug26'] })
  const headers = { 'content-type': 'application/x-ndjson' }
  expect(await app.call('POST', '/api/import', { key: 'free', headers, raw })).toMatchObject({
    body: { links: 1 },
  })
  for (const path of ['myslug26', 'MYSlug26', 'MySlug26']) {
    expect((await follow(app, path)).headers.get('location')).toBe(again)
  }
})

const NFC = ['grün', '한국', 'Café/Ångström']
const composed = (path: string) => path.normalize('NFC')
const decomposed = (path: string) => path.normalize('NFD')
const encoded = (path: string) => path.split('/').map(encodeURIComponent).join('/')

test.each(NFC)('an alias is one path, whichever Unicode form it has: %s', async (path) => {
  await using app = await testApp(ALL)
  for (const form of [composed, decomposed]) {
    const { code, passcode } = await app.claim(CODE, URL)
    expect(await patch(app, [form(path)])).toMatchObject({ body: { aliases: [composed(path)] } })
    for (const asked of [composed, decomposed]) {
      expect((await follow(app, encoded(asked(path)))).headers.get('location')).toBe(URL)
      const other = await app.shorten(`https://example.com/${form.name}/${asked.name}`)
      expect(await patch(app, [asked(path)], other.code)).toMatchObject({ status: 409 })
    }
    expect(await patch(app, [decomposed(path), composed(path)])).toMatchObject({
      body: { aliases: [composed(path)] },
    })
    expect(await patch(app, [])).toMatchObject({ body: { aliases: [] } })
    for (const asked of [composed, decomposed]) {
      expect((await follow(app, encoded(asked(path)))).status).toBe(404)
    }
    await app.call('POST', '/api/delete', { key: 'free', json: { code, passcode } })
  }
  expect(problemsOf(app)).toEqual([])
})

test('imported paths are found in both Unicode forms, also those in any case', async () => {
  await using app = await testApp(ALL)
  const headers = { 'content-type': 'application/x-ndjson' }
  const lines = [
    { url: 'https://example.com/exact', aliases: [decomposed('Grüße')] },
    { url: 'https://example.com/any', aliases_any_case: [decomposed('ÜBER-uns')] },
  ]
  const raw = lines.map((line) => JSON.stringify(line)).join('\n')
  await app.call('POST', '/api/import', { key: 'free', headers, raw })
  const places = async (paths: string[]) => {
    const answers = await Promise.all(
      paths.flatMap((path) => [
        follow(app, encoded(composed(path))),
        follow(app, encoded(decomposed(path))),
      ]),
    )
    return new Set(answers.map((answer) => answer.headers.get('location')))
  }
  expect(await places(['Grüße'])).toEqual(new Set(['https://example.com/exact']))
  expect(await places(['über-uns', 'ÜBER-UNS'])).toEqual(new Set(['https://example.com/any']))
  // The same file again finds what it has created.
  expect(await app.call('POST', '/api/import', { key: 'free', headers, raw })).toMatchObject({
    body: { links: 0 },
  })
  expect(problemsOf(app)).toEqual([])
})
