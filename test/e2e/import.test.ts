import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { movingCommands } from '../../src/cli/moving.ts'
import { databaseFile } from '../../src/db/open.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { setUpOwner } from '../support/dashboard.ts'
import { openBeside, problemsOf, sharedRows } from '../support/database.ts'
import { temporaryFolder } from '../support/folder.ts'

/** POST /api/import and GET /api/export. */

const ALL = { env: { IMPORT_ALIASES: 'all' } }
const TYPE = { 'content-type': 'application/x-ndjson' }

const send = (app: TestApp, lines: readonly unknown[], query = '', key = 'free') =>
  app.call('POST', `/api/import${query}`, {
    key,
    headers: TYPE,
    raw: lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  })
const outcomes = async (app: TestApp, lines: readonly unknown[], query = '', key = 'free') =>
  ((await send(app, lines, query, key)).body.results as { outcome: string }[]).map(
    ({ outcome }) => outcome,
  )
/** The lines of links. */
const exported = async (app: TestApp, key = 'free') =>
  (await app.call('GET', '/api/export', { key })).text
    .split('\n')
    .filter((line) => !line.startsWith('{"hopcode_export"'))
    .join('\n')
const follow = (app: TestApp, path: string) => app.call('GET', `/${path}`)

const FULL = {
  code: 'SPRING26',
  url: 'https://example.com/landing',
  created_at: '2020-01-02T03:04:05.678Z',
  hits: 1204,
  aliases: ['Spring-Sale', 'a', 'x/y'],
  aliases_any_case: ['any-case'],
  title: 'Spring',
  tags: ['poster', 'spring'],
  note: 'Printed twice',
  expires_at: '2030-01-01T00:00:00.000Z',
  max_hits: 5000,
  expired_url: 'https://example.com/over',
  forward_query: true,
  forward_path: 'append',
  no_index: true,
}
const LINES = [
  FULL,
  { code: 'RESERVED1', url: null, created_at: '2021-01-01T00:00:00.000Z' },
  {
    code: 'PAUSED26',
    url: 'https://example.com/p',
    created_at: '2022-01-01T00:00:00.000Z',
    paused: true,
  },
  {
    url: 'https://example.com/landing',
    created_at: '2023-01-01T00:00:00.000Z',
    aliases: ['second'],
  },
]

test('links come with their codes, dates, hits, properties and aliases', async () => {
  await using app = await testApp(ALL)
  expect(await send(app, LINES)).toMatchObject({
    status: 200,
    body: {
      count: 4,
      links: 4,
      results: [
        { outcome: 'created_alias', code: 'SPRING26', message: '' },
        { outcome: 'created', code: 'RESERVED1' },
        { outcome: 'created_paused', code: 'PAUSED26' },
        { outcome: 'created_alias', code: expect.stringMatching(/^[A-Z2-9]{8}$/) },
      ],
    },
  })
  const { body } = await app.call('GET', '/api/links/SPRING26', { key: 'free' })
  expect(body).toMatchObject({
    ...withoutAliases(FULL),
    hit_count: 1204,
    created_at: FULL.created_at,
  })
  expect(body.aliases).toEqual(['Spring-Sale', 'a', 'any-case', 'x/y'])
  for (const path of ['SPRING26', 'Spring-Sale', 'a', 'x/y', 'any-case', 'ANY-Case']) {
    const answer = await follow(app, path)
    expect([path, answer.headers.get('location')]).toEqual([path, FULL.url])
  }
  for (const path of ['spring-sale', 'A', 'X/y', 'PAUSED26', 'RESERVED1']) {
    expect([path, (await follow(app, path)).status]).toEqual([path, 404])
  }
  const list = await app.call('GET', '/api/list?search=landing', { key: 'free' })
  expect(list.body).toMatchObject({ total: 2 })
  const status = await app.call('GET', '/api/status')
  expect(status.body.total_redirects).toBe(6)
  expect(problemsOf(app)).toEqual([])
})

const withoutAliases = ({ aliases, aliases_any_case, hits, ...line }: typeof FULL) => line

test('an export that is imported into an empty service has the same export', async () => {
  await using app = await testApp(ALL)
  await send(app, LINES)
  await using other = await testApp(ALL)
  const first = await exported(app)
  expect(first.split('\n')).toHaveLength(LINES.length + 1)
  expect(await outcomes(other, first.split('\n'))).toEqual([
    'created_alias',
    'created',
    'created_paused',
    'created_alias',
  ])
  expect(await exported(other)).toBe(first)
  expect(await outcomes(other, first.split('\n'))).toEqual(Array(4).fill('exists'))
  expect(await exported(other)).toBe(first)
})

test('a text that reads like a value that is not set is in the export', async () => {
  await using app = await testApp()
  await send(app, [{ code: 'NULLED26', url: 'https://example.com/', title: 'null', note: 'null' }])
  expect(JSON.parse(await exported(app))).toMatchObject({ title: 'null', note: 'null' })
})

test('a dry run has the outcomes of the import, and changes nothing', async () => {
  await using app = await testApp({
    env: { IMPORT_ALIASES: 'all', FREE_LINKS_MAX: '3' },
  })
  const lines = [{ url: 'javascript:alert(1)' }, ...LINES]
  const rows = () => [...sharedRows(databaseFile(app.dataDir))]
  // A key's last use is noted with its first request.
  await send(app, ['{}'])
  const before = rows()
  const dry = await send(app, lines, '?dry_run=true')
  expect(rows()).toEqual(before)
  const real = await send(app, lines)
  const found = (answer: typeof dry) =>
    (answer.body.results as { outcome: string; message: string }[]).map(({ outcome, message }) => [
      outcome,
      message,
    ])
  expect(found(dry)).toEqual(found(real))
  expect(found(real).map(([outcome]) => outcome)).toEqual([
    'invalid_url',
    'created_alias',
    'created',
    'created_paused',
    'quota',
  ])
  expect([dry.body.links, dry.body.bytes]).toEqual([real.body.links, real.body.bytes])
})

test('what exists is kept: another URL, another account, a disabled code, a path of the service', async () => {
  await using app = await testApp({ env: { IMPORT_ALIASES: 'all' } })
  await app.claim('OWNLINK1', 'https://example.com/own')
  await app.claim('OTHERS1', 'https://example.com/others', 'pro')
  await send(app, [{ url: 'https://example.com/alias', aliases: ['my-alias', 'AbCdEf'] }])
  app.administer(({ db }) => db.run("INSERT INTO disabled_codes VALUES ('DISABLED1', 'abuse', 1)"))
  const url = 'https://example.com/new'
  const rows: [line: object, outcome: string][] = [
    [{ code: 'OWNLINK1', url: 'https://example.com/own' }, 'exists'],
    [{ code: 'ownlink1', url }, 'kept'],
    [{ code: 'OTHERS1', url }, 'path_taken'],
    [{ code: 'DISABLED1', url }, 'path_taken'],
    [{ code: 'ABCDEF', url }, 'path_taken'],
    [{ url: 'https://example.com/alias', aliases: ['my-alias'] }, 'exists'],
    [{ url, aliases: ['my-alias'] }, 'kept'],
    [{ url, aliases: ['others1'] }, 'path_taken'],
    [{ url, aliases: ['disabled1'] }, 'path_taken'],
    [{ url, aliases: ['api/status'] }, 'reserved_path'],
    [{ url, aliases: ['app'] }, 'reserved_path'],
    [{ url, aliases: ['App/sign-in'] }, 'reserved_path'],
    [{ url, aliases: ['API/shorten'] }, 'reserved_path'],
    [{ url, aliases: ['DOCS'] }, 'reserved_path'],
    [{ url, aliases: ['.Well-Known/acme-challenge/x'] }, 'reserved_path'],
    [{ url, aliases: ['ads.txt'] }, 'reserved_path'],
    [{ url, aliases: ['SW.js'] }, 'reserved_path'],
    [{ url, aliases_any_case: ['App/sign-in'] }, 'reserved_path'],
    [{ url, aliases: ['../../etc/passwd'] }, 'invalid_path'],
    [{ url, aliases: ['a\u0000'] }, 'invalid_path'],
    [{ url, code: 'a-b-c-d' }, 'invalid_path'],
    [{ url: null }, 'invalid_url'],
    [{ url: 'https://example.com/a b' }, 'invalid_url'],
    [{ url: 'http://hop.test/SPRING26' }, 'blocked'],
    [{ url, expired_url: 'http://hop.test/SPRING26' }, 'blocked'],
    [{ url, starts_at: '2030-01-01T00:00:00Z', expires_at: '2029-01-01T00:00:00Z' }, 'bad_row'],
    [{ url, hits: -1 }, 'bad_row'],
    [{ url, hits: 1e300 }, 'bad_row'],
    [{ url, created_at: '02.01.2024' }, 'bad_row'],
    [{ url, created_at: '2023-02-29T00:00:00Z' }, 'bad_row'],
    [{ url, starts_at: '2030-04-31T00:00:00Z' }, 'bad_row'],
    [{ url, expires_at: '2030-02-30T00:00:00Z' }, 'bad_row'],
    [{ url, tags: 'a' }, 'bad_row'],
  ]
  expect(
    await outcomes(
      app,
      rows.map(([line]) => line),
    ),
  ).toEqual(rows.map(([, outcome]) => outcome))
  expect(problemsOf(app)).toEqual([])
  expect((await follow(app, 'OTHERS1')).headers.get('location')).toBe('https://example.com/others')
})

test('hostile lines are refused one by one', async () => {
  await using app = await testApp()
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const long = JSON.stringify({ url: 'https://example.com/', note: 'x'.repeat(300_000) })
  const lines = [
    deep,
    long,
    '{',
    'null',
    '[]',
    '5',
    '{"hopcode_export":1}',
    '{"__proto__":{"url":1}}',
  ]
  expect(await outcomes(app, lines, '', 'pro')).toEqual([
    'bad_row',
    'bad_row',
    'bad_row',
    'bad_row',
    'bad_row',
    'bad_row',
    'left_out',
    'invalid_url',
  ])
  const old = await send(app, [
    { code: 'YEAR1970', url: 'https://example.com/1', created_at: '1970-01-01T00:00:00Z' },
    { code: 'YEAR9999', url: 'https://example.com/2', created_at: '9999-01-01T00:00:00Z' },
  ])
  expect(old.body.results).toMatchObject(
    [
      { outcome: 'created', message: /not plausible/ },
      { outcome: 'created', message: /not plausible/ },
    ].map(({ outcome, message }) => ({ outcome, message: expect.stringMatching(message) })),
  )
  const { body } = await app.call('GET', '/api/lookup/YEAR9999')
  expect(body.created_at).toBe('2026-03-01T12:00:00.000Z')
})

// design: 4.16 an unknown field of an endpoint that creates or changes is 400
test('a field that lines do not have is named in the result of its line, and an unknown parameter refuses all', async () => {
  await using app = await testApp()
  const lines = [
    { url: 'https://example.com/1', customSlug: 'promo' },
    { url: 'https://example.com/2' },
    { url: 'ftp://example.com/3', slug: 'x' },
  ]
  for (const name of ['dryRun', 'dry-run', 'planned_links']) {
    const { status, body } = await send(app, lines, `?${name}=true`)
    expect({ name, status }).toEqual({ name, status: 400 })
    expect(body.error).toStartWith(`Unknown field: ${name}. `)
  }
  expect((await app.call('GET', '/api/list', { key: 'free' })).body.total).toBe(0)
  const { body } = await send(app, lines)
  expect(body.results).toMatchObject([
    {
      outcome: 'bad_row',
      code: null,
      message: expect.stringMatching(/^Unknown field: customSlug\. /),
    },
    { outcome: 'created' },
    { outcome: 'invalid_url' },
  ])
})

/** An import whose calls of the writer are counted: the characters of the rows of each. */
function countedImport(app: TestApp) {
  app.key('pro')
  const deps = app.administration
  const sizes: number[] = []
  const { data } = deps
  const imports: typeof data.imports = {
    ...data.imports,
    add(message, options) {
      sizes.push(message.rows.length)
      return data.imports.add(message, options)
    },
  }
  const send = (lines: readonly string[]) =>
    movingCommands.importBatch(
      { ...deps, data: { ...data, imports } },
      { account: 'pro@example.com', lines },
    )
  return { sizes, send }
}

test('lines that exist are not sent to the writer again', async () => {
  await using app = await testApp(ALL)
  const { sizes, send } = countedImport(app)
  const lines = LINES.map((line) => JSON.stringify(line))
  await send(lines)
  const again = await send(lines)
  expect(sizes).toHaveLength(1)
  expect(again.results.map(({ outcome }) => outcome)).toEqual(Array(4).fill('exists'))
  const more = await send([...lines, JSON.stringify({ url: 'https://example.com/more' })])
  expect(sizes).toHaveLength(2)
  expect(more.results.map(({ outcome }) => outcome).slice(3)).toEqual(['exists', 'created'])
})

test('one call of the writer has at most a megabyte of rows', async () => {
  await using app = await testApp()
  const { sizes, send } = countedImport(app)
  const lines = Array.from({ length: 400 }, (_, n) =>
    JSON.stringify({ url: `https://example.com/${n}/${'x'.repeat(8000)}`, note: 'y'.repeat(2000) }),
  )
  const { results } = await send(lines)
  expect(results.filter(({ outcome }) => outcome === 'created')).toHaveLength(400)
  expect(sizes.length).toBeGreaterThan(3)
  expect(Math.max(...sizes)).toBeLessThan(1.1 * 1024 * 1024)
})

test('requests that are none are refused as a whole', async () => {
  await using app = await testApp()
  const refusals: [raw: string, headers: Record<string, string>, status: number][] = [
    ['{}', { 'content-type': 'application/json' }, 415],
    ['', TYPE, 400],
    [Array(101).fill('{}').join('\n'), TYPE, 400],
    // None of the lines is left out without a result.
    [`{}${'\n'.repeat(1000)}{}`, TYPE, 400],
  ]
  for (const [raw, headers, status] of refusals) {
    expect(await app.call('POST', '/api/import', { key: 'free', raw, headers })).toMatchObject({
      status,
    })
  }
  const bytes = new Uint8Array([0xff, 0xfe, 0x00])
  expect(
    await app.call('POST', '/api/import', { key: 'free', raw: bytes, headers: TYPE }),
  ).toMatchObject({ status: 400 })
  expect(await app.call('POST', '/api/import', { raw: '{}', headers: TYPE })).toMatchObject({
    status: 401,
  })
  expect(await app.call('GET', '/api/export?format=xml', { key: 'free' })).toMatchObject({
    status: 400,
  })
})

test('with ALIASES=owners, members cannot import aliases, and codes they can', async () => {
  await using app = await testApp({ env: { ALIASES: 'owners' } })
  const url = 'https://example.com/'
  expect(
    await outcomes(app, [
      { url, aliases: ['a-b'] },
      { url, code: 'SPRING26' },
    ]),
  ).toEqual(['not_allowed', 'created'])
})

test('a row that is stored already exists, whatever was blocked or closed later', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  const options = { dataDir: folder.path, env: { BLOCKLIST_FILES: list } }
  const url = 'https://blocked.example/1'
  const expired_url = 'https://blocked.example/over'
  const when = { os: ['ios'] }
  const lines = [
    { url, code: 'SPRING26' },
    { url: 'https://blocked.example/2' },
    { url: 'https://example.com/3', code: 'SUMMER26', expired_url },
    { url: 'https://example.com/4', code: 'AUTUMN26', destinations: [{ when, url }] },
    { url: 'https://example.com/5', aliases: ['menu'] },
  ]
  const others = [
    { url, code: 'WINTER26' },
    { url: 'https://blocked.example/6', code: 'SPRING26' },
    { url: 'https://example.com/7', aliases: ['menu-7'] },
    { url: 'https://example.com/8', aliases: ['menu'] },
  ]
  writeFileSync(list, '')
  {
    await using app = await testApp(options)
    expect(new Set(await outcomes(app, lines))).toEqual(new Set(['created', 'created_alias']))
  }
  writeFileSync(list, '0.0.0.0 blocked.example\n')
  const env = { ...options.env, ALIASES: 'owners' }
  await using app = await testApp({ ...options, env })
  app.rotateKey('free')
  for (const query of ['?dry_run=true', '']) {
    expect(await outcomes(app, [...lines, ...others], query)).toEqual([
      ...lines.map(() => 'exists'),
      'blocked',
      'blocked',
      'not_allowed',
      'not_allowed',
    ])
  }
  const { total } = (await app.call('GET', '/api/list', { key: 'free' })).body
  expect(total).toBe(lines.length)
})

test('the CSV export has the headings that other importers read', async () => {
  await using app = await testApp(ALL)
  await send(app, [{ ...FULL, title: '=1+1' }])
  const { text } = await app.call('GET', '/api/export?format=csv', { key: 'free' })
  expect(text).toBe(
    'Short URL,Short code,Long URL,Title,Tags,Created at,Hits\r\n' +
      `http://hop.test/Spring-Sale,SPRING26,${FULL.url},'=1+1,` +
      `"poster, spring",${FULL.created_at},1204\r\n`,
  )
})

test('charts say how many hits were imported and have no dates', async () => {
  await using app = await testApp(ALL)
  const { owner, key } = await setUpOwner(app)
  const line = { code: 'PRINTED26', url: 'https://example.com/', hits: 1204 }
  expect(await outcomes(app, [line], '', key)).toEqual(['created'])
  await follow(app, 'PRINTED26')
  for (const path of ['/app/links/PRINTED26', '/app/analytics']) {
    expect((await owner.get(path)).text).toContain('1,204 are from elsewhere, without dates')
  }
})

test('an import keeps links that exist and whose deletion is scheduled', async () => {
  await using app = await testApp(ALL)
  await send(app, LINES)
  const db = openBeside(app.dataDir)
  db.run('UPDATE links SET delete_at = ?', [Date.now() + 3_600_000])
  expect((await follow(app, FULL.code)).status).toBe(404)
  expect(await outcomes(app, LINES)).toEqual(LINES.map(() => 'exists'))
  const left = db.query('SELECT code FROM links WHERE delete_at IS NOT NULL').all()
  db.close()
  expect(left).toEqual([])
  expect((await follow(app, FULL.code)).status).toBe(302)
})
