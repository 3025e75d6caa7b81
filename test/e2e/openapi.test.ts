import { expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { VERSION } from '../../src/lib/version.ts'
import { JSON_TYPE, testApp } from '../support/app.ts'
import { ALL, ENDPOINTS, nameOf } from '../support/endpoints.ts'
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
    servers: [{ url: '/' }, { url: 'http://hop.test' }],
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
  expect([...operations.keys()].sort()).toEqual(ALL.map(nameOf).sort())
  const ids = [...operations.values()].map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ALL.length)
  for (const endpoint of ALL) {
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
  'POST /api/import': [
    'query dry_run',
    'query planned_bytes',
    'query planned_lines',
    'query planned_links',
  ],
  'GET /api/export': ['query format'],
  'GET /api/hits': ['query by', 'query from', 'query to'],
  'GET /api/links/{code}/hits': ['query by', 'query from', 'query to'],
  'GET /api/visits': VISITS_QUERY,
  'GET /api/links/{code}/visits': VISITS_QUERY,
  'GET /api/qr/{code}': [
    'query caption',
    'query dark',
    'query format',
    'query level',
    'query light',
    'query logo',
    'query margin',
    'query size',
  ],
}

const FIELDS: Record<string, string[]> = {
  'POST /api/shorten': ['url'],
  'POST /api/reserve': ['code'],
  'POST /api/update': ['code', 'passcode', 'url'],
  'POST /api/delete': ['code', 'passcode'],
  'POST /api/bulk-shorten': ['urls'],
  'POST /api/import': ['url'],
}

/** Fields of a body in which none is required. */
const OPTIONAL_FIELDS: Record<string, string[]> = {
  'PATCH /api/links/{code}': [
    'aliases',
    'expired_url',
    'expires_at',
    'forward_query',
    'max_hits',
    'no_index',
    'note',
    'paused',
    'starts_at',
    'tags',
    'title',
  ],
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
    [...(name.includes('{code}') ? ['path code, required'] : []), ...(QUERIES[name] ?? [])],
  ])
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted))
})

test('every operation documents its body, as the contract lists the fields', async () => {
  await using app = await testApp()
  for (const [name, { requestBody }] of (await describeApi(app)).operations) {
    const fields = FIELDS[name] ?? OPTIONAL_FIELDS[name]
    const types = Object.keys(requestBody?.content ?? {})
    const type = name === 'POST /api/import' ? 'application/x-ndjson' : JSON_TYPE
    expect({ name, types }).toEqual({ name, types: fields ? [type] : [] })
    if (!fields) continue
    const schema = requestBody?.content[type]?.schema as {
      properties: object
      required?: string[]
    }
    expect(requestBody?.required).toBe(true)
    // The fields of an imported link are those of its properties and more.
    const isComplete = type === JSON_TYPE
    const found = Object.keys(schema.properties).sort()
    expect(isComplete ? found : found.filter((one) => fields.includes(one))).toEqual(fields)
    expect([...(schema.required ?? [])].sort()).toEqual(FIELDS[name] ?? [])
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
