import { expect, test } from 'bun:test'
import { type TestApp, testApp } from '../support/app.ts'
import { problemsOf } from '../support/database.ts'
import { invalid, messageOf } from '../support/refusals.ts'

/** Aliases: further paths of a link, in any letter case, or in exact case if they were imported. */

const CODE = 'SPRING26'
const URL = 'https://example.com/landing'
const ALL = { env: { IMPORT_ALIASES: 'all' } }

const patch = (app: TestApp, aliases: unknown, code = CODE, key = 'free') =>
  app.call('PATCH', `/api/links/${code}`, { key, json: { aliases } })
const follow = (app: TestApp, path: string) => app.call('GET', `/${path}`)
const importLines = (app: TestApp, lines: readonly object[]) =>
  app.call('POST', '/api/import', {
    key: 'free',
    headers: { 'content-type': 'application/x-ndjson' },
    raw: lines.map((line) => JSON.stringify(line)).join('\n'),
  })

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

test('two imported paths that differ in case only lead to different links, and close the code of their form', async () => {
  await using app = await testApp(ALL)
  const [upper, lower] = ['https://example.com/upper', 'https://example.com/lower']
  await importLines(app, [
    { url: upper, aliases: ['AbCdEf'] },
    { url: lower, aliases: ['abcdef'] },
  ])
  const destinations = async () => {
    const answers = await Promise.all(['AbCdEf', 'abcdef'].map((path) => follow(app, path)))
    return answers.map(({ headers }) => headers.get('location'))
  }
  expect(await destinations()).toEqual([upper, lower])
  for (const path of ['ABCDEF', 'aBcDeF']) expect((await follow(app, path)).status).toBe(404)
  const refused = await app.call('POST', '/api/reserve', { key: 'pro', json: { code: 'ABCDEF' } })
  expect(refused).toMatchObject({ status: 409, body: { error: 'Code already in use: ABCDEF' } })
  expect(await destinations()).toEqual([upper, lower])
  const { body } = await app.call('GET', '/api/list', { key: 'free' })
  for (const { code } of body.items as { code: string }[]) await patch(app, [], code)
  expect(await app.reserve('ABCDEF')).toMatchObject({ code: 'ABCDEF' })
})

const IN_ANY_CASE: [typed: string, asked: string[]][] = [
  ['Spring-Team', ['spring-team', 'SPRING-TEAM', 'sPRING-tEAM']],
  ['abc', ['ABC', 'Abc']],
  ['Menu/2026', ['menu/2026', 'MENU/2026']],
  ['Über-Uns', ['über-uns', 'ÜBER-UNS']],
  ['Printed26', ['printed26', 'PRINTED26']],
  ['A-path-of-more-than-20-signs', ['a-path-of-more-than-20-signs']],
]
test.each(IN_ANY_CASE)(
  'the alias %s is shown as it was typed, and answers in any case',
  async (typed, asked) => {
    await using app = await testApp()
    await app.claim(CODE, URL)
    const encode = (path: string) => path.split('/').map(encodeURIComponent).join('/')
    expect((await patch(app, [typed])).body).toMatchObject({
      aliases: [typed],
      display_url: `http://hop.test/${encode(typed)}`,
    })
    for (let time = 0; time < 2; time++) {
      for (const path of [typed, ...asked]) {
        const { headers, status } = await follow(app, encode(path))
        expect([path, status, headers.get('location')]).toEqual([path, 302, URL])
      }
    }
    const { body } = await app.call('GET', `/api/links/${CODE}`, { key: 'free' })
    expect(body.hit_count).toBe(2 * (1 + asked.length))
    // Another account cannot have it in other letters.
    await app.claim('TAKEN026', URL, 'pro')
    for (const path of asked) {
      const error = `Path already in use: ${path}`
      expect(await patch(app, [path], 'TAKEN026', 'pro')).toMatchObject({
        status: 409,
        body: { error },
      })
    }
    // Gone in each case that was asked for.
    await patch(app, [])
    for (const path of [typed, ...asked]) expect((await follow(app, encode(path))).status).toBe(404)
    expect(await patch(app, asked.slice(0, 1), 'TAKEN026', 'pro')).toMatchObject({ status: 200 })
    expect(problemsOf(app)).toEqual([])
  },
)

test('an alias that is typed again in other letters is shown in them, and stays the displayed one', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const set = (json: object) => app.call('PATCH', `/api/links/${CODE}`, { key: 'free', json })
  await set({ aliases: ['spring-sale', 'newest'], display_alias: 'spring-sale' })
  expect((await set({ aliases: ['Spring-SALE', 'newest'] })).body).toMatchObject({
    aliases: ['Spring-SALE', 'newest'],
    display_alias: 'Spring-SALE',
    display_url: 'http://hop.test/Spring-SALE',
  })
  for (const path of ['spring-sale', 'Spring-SALE']) {
    expect((await follow(app, path)).status).toBe(302)
  }
  expect(problemsOf(app)).toEqual([])
})

test('an alias that differs from one in exact case in its letters only is refused with a sentence', async () => {
  await using app = await testApp()
  await app.claim(CODE, URL)
  const old = 'https://example.com/old'
  await importLines(app, [{ url: old, aliases: ['Printed-Path', 'Über', 'AbCdEf'] }])
  for (const path of ['printed-path', 'PRINTED-PATH', 'über', 'ABCDEF'] as const) {
    const refused = await patch(app, [path])
    const error = expect.stringMatching(/differs from another path in letter case only/)
    expect([path, refused]).toMatchObject([path, { status: 409, body: { error } }])
  }
  for (const both of [
    ['Menu', 'menu'],
    ['menu', 'MENU', 'other'],
  ]) {
    expect(await patch(app, both)).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/differs from another path in letter case only/) },
    })
  }
  // The imported one answers as it did.
  expect((await follow(app, 'Printed-Path')).headers.get('location')).toBe(old)
  expect((await follow(app, 'printed-path')).status).toBe(404)
  expect(problemsOf(app)).toEqual([])
})

test('aliases in both letter case rules, the displayed one and typed codes survive an export and an import', async () => {
  await using app = await testApp()
  await importLines(app, [
    { code: 'Summer26', url: 'https://example.com/1' },
    { code: 'WINTER26', url: 'https://example.com/2', aliases: ['Exact-Path'] },
  ])
  const set = (json: object) => app.call('PATCH', '/api/links/WINTER26', { key: 'free', json })
  await set({ aliases: ['Exact-Path', 'Any-Case', 'Other-Path'], display_alias: 'Any-Case' })
  const before = await app.call('GET', '/api/links', { key: 'free' })
  const { text } = await app.call('GET', '/api/export', { key: 'free' })
  await using other = await testApp()
  const raw = text
  const headers = { 'content-type': 'application/x-ndjson' }
  await other.call('POST', '/api/import', { key: 'free', headers, raw })
  const after = await other.call('GET', '/api/links', { key: 'free' })
  expect(after.body).toEqual(before.body)
  expect(after.text).toContain('http://hop.test/Summer26')
  const statuses = await Promise.all(
    ['exact-path', 'Exact-Path', 'any-case', 'OTHER-path', 'SUMMER26', 'summer26'].map(
      async (path) => (await follow(other, path)).status,
    ),
  )
  expect(statuses).toEqual([404, 302, 302, 302, 302, 302])
  // The same file again finds all of it.
  expect(await other.call('POST', '/api/import', { key: 'free', headers, raw })).toMatchObject({
    body: { links: 0 },
  })
  expect(problemsOf(other)).toEqual([])
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

const OWNERS: Record<string, string>[] = [
  { ALIASES: 'owners' },
  { SIGNUP: 'open' },
  { IMPORT_ALIASES: 'owners' },
  { ALIASES: 'owners', IMPORT_ALIASES: 'all' },
]
test.each(OWNERS)(
  'with %j, accounts that are not owners can remove aliases, and add none',
  async (env) => {
    await using app = await testApp({ env })
    await app.claim(CODE, URL)
    expect(await patch(app, ['spring-sale'])).toMatchObject({
      status: 403,
      body: { error: messageOf('alias_not_allowed') },
    })
    app.administer(({ db }) => db.run('UPDATE accounts SET is_owner = 1'))
    expect(await patch(app, ['spring-sale', 'b-b'])).toMatchObject({ status: 200 })
    app.administer(({ db }) => db.run('UPDATE accounts SET is_owner = 0'))
    expect((await patch(app, ['b-b'])).body.aliases).toEqual(['b-b'])
    // The letters of a code are no alias.
    await app.call('POST', '/api/reserve', { key: 'free', json: { code: 'Summer26' } })
    const { body } = await app.call('GET', '/api/links/SUMMER26', { key: 'free' })
    expect(body.display_url).toBe('http://hop.test/Summer26')
  },
)

const EVERYBODY: Record<string, string>[] = [
  {},
  { SIGNUP: 'open', ALIASES: 'all' },
  { SIGNUP: 'open', IMPORT_ALIASES: 'all' },
  { ALIASES: 'all', IMPORT_ALIASES: 'owners' },
]
test.each(EVERYBODY)('with %j, every account can add aliases', async (env) => {
  await using app = await testApp({ env })
  await app.claim(CODE, URL)
  expect(await patch(app, ['spring-sale'])).toMatchObject({ status: 200 })
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
