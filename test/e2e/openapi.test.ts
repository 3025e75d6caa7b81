import { expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { VERSION } from '../../src/lib/version.ts'
import { JSON_TYPE, testApp } from '../support/app.ts'
import { BEYOND_THE_SPEC, ENDPOINTS, nameOf } from '../support/endpoints.ts'
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
  const endpoints = [...ENDPOINTS, ...BEYOND_THE_SPEC]
  expect([...operations.keys()].sort()).toEqual(endpoints.map(nameOf).sort())
  const ids = [...operations.values()].map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(endpoints.length)
  for (const endpoint of endpoints) {
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

/** As the contract lists them, with what design decisions add. */
const STATUSES: Record<string, number[]> = {
  'POST /api/shorten': [200, 201, 400, 401, 403, 413, 415, 422, 429, 500, 503],
  'POST /api/reserve': [201, 400, 401, 403, 409, 413, 415, 422, 429, 500, 503],
  'POST /api/update': [200, 400, 401, 403, 413, 415, 422, 429, 500, 503],
  'POST /api/delete': [200, 400, 401, 403, 413, 415, 429, 500, 503],
  'POST /api/bulk-shorten': [201, 400, 401, 403, 413, 415, 422, 429, 500, 503],
  'GET /api/lookup/{code}': [200, 404, 429, 500, 503],
  'GET /api/list': [200, 400, 401, 429, 500, 503],
  'GET /api/qr/{code}': [200, 400, 404, 429, 500, 503],
  'GET /qr/{code}': [302, 404, 429, 500],
  'GET /api/qr-image/{code}': [200, 404, 429, 500, 503],
  'GET /{code}': [302, 404, 410, 429, 500],
  'GET /api/status': [200, 429, 500, 503],
  'GET /api/links/{code}': [200, 401, 404, 429, 500, 503],
  'PATCH /api/links/{code}': [200, 400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503],
  'POST /api/import': [200, 400, 401, 403, 413, 415, 429, 500, 503],
  'GET /api/export': [200, 400, 401, 429, 500, 503],
  'GET /api/hits': [200, 400, 401, 429, 500, 503],
  'GET /api/links/{code}/hits': [200, 400, 401, 404, 429, 500, 503],
  'GET /api/visits': [200, 400, 401, 429, 500, 503],
  'GET /api/links/{code}/visits': [200, 400, 401, 404, 429, 500, 503],
}

// spec: POST /api/shorten | Errors
// spec: POST /api/reserve | Errors
// spec: POST /api/update | Errors
// spec: POST /api/delete | Errors
// spec: POST /api/bulk-shorten | Request-level errors
// spec: GET /api/lookup/{code} | Error
// spec: GET /api/list | Errors
// spec: GET /api/qr/{code} | Error
// spec: GET /qr/{code} | Error
// spec: GET /api/qr-image/{code} | Error
// spec: GET /{code} | Returns 404
test('every operation documents all of its statuses', async () => {
  await using app = await testApp()
  const { operations } = await describeApi(app)
  const found = [...operations].map(([name, { responses }]) => [
    name,
    Object.keys(responses).map(Number).sort(),
  ])
  expect(Object.fromEntries(found)).toEqual(STATUSES)
})

const CREATED = ['code', 'created_at', 'passcode', 'qr_url', 'reused', 'short_url', 'url']

/** Of the answer that is neither a reuse nor a refusal. */
const ANSWERS: Record<string, readonly [number, string[]]> = {
  'POST /api/shorten': [201, CREATED],
  'POST /api/reserve': [201, ['code', 'created_at', 'passcode', 'reserved', 'short_url', 'url']],
  'POST /api/update': [200, ['code', 'short_url', 'updated', 'url']],
  'POST /api/delete': [200, ['code', 'deleted']],
  'POST /api/bulk-shorten': [201, ['count', 'results']],
  'GET /api/lookup/{code}': [200, ['code', 'created_at', 'hit_count', 'url']],
  'GET /api/list': [200, ['count', 'items', 'limit', 'offset', 'total']],
  'GET /api/qr-image/{code}': [200, ['code', 'qr_storage_url', 'qr_url', 'short_url', 'url']],
  'GET /api/status': [
    200,
    ['database', 'response_time_ms', 'status', 'timestamp', 'total_redirects', 'version'],
  ],
}

// spec: POST /api/shorten | Response 201
// spec: POST /api/reserve | Response 201
// spec: POST /api/update | Response 200
// spec: POST /api/delete | Response 200
// spec: POST /api/bulk-shorten | Response 201
// spec: GET /api/lookup/{code} | Response 200
// spec: GET /api/list | Response 200
// spec: GET /api/qr-image/{code} | Response 200
// spec: GET /api/status | Response 200
test('the answer of each operation has the fields of the contract, and no other', async () => {
  await using app = await testApp()
  const api = await describeApi(app)
  for (const [name, [status, fields]] of Object.entries(ANSWERS)) {
    expect({ name, ...api.fieldsOf(name, status) }).toEqual({
      name,
      fields,
      required: fields,
      additionalProperties: false,
    })
  }
  const items = ['code', 'created_at', 'hit_count', 'qr_url', 'short_url', 'url']
  expect(api.fieldsOf('GET /api/list', 200, ['items'])).toMatchObject({ fields: items })
  expect(api.fieldsOf('POST /api/bulk-shorten', 201, ['results'])).toMatchObject({
    fields: [...CREATED, 'ok'].sort(),
  })
})

const url = 'https://example.com/'
const passcode = 'A'.repeat(24)
const code = 'SPRING26'

/** Answered with 400 whoever sends them: a client can see it in the document beforehand. */
const REFUSED_BODIES: readonly (readonly [string, unknown])[] = [
  ['POST /api/shorten', {}],
  ['POST /api/shorten', { url: 5 }],
  ['POST /api/shorten', { url: 'ftp://example.com/' }],
  ['POST /api/shorten', { url: `https://example.com/${'x'.repeat(8192)}` }],
  ['POST /api/reserve', {}],
  ['POST /api/reserve', { code: 'ABCDE' }],
  ['POST /api/reserve', { code: 'MY-CODE' }],
  ['POST /api/update', { code, passcode }],
  ['POST /api/update', { code, url }],
  ['POST /api/update', { code, passcode, url: 'ftp://example.com/' }],
  ['POST /api/update', { code, passcode, url: `https://example.com/${'x'.repeat(8192)}` }],
  ['POST /api/delete', { code }],
  ['POST /api/delete', { code: 5, passcode }],
  ['POST /api/bulk-shorten', {}],
  ['POST /api/bulk-shorten', { urls: [] }],
  ['POST /api/bulk-shorten', { urls: [5] }],
  ['POST /api/bulk-shorten', { urls: url }],
]
const TAKEN_BODIES: readonly (readonly [string, unknown])[] = [
  ['POST /api/shorten', { url }],
  ['POST /api/shorten', { url: 'HTTP://EXAMPLE.COM' }],
  ['POST /api/reserve', { code: 'spring26' }],
  ['POST /api/update', { code, passcode, url }],
  ['POST /api/delete', { code: 'spring26', passcode }],
  ['POST /api/bulk-shorten', { urls: [url] }],
  ['POST /api/bulk-shorten', { urls: Array(1000).fill(url) }],
]

test('the documented bodies are those that the service takes', async () => {
  await using app = await testApp()
  const api = await describeApi(app)
  for (const [name, json] of REFUSED_BODIES) {
    const { status } = await app.call('POST', name.split(' ')[1] ?? '', { key: 'free', json })
    expect({ name, json, status }).toEqual({ name, json, status: 400 })
  }
  for (const [name, json] of TAKEN_BODIES) {
    const { status } = await app.call('POST', name.split(' ')[1] ?? '', { key: 'pro', json })
    expect({ name, json, status }).not.toMatchObject({ status: 400 })
  }
  expect({
    wronglyTaken: REFUSED_BODIES.filter(([name, body]) => api.takesBody(name, body)),
    wronglyRefused: TAKEN_BODIES.filter(([name, body]) => !api.takesBody(name, body)),
  }).toEqual({ wronglyTaken: [], wronglyRefused: [] })
})
