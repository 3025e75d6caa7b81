import { expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { VERSION } from '../../src/lib/version.ts'
import { JSON_TYPE, testApp } from '../support/app.ts'
import { ALL, ENDPOINTS, nameOf, WEBHOOKS } from '../support/endpoints.ts'
import { describeApi } from '../support/openapi.ts'

/** The published API description against the contract. */

// spec: What the service does | The API description is published as OpenAPI 3.0
test('/docs/json is a valid OpenAPI 3.0.3 document', async () => {
  await using app = await testApp()
  const { body, headers } = await app.call('GET', '/docs/json')
  expect(headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(body).toMatchObject({
    openapi: '3.0.3',
    info: { title: 'Hopcode', version: VERSION },
    servers: [{ url: 'http://hop.test' }, { url: '/' }],
  })
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(body))
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
  expect(validator.version).toBe('3.0')
})

// spec: Endpoints | POST /api/shorten
// spec: Endpoints | POST /api/reserve
// spec: Endpoints | POST /api/update
// spec: Endpoints | POST /api/delete
// spec: Endpoints | POST /api/bulk-shorten
// spec: Endpoints | GET /api/lookup/{code}
// spec: Endpoints | GET /api/list
// spec: Endpoints | GET /api/qr/{code}
// spec: Endpoints | GET /qr/{code}
// spec: Endpoints | GET /api/qr-image/{code}
// spec: Endpoints | GET /{code}
// spec: Endpoints | GET /api/status
test('the document names exactly the twelve endpoints and those beyond the spec, and which of them need a key', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  expect(ENDPOINTS).toHaveLength(12)
  const all = [...ALL, ...WEBHOOKS]
  expect([...operations.keys()].sort()).toEqual(all.map(nameOf).sort())
  const ids = [...operations.values()].map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(all.length)
  for (const endpoint of all) {
    const operation = operations.get(nameOf(endpoint))
    expect(operation?.security).toEqual(endpoint.needsKey ? [{ apiKey: [] }] : [])
    expect(operation?.summary).toMatch(/./)
    expect([nameOf(endpoint), operation?.description]).toEqual([
      nameOf(endpoint),
      expect.any(String),
    ])
    expect(operation?.tags).toHaveLength(1)
  }
})

const VISITS_QUERY = ['query by', 'query format', 'query from', 'query limit', 'query to']
const QUERIES: Record<string, string[]> = {
  'GET /api/list': ['query limit', 'query offset', 'query search'],
  'POST /api/import': ['query dry_run'],
  'GET /api/export': ['query format'],
  'GET /api/hits': ['query by', 'query from', 'query to'],
  'GET /api/links': ['query limit', 'query offset', 'query search', 'query state', 'query tag'],
  'GET /api/links/{code}/history': ['query before', 'query limit'],
  'GET /api/links/{code}/hits': ['query by', 'query from', 'query to'],
  'GET /api/visits': VISITS_QUERY,
  'GET /api/webhooks/{id}/deliveries': ['query limit'],
  'GET /api/links/{code}/visits': VISITS_QUERY,
  'GET /api/qr/{code}': [
    'query capitals',
    'query caption',
    'query dark',
    'query format',
    'query level',
    'query light',
    'query logo',
    'query margin',
    'query mm',
    'query ref',
    'query size',
    'query transparent',
  ],
}

const FIELDS: Record<string, string[]> = {
  'POST /api/shorten': ['url'],
  'POST /api/reserve': ['code'],
  'POST /api/update': ['code', 'passcode', 'url'],
  'POST /api/delete': ['code', 'passcode'],
  'POST /api/bulk-shorten': ['urls'],
  'POST /api/webhooks': ['url', 'events'],
}

const SETTABLE = [
  'aliases',
  'destinations',
  'display_alias',
  'domain',
  'domain_aliases',
  'expired_url',
  'expires_at',
  'forward_path',
  'forward_query',
  'max_hits',
  'no_index',
  'password',
  'note',
  'paused',
  'starts_at',
  'tags',
  'title',
]
const OPTIONAL_FIELDS: Record<string, string[]> = {
  'POST /api/shorten': ['code', ...SETTABLE],
  'POST /api/reserve': SETTABLE,
  'PATCH /api/links/{code}': ['url', ...SETTABLE],
  'PATCH /api/webhooks/{id}': ['enabled', 'events', 'url'],
}

test('every operation documents each parameter once, as the contract lists them', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const found = [...operations].map(([name, { parameters }]) => [
    name,
    parameters.map((one) => `${one.in} ${one.name}${one.required ? ', required' : ''}`).sort(),
  ])
  const wanted = [...operations.keys()].map((name) => [
    name,
    [
      ...[/\{(\w+)\}/.exec(name)?.[1]].flatMap((part) => (part ? [`path ${part}, required`] : [])),
      ...(QUERIES[name] ?? []),
    ],
  ])
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted))
})

test('every operation documents its body, as the contract lists the fields', async () => {
  await using app = await testApp()
  for (const [name, { requestBody }] of (await describeApi(app)).operations) {
    if (name === 'POST /api/import') continue
    const fields = [...(FIELDS[name] ?? []), ...(OPTIONAL_FIELDS[name] ?? [])].sort()
    const types = Object.keys(requestBody?.content ?? {})
    expect({ name, types }).toEqual({ name, types: fields.length > 0 ? [JSON_TYPE] : [] })
    if (fields.length === 0) continue
    const schema = requestBody?.content[JSON_TYPE]?.schema as {
      properties: object
      required?: string[]
    }
    expect(requestBody?.required).toBe(true)
    expect(Object.keys(schema.properties).sort()).toEqual(fields)
    // In the order in which they are checked.
    expect(schema.required ?? []).toEqual(FIELDS[name] ?? [])
  }
})

test('the parameters have the defaults and the bounds of the contract', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const schemaOf = (name: string, parameter: string) =>
    operations.get(name)?.parameters.find((one) => one.name === parameter)?.schema
  const list = 'GET /api/list'
  const qr = 'GET /api/qr/{code}'
  expect(schemaOf(list, 'limit')).toMatchObject({
    type: 'integer',
    minimum: 1,
    maximum: 200,
    default: 50,
  })
  expect(schemaOf(list, 'offset')).toMatchObject({ type: 'integer', minimum: 0, default: 0 })
  expect(schemaOf(list, 'search')).toMatchObject({ type: 'string' })
  expect(schemaOf(qr, 'format')).toMatchObject({ enum: ['png', 'svg'], default: 'png' })
  expect(schemaOf(qr, 'size')).toMatchObject({
    type: 'integer',
    minimum: 64,
    maximum: 2048,
    default: 512,
  })
  expect(schemaOf(qr, 'dark')).toMatchObject({ type: 'string', default: '#1a2e4f' })
  expect(schemaOf(qr, 'light')).toMatchObject({ type: 'string', default: '#ffffff' })
})

/** What generators of clients (openapi-generator and others) cannot use, or use wrongly. */

interface Part {
  [keyword: string]: unknown
  type?: string
  enum?: unknown[]
  maximum?: number
  default?: unknown
}

/** All objects of a document, with their paths in it. */
function partsOf(value: unknown, path: readonly string[] = []): [string, Part][] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([key, one]) => partsOf(one, [...path, key]))
  return [[path.join(' '), value as Part], ...inner]
}

const pathsOf = (parts: [string, Part][], isFound: (part: Part, path: string) => boolean) =>
  parts.filter(([path, part]) => isFound(part, path)).map(([path]) => path)

test('every value of the description has a type that clients of each language can store', async () => {
  await using app = await testApp()
  const parts = partsOf((await describeApi(app)).document)
  const integers = parts.filter(([, { type }]) => type === 'integer')
  expect(integers.length).toBeGreaterThan(40)
  const narrow = pathsOf(integers, ({ format, maximum = Infinity }) => {
    return format !== 'int64' && maximum >= 2 ** 31
  })
  expect(narrow).toEqual([])
  expect(pathsOf(parts, (part) => part.enum?.includes(null) ?? false)).toEqual([])
  const otherType = ({ type, default: value }: Part) =>
    typeof value === 'string' && type !== undefined && type !== 'string'
  expect(pathsOf(parts, otherType)).toEqual([])
  expect(pathsOf(integers, (part) => part.pattern !== undefined)).toEqual([])
  expect(pathsOf(parts, (part) => Boolean(part.anyOf ?? part.oneOf))).toEqual([])
})

test('the description of a tag fits exactly the texts that a search for a tag accepts', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const parameters = operations.get('GET /api/links')?.parameters ?? []
  const { schema } = parameters.find(({ name }) => name === 'tag') ?? {}
  const { minLength = 0, maxLength = 0, pattern = '' } = schema as Record<string, never>
  const fits = (text: string) =>
    [...text].length >= minLength &&
    [...text].length <= maxLength &&
    new RegExp(pattern, 'u').test(text)
  const refused = [
    '',
    ' ',
    '\t',
    '\n',
    '\u00a0',
    '\u3000\ufeff',
    ',',
    'a,b',
    'a,',
    '\0',
    'a\u001fb',
  ]
  const others = ['a\u0085b', '\u007f', 'x'.repeat(41), '🎄'.repeat(41)]
  const accepted = [
    'a',
    ' a ',
    'a\tb',
    'a\r\nb',
    'ö',
    'Spring 26',
    '\u00a0a',
    'a\u200b',
    '🎄'.repeat(40),
  ]
  for (const tag of [...refused, ...others, ...accepted]) {
    const { status } = await app.call('GET', `/api/links?${new URLSearchParams({ tag })}`, {
      key: 'enterprise',
    })
    const expected = accepted.includes(tag) ? 200 : 400
    expect({ tag, status, fits: fits(tag) }).toEqual({
      tag,
      status: expected,
      fits: expected === 200,
    })
  }
})

test('bodies of requests are described as closed: other fields are refused', async () => {
  await using app = await testApp()
  const { document } = await describeApi(app)
  const { schemas } = document.components as { schemas: Record<string, Part> }
  const bodies = ['ShortenBody', 'ReserveBody', 'UpdateBody', 'DeleteBody', 'BulkShortenBody']
  for (const name of [...bodies, 'LinkChange', 'ImportedLink', 'RuledDestination']) {
    expect({ name, more: schemas[name]?.additionalProperties }).toEqual({ name, more: false })
  }
})

test('every JSON body and response refers to a named schema, and every name is used', async () => {
  await using app = await testApp()
  const { document, operations } = await describeApi(app)
  const parts = partsOf(document)
  const bodies = parts.filter(([path]) => path.endsWith(`content ${JSON_TYPE} schema`))
  expect(bodies.length).toBeGreaterThan(20)
  expect(pathsOf(bodies, (part) => part.$ref === undefined)).toEqual([])
  const { schemas } = document.components as { schemas: object }
  expect(Object.keys(schemas)).toEqual(expect.arrayContaining(['Link', 'Error']))
  expect(pathsOf(parts, (part) => 'definitions' in part)).toEqual([])
  const refs = new Set(parts.map(([, { $ref }]) => $ref))
  // Generators name types after both.
  const ids = [...operations.values()].map(({ operationId }) => operationId.toLowerCase())
  expect(Object.keys(schemas).filter((name) => ids.includes(name.toLowerCase()))).toEqual([])
  // Clients have a function New… for each type in Go, and a class …Test for each type in Java.
  const made = (name: string) => name.startsWith('New') && name.slice('New'.length) in schemas
  expect(Object.keys(schemas).filter((name) => made(name) || /Test$/.test(name))).toEqual([])
  // The line of an import is described in the text of its operation.
  const unused = Object.keys(schemas).filter((name) => !refs.has(`#/components/schemas/${name}`))
  expect(unused).toEqual(['ImportedLink'])
})

test('the names of operations are no reserved words, and published names stay', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const ids = [...operations.values()].map(({ operationId }) => operationId)
  const reserved = [
    'list',
    'delete',
    'import',
    'export',
    'default',
    'type',
    'switch',
    'use',
    'return',
  ]
  expect(ids.filter((id) => reserved.includes(id))).toEqual([])
  for (const id of ['shorten', 'reserve', 'update', 'bulkShorten', 'lookup', 'qr', 'qrStorage']) {
    expect(ids).toContain(id)
  }
  for (const id of ['qrImage', 'follow', 'status', 'getLink', 'patchLink', 'importLinks', 'hits']) {
    expect(ids).toContain(id)
  }
})

test('the body of an import is a text, and its example can be imported', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const content = operations.get('POST /api/import')?.requestBody?.content ?? {}
  const [[type, { schema }] = ['', { schema: {} }], ...others] = Object.entries(content)
  expect(others).toEqual([])
  expect(schema).toEqual({ type: 'string', example: expect.any(String) })
  const { status, body } = await app.call('POST', '/api/import', {
    key: 'free',
    raw: schema.example as string,
    headers: { 'content-type': type },
  })
  expect({ status, body }).toMatchObject({ status: 200, body: { count: 2, links: 2 } })
})
