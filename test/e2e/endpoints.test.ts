import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disableLink } from '../support/administration.ts'
import {
  type Answer,
  type Body,
  type CallOptions,
  JSON_TYPE,
  type TestApp,
  testApp,
} from '../support/app.ts'
import { breakDatabase } from '../support/database.ts'
import {
  goodRequest,
  type Refusal,
  refusalsOf,
  type Sent,
  send,
  successesOf,
  UNKNOWN,
  type World,
} from '../support/described-requests.ts'
import { ALL, ENDPOINTS, type Endpoint, nameOf, outcome, WRITES } from '../support/endpoints.ts'
import { temporaryFolder } from '../support/folder.ts'
import { basic } from '../support/link-passwords.ts'
import { addKey, addManager } from '../support/members.ts'
import { type ApiDescription, describeApi, type Operation } from '../support/openapi.ts'
import { messageOf } from '../support/refusals.ts'

/** Every endpoint once, and checks that run over all of them. */

const UNTIL = Date.UTC(2026, 2, 2)
const OLD = 'https://example.com/old'
const BASE = 'http://sho.rt:8443'
const CDN = 'https://img.example/hop'
/** Two random ids do not reveal how many requests came between them. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
/** Where the endpoints lead that redirect. */
const LOCATIONS: Readonly<Record<string, (code: string) => string>> = {
  'GET /{code}': () => OLD,
  'GET /qr/{code}': (code) => `${CDN}/qr/${code}.png`,
}

/** Sends requests, and compares every answer with the API description and with the contract. */
class Judge {
  readonly app: TestApp
  readonly api: ApiDescription
  /** Of requests that name none. */
  key = 'pro'
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #ids = new Set<string>()

  constructor(app: TestApp, api: ApiDescription) {
    this.app = app
    this.api = api
    this.#operations = api.operations
  }

  operation(name: string): Operation {
    return this.#operations.get(name) as Operation
  }

  async ask(name: string, sent: Sent, options: CallOptions = {}): Promise<Answer> {
    const named = [name, this.operation(name)] as const
    const answer = await send(this.app, named, { key: this.key, ...sent }, options)
    this.#judge(name, answer)
    return answer
  }

  async expectRefusal(name: string, { status, says, sent }: Refusal, options: CallOptions = {}) {
    const answer = await this.ask(name, sent, options)
    const at = `${name} ${JSON.stringify({ ...sent, raw: sent.raw?.slice(0, 100) })}`
    expect({ ...outcome(at, answer), body: {} }).toEqual({ at, status, body: {} })
    expectError(at, answer, says)
  }

  async expectSuccess(name: string, { status, sent }: Omit<Refusal, 'says'>, code: string) {
    const answer = await this.ask(name, sent)
    expect(outcome(name, answer)).toMatchObject({ at: name, status })
    expect(answer.headers.get('location') ?? undefined).toBe(LOCATIONS[name]?.(code))
    if (SPEC.has(name)) this.#expectDocumented(name, answer)
  }

  /** The document has exactly the fields of the answer and of the items of its list. */
  #expectDocumented(name: string, { status, body }: Answer) {
    const found = Object.keys(body).length > 0 ? [{ inside: [] as string[], object: body }] : []
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

  #judge(at: string, answer: Answer): void {
    const { status, headers } = answer
    const id = headers.get('x-request-id') ?? ''
    expect({ at, faults: this.api.faultsOf(at, answer) }).toEqual({ at, faults: [] })
    expect({ at, id }).toEqual({ at, id: expect.stringMatching(RANDOM_UUID) })
    expect({ at, repeated: this.#ids.has(id) }).toEqual({ at, repeated: false })
    expect({ at, waits: headers.has('retry-after') }).toEqual({
      at,
      waits: status === 429 || status === 503,
    })
    this.#ids.add(id)
  }
}

const SPEC: ReadonlySet<string> = new Set(
  [...ENDPOINTS, { method: 'GET', path: '/api/domains' } as Endpoint].map(nameOf),
)

/** The error alone, with `request_id` if the service failed. */
function expectError(at: string, { status, headers, body }: Answer, says: string | RegExp) {
  const error = typeof says === 'string' ? says : expect.stringMatching(says)
  const id = status >= 500 ? { request_id: headers.get('x-request-id') } : {}
  expect({ at, body }).toEqual({ at, body: { error, ...id } })
  expect(headers.get('content-type')).toMatch(/^application\/json\b/)
  expect(headers.get('location')).toBeNull()
}

const SPENT = '192.0.2.9'

/** All refuse the caller without budget like that, whatever else is wrong with the request. */
async function expectAll(
  judge: Judge,
  endpoints: readonly Endpoint[],
  [status, error, seconds]: readonly [number, string, string],
) {
  for (const endpoint of endpoints) {
    const wrong = {
      key: 'nonsense',
      code: UNKNOWN,
      query: { limit: 'x', size: 'x' },
      ...(endpoint.method !== 'GET' && { raw: '{', type: 'text/plain' }),
    }
    const name = nameOf(endpoint)
    const other = ['PUT', endpoint.path].join(' ')
    for (const [at, answer] of [
      [name, await judge.ask(name, wrong, { from: SPENT })],
      [other, await send(judge.app, [other, judge.operation(name)], wrong, { from: SPENT })],
    ] as const) {
      expect({ at, status: answer.status }).toEqual({ at, status })
      expectError(at, answer, error)
      expect({ at, wait: answer.headers.get('retry-after') }).toEqual({ at, wait: seconds })
    }
  }
}

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
  const tooMany = [429, messageOf('rate_limited', '60'), '60'] as const
  await spendAll(app)
  await expectAll(judge, ALL, tooMany)
  app.maintenance(UNTIL)
  const text = messageOf('maintenance', '2026-03-02T00:00:00.000Z')
  await expectAll(judge, halted, [503, text, '43200'])
  await expectAll(judge, served, tooMany)
  app.maintenance(undefined)
}

/** 500 for what needs the table of links, with an id that is in the log. */
async function failEverywhere(judge: Judge): Promise<void> {
  const { app } = judge
  const link = await app.claim('UNCACHED')
  await app.claim('CACHED26')
  await judge.expectRefusal('POST /api/reserve', {
    status: 422,
    says: /^Quota exceeded: /,
    sent: { key: 'free', body: { code: 'THIRD26' } },
  })
  const key = addManager(app, 'free')
  using _broken = breakDatabase(app.dataDir)
  for (const name of ALL.map(nameOf).filter((one) => !WITHOUT_500.includes(one))) {
    const sent = { key, ...goodRequest(judge.operation(name), link) }
    await judge.expectRefusal(name, { status: 500, says: messageOf('internal'), sent })
  }
}

// The one failure of the status that can be brought about is a 503, and the hits and visits of an
// account are in pages that the reader thread has in memory.
const WITHOUT_500 = ['GET /api/domains', 'GET /api/hits', 'GET /api/status', 'GET /api/visits']

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
  judge.key = addManager(app, 'pro')
  const reader = addKey(app, 'pro@example.com', { name: 'Reader', scope: 'read' })
  for (const [index, endpoint] of ALL.entries()) {
    const own = await app.claim(`LADDER${String.fromCharCode(65 + index)}`, OLD, 'pro')
    const world: World = { own, foreign, reader, blocked: 'http://blocked.example/' }
    const name = nameOf(endpoint)
    const operation = judge.operation(name)
    for (const refusal of refusalsOf(operation, world)) await judge.expectRefusal(name, refusal)
    for (const good of successesOf(operation, world)) {
      await judge.expectSuccess(name, good, own.code)
    }
    // The budgets of the next endpoint are its own.
    app.advance(60_000)
  }
  const { code } = foreign
  const change = { key: 'pro-2', json: { password: 'open sesame' } }
  expect((await app.call('PATCH', `/api/links/${code}`, change)).status).toBe(200)
  const follow = (refusal: Omit<Refusal, 'sent'>, options?: CallOptions) =>
    judge.expectRefusal('GET /{code}', { ...refusal, sent: { code } }, options)
  await follow({ status: 401, says: messageOf('password_required', code) })
  const wrong = { status: 403, says: messageOf('wrong_password', code) }
  await follow(wrong, { headers: basic('wrong one') })
  await disableLink(app, code, 'Reported')
  await follow({ status: 410, says: messageOf('link_disabled', code) })
  await failEverywhere(judge)
  const unseen = judge.api.unseen().filter((name) => !name.includes(' /api/webhooks'))
  expect(unseen.sort()).toEqual(WITHOUT_500.map((name) => `${name} 500`))
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
