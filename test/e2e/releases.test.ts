import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { checkDatabase } from '../../src/backup/invariants.ts'
import { DATABASE_VERSION, migrate, versionOf } from '../../src/db/migrate.ts'
import { openWritable } from '../../src/db/open.ts'
import {
  type ApiDescription,
  breakingChanges,
  type Operation,
  type Schema,
} from '../support/api-changes.ts'
import { testApp } from '../support/app.ts'
import { Visitor } from '../support/dashboard.ts'
import { temporaryFolder } from '../support/folder.ts'
import { readApi, readKnown, releases, tablesOf, unpackRelease } from '../support/release-folder.ts'
import { codeOf } from '../support/totp.ts'

/** What every release from 1.0.0 on keeps of those before it. See docs/upgrades.md. */

const EACH = releases()

test.each(EACH)(
  'a folder of %s is upgraded with each row, and its check finds nothing',
  (release) => {
    using folder = temporaryFolder()
    unpackRelease(release, folder.path)
    using db = openWritable(join(folder.path, 'hopcode.db'))
    migrate(db)
    expect(versionOf(db)).toBe(DATABASE_VERSION)
    const { rows } = readKnown(release)
    const count = (table: string) =>
      db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n
    expect(Object.values(rows).filter((n) => n > 0).length).toBeGreaterThan(25)
    expect(Object.fromEntries(Object.keys(rows).map((table) => [table, count(table)]))).toEqual(
      rows,
    )
    expect(tablesOf(db)).toEqual(expect.arrayContaining(Object.keys(rows)))
    const problems = [...checkDatabase(db)].filter(({ status }) => status === 'problem')
    expect(problems).toEqual([])
  },
)

test.each(EACH)(
  'a folder of %s serves on: links, hits, keys, passwords and second factors',
  async (release) => {
    using folder = temporaryFolder()
    unpackRelease(release, folder.path)
    const known = readKnown(release)
    await using app = await testApp({
      dataDir: folder.path,
      realPasswords: true,
      env: { ALIASES: 'all' },
    })
    // After its last hits.
    app.advance(known.now - app.now())
    for (const [code, hits] of Object.entries(known.hits)) {
      const { body } = await app.call('GET', `/api/lookup/${code}`)
      expect([code, body.hit_count]).toEqual([code, hits])
    }
    const link = await app.call('GET', `/api/links/${Object.keys(known.destinations)[0]}`, {
      key: known.key,
    })
    expect(link.body).toMatchObject(known.link)
    for (const [path, url] of Object.entries(known.destinations)) {
      const { status, headers } = await app.call('GET', `/${path}`)
      expect([path, status, headers.get('location')]).toEqual([path, 302, url])
    }
    const { code, password } = known.protected
    expect((await app.call('GET', `/${code}`)).headers.get('location')).toBeNull()
    const opened = await app.call('POST', `/${code}`, {
      raw: new URLSearchParams({ password }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(opened.headers.get('location')).toBe('https://example.com/secret')
    const image = await app.call('GET', `/cdn/qr/${Object.keys(known.hits)[0]}.png`)
    expect(image.headers.get('content-type')).toBe('image/png')

    const owner = new Visitor(app)
    const asked = await owner.signIn('owner@example.com')
    const page = asked.location ?? '/app/sign-in/code'
    const done = await owner.post(page, { code: codeOf(known.totp, app.now()) })
    expect([done.status, (await owner.get('/app/service')).status]).toEqual([303, 200])
  },
)

test.each(EACH)('the API keeps what that of %s has promised', async (release) => {
  await using app = await testApp()
  const { body } = await app.call('GET', '/docs/json')
  const before = readApi(release) as ApiDescription
  expect(Object.keys(before.paths).length).toBeGreaterThan(15)
  expect(breakingChanges(before, body as never)).toEqual([])
})

test('the folder and the API of 1.0.0 are kept', () => {
  expect(EACH).toContain('1.0.0')
})

type Change = [name: string, before: Schema, now: Schema]
const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: 'object',
  properties,
  required,
})
const TEXT: Schema = { type: 'string' }

/** A description with one operation that has these schemas. */
const apiOf = (input: Schema, output: Schema, more: Partial<Operation> = {}): ApiDescription => ({
  paths: {
    '/api/shorten': {
      post: {
        parameters: [{ name: 'size', in: 'query', schema: TEXT }],
        requestBody: { content: { 'application/json': { schema: input } } },
        responses: { 201: { content: { 'application/json': { schema: output } } }, 400: {} },
        ...more,
      },
    },
  },
})
const EMPTY = object({})

const BREAKING_INPUTS: Change[] = [
  ['a field is removed', object({ url: TEXT }), EMPTY],
  ['a field has another type', object({ url: TEXT }), object({ url: { type: 'integer' } })],
  ['a field is now required', object({ url: TEXT }), object({ url: TEXT }, ['url'])],
  ['a new field is required', EMPTY, object({ url: TEXT }, ['url'])],
  ['null is refused', object({ url: { ...TEXT, nullable: true } }), object({ url: TEXT })],
  ['a value is refused', { type: 'string', enum: ['a', 'b'] }, { type: 'string', enum: ['a'] }],
  ['an item has another type', { type: 'array', items: TEXT }, { type: 'array', items: EMPTY }],
]
test.each(BREAKING_INPUTS)('a request that breaks is found: %s', (_, before, now) => {
  expect(breakingChanges(apiOf(before, EMPTY), apiOf(now, EMPTY))).toHaveLength(1)
  expect(breakingChanges(apiOf(before, EMPTY), apiOf(before, EMPTY))).toEqual([])
})

const BREAKING_OUTPUTS: Change[] = [
  ['a field is removed', object({ code: TEXT }), EMPTY],
  ['a field has another type', object({ code: TEXT }), object({ code: { type: 'integer' } })],
  ['a field may be absent', object({ code: TEXT }, ['code']), object({ code: TEXT })],
  ['a field may be null', object({ code: TEXT }), object({ code: { ...TEXT, nullable: true } })],
  ['one of several forms is gone', { oneOf: [TEXT, EMPTY] }, { oneOf: [TEXT] }],
]
test.each(BREAKING_OUTPUTS)('a response that breaks is found: %s', (_, before, now) => {
  expect(breakingChanges(apiOf(EMPTY, before), apiOf(EMPTY, now))).toHaveLength(1)
})

const size = { name: 'size', in: 'query', schema: TEXT }
const BREAKING_OPERATIONS: [name: string, now: Partial<Operation>][] = [
  ['a parameter is removed', { parameters: [] }],
  ['a parameter is now required', { parameters: [{ ...size, required: true }] }],
  ['a new parameter is required', { parameters: [size, { ...size, name: 'key', required: true }] }],
  ['the status of success is another one', { responses: { 200: {}, 201: {}, 400: {} } }],
  ['a refusal has another status', { responses: { 201: {}, 422: {} } }],
]
test.each(BREAKING_OPERATIONS)('an operation that breaks is found: %s', (_, now) => {
  const content = { 'application/json': { schema: EMPTY } }
  const responses = { ...now.responses, ...(now.responses && { 201: { content } }) }
  const later = apiOf(EMPTY, EMPTY, { ...now, ...(now.responses && { responses }) })
  expect(breakingChanges(apiOf(EMPTY, EMPTY), later)).toHaveLength(1)
})

test('an operation that is gone is found, and what is new and optional breaks nothing', () => {
  const before = apiOf(object({ url: TEXT }), object({ code: TEXT }))
  expect(breakingChanges(before, { paths: {} })).toEqual(['POST /api/shorten is gone'])
  const now = apiOf(object({ url: TEXT, title: TEXT }), object({ code: TEXT, title: TEXT }), {
    parameters: [size, { ...size, name: 'domain' }],
  })
  const operation = now.paths['/api/shorten']?.post as Operation
  operation.responses['429'] = {}
  now.paths['/api/new'] = { get: operation }
  expect(breakingChanges(before, now)).toEqual([])
})
