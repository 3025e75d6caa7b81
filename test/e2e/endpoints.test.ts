import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Answer,
  type Body,
  type CallOptions,
  JSON_TYPE,
  type TestApp,
  testApp,
} from '../support/app.ts'
import { breakDatabase } from '../support/broken-database.ts'
import {
  BASE,
  CDN,
  type Link,
  NEW,
  OLD,
  type Request,
  ROWS,
  type Row,
  UNKNOWN,
} from '../support/endpoint-requests.ts'
import { ALL, type Endpoint, nameOf, pathOf, WRITES } from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { basic } from '../support/link-passwords.ts'
import { addKey } from '../support/members.ts'
import { disableLink } from '../support/moderation.ts'
import { type ApiDescription, describeApi } from '../support/openapi.ts'
import { outcome } from '../support/outcome.ts'

/** Every endpoint once, and checks that run over all of them. */

const MAX_BODY = 8 * 1024 * 1024
const UNTIL = Date.UTC(2026, 2, 2)
/** Two random ids do not reveal how many requests came between them. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

const hasBody = ({ method }: Endpoint) => method !== 'GET'
const typeOf = ({ path }: Endpoint) => (path === '/api/import' ? 'application/x-ndjson' : JSON_TYPE)

function pathWith(endpoint: Endpoint, { code, query }: Request): string {
  const path = pathOf(endpoint, code)
  return query === undefined ? path : `${path}?${query}`
}

const bodyWith = (endpoint: Endpoint, { json }: Request): CallOptions =>
  hasBody(endpoint)
    ? { raw: JSON.stringify(json), headers: { 'content-type': typeOf(endpoint) } }
    : {}

/** Sends requests, and compares every answer with the API description and with the contract. */
class Judge {
  readonly app: TestApp
  readonly api: ApiDescription
  /** An API key that is read-only. */
  readonly reader: string
  readonly #ids = new Set<string>()

  constructor(app: TestApp, api: ApiDescription) {
    this.app = app
    this.api = api
    app.key('pro')
    this.reader = addKey(app, 'pro@example.com', { name: 'Reader', scope: 'read' })
  }

  async ask(endpoint: Endpoint, path: string, options: CallOptions): Promise<Answer> {
    return this.#judge(endpoint, path, await this.app.call(endpoint.method, path, options))
  }

  /** `options` replace the plain form of the request. */
  async expect(endpoint: Endpoint, [status, says, request]: Row, options: CallOptions = {}) {
    const path = pathWith(endpoint, request)
    const body = bodyWith(endpoint, request)
    const answer = await this.ask(endpoint, path, { key: 'pro', ...body, ...options })
    const at = `${endpoint.method} ${path} ${JSON.stringify(request.json ?? null).slice(0, 100)}`
    expect({ ...outcome(at, answer), body: {} }).toEqual({ at, status, body: {} })
    if (status === 302) expect(answer.headers.get('location')).toBe(says as string)
    else if (status >= 300) expectError(at, answer, says)
    else if (says !== undefined) {
      expect(answer.body).toEqual(says as Body)
      this.#expectDocumented(nameOf(endpoint), answer)
    }
  }

  /** The document has exactly the fields of the answer and of the items of its list. */
  #expectDocumented(name: string, { status, body }: Answer) {
    const found = [{ inside: [] as string[], object: body }]
    for (const list of ['items', 'results']) {
      const [object] = (body[list] as Body[] | undefined) ?? []
      if (object) found.push({ inside: [list], object })
    }
    for (const { inside, object } of found) {
      const own = Object.keys(object).sort()
      // An item of a batch has one of two forms, documented as one object with the fields of both.
      const isItem = inside[0] === 'results'
      const fields = isItem ? [...own, 'error'].sort() : own
      const required = isItem ? ['ok', 'url'] : own
      const documented = { fields, required, additionalProperties: false }
      expect({ name, inside, ...this.api.fieldsOf(name, status, inside) }).toEqual({
        name,
        inside,
        ...documented,
      })
    }
  }

  #judge(endpoint: Endpoint, path: string, answer: Answer): Answer {
    const { status, headers } = answer
    const at = `${endpoint.method} ${path}`
    const id = headers.get('x-request-id') ?? ''
    expect({ at, faults: this.api.faultsOf(nameOf(endpoint), answer) }).toEqual({ at, faults: [] })
    expect({ at, id }).toEqual({ at, id: expect.stringMatching(RANDOM_UUID) })
    expect({ at, repeated: this.#ids.has(id) }).toEqual({ at, repeated: false })
    expect({ at, waits: headers.has('retry-after') }).toEqual({
      at,
      waits: status === 429 || status === 503,
    })
    this.#ids.add(id)
    return answer
  }
}

/** The error alone, with `request_id` if the service failed. */
function expectError(at: string, { status, headers, body }: Answer, says: unknown) {
  const error = typeof says === 'string' ? says : expect.stringMatching((says as RegExp) ?? /./)
  const id = status >= 500 ? { request_id: headers.get('x-request-id') } : {}
  expect({ at, body }).toEqual({ at, body: { error, ...id } })
  expect(headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(headers.get('location')).toBeNull()
}

/** Wrong in everything that can be refused without an account. */
const WRONG_IN_ALL: CallOptions = {
  key: 'nonsense',
  raw: '{',
  headers: { 'content-type': 'text/plain' },
}

/** All refuse the caller without budget like that, whatever else is wrong with the request. */
async function expectAll(
  judge: Judge,
  endpoints: readonly Endpoint[],
  [status, error, seconds]: readonly [number, string, string],
) {
  for (const endpoint of endpoints) {
    for (const method of [endpoint.method, 'PUT']) {
      const path = `${pathOf(endpoint, UNKNOWN)}?limit=x&size=x`
      const at = `${method} ${path}`
      const options = { ...(method === 'GET' ? { key: 'nonsense' } : WRONG_IN_ALL), from: SPENT }
      const answer =
        method === 'PUT'
          ? await judge.app.call(method, path, options)
          : await judge.ask(endpoint, path, options)
      expect({ at, status: answer.status }).toEqual({ at, status })
      expectError(at, answer, error)
      expect({ at, wait: answer.headers.get('retry-after') }).toEqual({ at, wait: seconds })
    }
  }
}

const SPENT = '192.0.2.9'

/** Spends both budgets of an address. */
async function spendAll(app: TestApp): Promise<void> {
  const writes = Array.from({ length: 60 }, () => app.call('POST', '/api/shorten', { from: SPENT }))
  const reads = Array.from({ length: 300 }, () => app.call('GET', `/${UNKNOWN}`, { from: SPENT }))
  await Promise.all([...writes, ...reads])
}

/** 503 during maintenance and 429 without a budget come before everything else. */
async function refuseBeforeLooking(judge: Judge): Promise<void> {
  const { app } = judge
  const halted = ALL.filter(({ duringMaintenance }) => !duringMaintenance)
  const served = ALL.filter(({ duringMaintenance }) => duringMaintenance)
  const tooMany = [429, 'Rate limit exceeded. Retry in 60 seconds.', '60'] as const
  await spendAll(app)
  await expectAll(judge, ALL, tooMany)
  app.maintenance(UNTIL)
  const text = 'Service under maintenance until 2026-03-02T00:00:00.000Z'
  await expectAll(judge, halted, [503, text, '43200'])
  await expectAll(judge, served, tooMany)
  app.maintenance(undefined)
}

/** The refusals that depend on the request, from the first to none. */
async function expectRows(judge: Judge, endpoint: Endpoint, link: Link, foreign: Link) {
  const rows = ROWS[nameOf(endpoint)]?.(link, foreign) as readonly Row[]
  const good = rows.at(-1)?.[2] as Request
  const wrongPath = { ...good, query: 'limit=x' }
  const expectWith = (status: number, says: unknown, options: CallOptions, request = good) =>
    judge.expect(endpoint, [status, says, request], options)
  if (endpoint.needsKey) {
    const text = 'Invalid or missing API key'
    await expectWith(401, text, hasBody(endpoint) ? WRONG_IN_ALL : { key: 'nonsense' }, wrongPath)
    await expectWith(401, text, { key: 'nonsense' })
    await expectWith(401, text, { key: link.passcode })
  }
  if (hasBody(endpoint)) {
    const raw = JSON.stringify(good.json)
    const [text, json] = ['text/plain', typeOf(endpoint)].map((type) => ({
      headers: { 'content-type': type },
    }))
    const long = ' '.repeat(MAX_BODY + 1)
    await expectWith(403, 'This API key is read-only', { ...text, raw, key: judge.reader })
    await expectWith(415, /^Unsupported media type: send Content-Type: /, { ...text, raw: long })
    await expectWith(413, /^Request body too large: at most /, { ...json, raw: long })
    const cut = endpoint.path === '/api/import' ? '' : raw.slice(0, -1)
    await expectWith(400, undefined, { ...json, raw: cut })
  }
  for (const row of rows) await judge.expect(endpoint, row)
}

/** 500 for what needs the table of links, with an id that is in the log. */
async function failEverywhere(judge: Judge): Promise<void> {
  const { app } = judge
  const { code, passcode } = await app.claim('UNCACHED')
  await app.claim('CACHED26')
  await judge.expect(
    endpointOf('POST /api/reserve'),
    [422, /^Quota exceeded: /, { json: { code: 'THIRD26' } }],
    { key: 'free' },
  )
  using _broken = breakDatabase(app.dataDir)
  for (const endpoint of ALL.filter((one) => !WITHOUT_500.includes(nameOf(one)))) {
    const json = {
      'POST /api/shorten': { url: NEW },
      'POST /api/reserve': { code },
      'POST /api/update': { code, passcode, url: NEW },
      'POST /api/delete': { code, passcode },
      'POST /api/bulk-shorten': { urls: [NEW] },
      'POST /api/import': { url: NEW },
    }[nameOf(endpoint)]
    await judge.expect(endpoint, [500, 'Internal server error', { code, json: json ?? {} }], {
      key: 'free',
    })
  }
}

// The one failure of the status that can be brought about is a 503, and the hits and visits of an
// account are in pages that the reader thread has in memory.
const WITHOUT_500 = ['GET /api/domains', 'GET /api/hits', 'GET /api/status', 'GET /api/visits']

const endpointOf = (name: string) => ALL.find((one) => nameOf(one) === name) as Endpoint

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
// spec: POST /api/shorten | Response 201
// spec: POST /api/reserve | Response 201
// spec: POST /api/update | Response 200
// spec: POST /api/delete | Response 200
// spec: POST /api/bulk-shorten | Response 201
// spec: GET /api/lookup/{code} | Response 200
// spec: GET /api/list | Response 200
// spec: GET /api/qr-image/{code} | Response 200
// spec: GET /api/status | Response 200
// spec: Authentication | 1
// spec: Errors | 401 API key missing
// spec: Errors | 409 code already in use
// spec: Errors | 422 destination host on the abuse blocklist
// spec: Errors | 429 rate limit exceeded
// spec: Errors | 500 internal failure
// spec: Errors | 503 planned maintenance
// spec: Errors | All error responses are JSON
// spec: Errors | 5xx responses also carry request_id
// spec: Limits | `Retry-After` (seconds) appears on 429 and 503 only
// spec: What the service does | Request and response bodies are JSON
// spec: Code (short link) | code
// spec: Code (short link) | url
// spec: Code (short link) | passcode
// spec: Code (short link) | short_url
// spec: Code (short link) | qr_url
// spec: Code (short link) | qr_storage_url
// spec: Code (short link) | created_at
// spec: Code (short link) | reused
// spec: Code (short link) | reserved
// spec: Code (short link) | updated
// spec: Code (short link) | deleted
// spec: Limits | Passcode length
// design: 4.4 order of refusals
// design: 4.13 maintenance
// design: 4.16 order of what is wrong with a body
test('every endpoint refuses in one order, answers as documented, and every documented answer can happen', async () => {
  using folder = temporaryFolder()
  const list = join(folder.path, 'hosts.txt')
  writeFileSync(list, 'blocked.example\n')
  const env = {
    BLOCKLIST_FILES: list,
    BASE_URL: BASE,
    CDN_URL: CDN,
    // One link in memory: of any other that is held, the database has to tell.
    LINK_CACHE_MAX: '1',
    FREE_LINKS_MAX: '2',
    IMPORT_ALIASES: 'all',
  }
  await using app = await testApp({ env })
  const judge = new Judge(app, await describeApi(app))
  await refuseBeforeLooking(judge)
  const foreign = await app.claim('FOREIGN1', OLD, 'pro-2')
  for (const [index, endpoint] of ALL.entries()) {
    const link = await app.claim(`LADDER${String.fromCharCode(65 + index)}`, OLD, 'pro')
    await expectRows(judge, endpoint, link, foreign)
  }
  const { code } = foreign
  const change = { key: 'pro-2', json: { password: 'open sesame' } }
  expect((await app.call('PATCH', `/api/links/${code}`, change)).status).toBe(200)
  await judge.expect(endpointOf('GET /{code}'), [
    401,
    `Password required for code ${code}`,
    { code },
  ])
  const wrong = [403, `Wrong password for code ${code}`, { code }] as const
  await judge.expect(endpointOf('GET /{code}'), wrong, { headers: basic('wrong one') })
  await disableLink(app, foreign.code, 'Reported')
  const gone = [410, `Link disabled: ${foreign.code}`, { code: foreign.code }] as const
  await judge.expect(endpointOf('GET /{code}'), gone)
  await failEverywhere(judge)
  expect(judge.api.unseen().sort()).toEqual(WITHOUT_500.map((name) => `${name} 500`))
})

test('no refusal repeats the passcode or the body, nor does the log', async () => {
  await using app = await testApp()
  const { code, passcode } = await app.shorten('https://example.com/')
  const canary = 'CANARY7F3'
  const bodies = [
    { code, passcode, url: `ftp://${canary}` },
    { code, passcode, url: 5, more: canary },
    { code, passcode: [passcode], url: canary },
    { code: [code, canary], passcode },
    { code: 'no code', passcode, url: `gopher://example.com/${canary}` },
    [passcode, canary],
  ]
  const headers = { 'content-type': JSON_TYPE }
  const requests: CallOptions[] = [
    ...bodies.map((json) => ({ json })),
    { raw: `{"passcode":"${passcode}",${canary}`, headers },
    { raw: `${passcode}&${canary}` },
  ]
  for (const { path } of WRITES) {
    for (const request of requests) {
      const { status, text, headers } = await app.call('POST', path, { key: 'pro', ...request })
      expect(status).toBeGreaterThanOrEqual(400)
      const all = text + JSON.stringify([...headers])
      expect([all.includes(passcode), all.includes(canary)]).toEqual([false, false])
    }
  }
  const log = app.log.join('\n')
  expect([log.includes(passcode), log.includes(canary)]).toEqual([false, false])
})
