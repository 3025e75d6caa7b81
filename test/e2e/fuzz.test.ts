import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Answer, JSON_TYPE, type TestApp, testApp } from '../support/app.ts'
import { UNLIMITED } from '../support/binary.ts'
import { ENDPOINTS, nameOf } from '../support/endpoints.ts'
import { type Schema, valuesOf, violationsOf } from '../support/fuzz-values.ts'
import { type ApiDescription, describeApi, type Operation } from '../support/openapi.ts'

/**
 * Requests made from the published API description, and judged by it. The long form:
 * `FUZZ_REQUESTS=20000 bun test test/e2e/fuzz.test.ts --timeout 3600000`. A failure names its seed;
 * `FUZZ_SEED` takes it back.
 */

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 1500)
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
const TIMEOUT_MS = 60_000 + REQUESTS * 100

/** A held code and its passcode, for requests that are to find something. */
interface Held {
  code: string
  passcode: string
}

interface Fuzzed {
  app: TestApp
  api: ApiDescription
  held: Held[]
  /** How often each operation has answered with each status. */
  met: Map<string, number>
}

interface Sent {
  key?: string
  body?: unknown
  query?: Record<string, unknown>
  code?: string
}

async function fuzzed(): Promise<Fuzzed & AsyncDisposable> {
  const app = await testApp({ env: UNLIMITED })
  const api = await describeApi(app)
  const held: Held[] = []
  for (const code of ['FUZZED1', 'FUZZED2', 'FUZZED3']) {
    held.push(await app.claim(code, `https://example.com/${code}`, 'enterprise'))
  }
  const dispose = () => app[Symbol.asyncDispose]()
  return { app, api, held, met: new Map(), [Symbol.asyncDispose]: dispose }
}

/** Sends it, and holds the answer against the document. Throws what is wrong, with the request. */
async function send({ app, api, met }: Fuzzed, name: string, sent: Sent): Promise<Answer> {
  const [method = '', pattern = ''] = name.split(' ')
  const query = Object.entries(sent.query ?? {}).map(
    ([key, value]) => `${key}=${encodeURIComponent(String(value))}`,
  )
  const path = pattern.replace('{code}', encodeURIComponent(sent.code ?? ''))
  const answer = await app.call(method, query.length > 0 ? `${path}?${query.join('&')}` : path, {
    ...(sent.key !== undefined && { key: sent.key }),
    ...('body' in sent && { json: sent.body }),
  })
  const at = `${name} ${answer.status}`
  met.set(at, (met.get(at) ?? 0) + 1)
  const faults = api.faultsOf(name, answer)
  if (answer.status >= 500) faults.push('the service failed')
  complain(name, sent, answer, faults)
  return answer
}

function complain(name: string, sent: Sent, answer: Answer, faults: readonly string[]): void {
  if (faults.length === 0) return
  const request = JSON.stringify(sent).slice(0, 1000)
  throw new Error([`${name} ${request}`, ...faults, answer.text.slice(0, 500)].join('\n  '))
}

const SPEC: ReadonlySet<string> = new Set(ENDPOINTS.map(nameOf))

/**
 * Rules that the document cannot state: readers must tell the colors apart, a logo must have been
 * uploaded, and others need a larger image.
 */
const QR_OPTIONS = [
  'dark',
  'light',
  'margin',
  'level',
  'logo',
  'caption',
  'mm',
  'transparent',
  'capitals',
  'ref',
]

const bodySchema = ({ requestBody }: Operation) =>
  requestBody?.content[JSON_TYPE]?.schema as Schema | undefined

/** What an operation needs besides what is fuzzed: its key, and a code that is held. */
function plain(name: string, operation: Operation, { code }: Held): Sent {
  return {
    ...(operation.security.length > 0 && { key: 'enterprise' }),
    ...(name.includes('{code}') && { code }),
  }
}

const someHeld = fc.nat(1000)
const pick = ({ held }: Fuzzed, n: number) => held[n % held.length] as Held

async function run(
  check: fc.Arbitrary<(on: Fuzzed) => Promise<void>>,
  on: Fuzzed,
  numRuns: number,
) {
  await fc.assert(
    fc.asyncProperty(check, (one) => one(on)),
    { seed: SEED, numRuns, endOnFailure: true },
  )
}

/** Operations in turn, with what makes a check of each. */
function each(
  { api }: Fuzzed,
  checksOf: (name: string, operation: Operation) => fc.Arbitrary<(on: Fuzzed) => Promise<void>>[],
): fc.Arbitrary<(on: Fuzzed) => Promise<void>> {
  return fc.oneof(...[...api.operations].flatMap(([name, one]) => checksOf(name, one)))
}

const query = (operation: Operation) => operation.parameters.filter((one) => one.in === 'query')

/**
 * Without properties of links: they have rules that no description states, such as the order of two
 * times. link-properties.test.ts and create-fields.test.ts have those.
 */
function withoutProperties(schema: Schema | undefined): Schema | undefined {
  if (!schema?.properties) return schema
  const own = ['url', 'urls', 'code', 'passcode']
  const kept = Object.entries(schema.properties).filter(([name]) => own.includes(name))
  return { ...schema, properties: Object.fromEntries(kept) }
}

function goodRequest(name: string, operation: Operation) {
  const schema = withoutProperties(bodySchema(operation))
  const values = Object.fromEntries(
    query(operation)
      .filter((one) => !QR_OPTIONS.includes(one.name))
      .map((one) => [one.name, valuesOf(one.schema as Schema)]),
  )
  const code = valuesOf(
    operation.parameters.find((one) => one.in === 'path')?.schema ?? { enum: [''] },
  )
  return fc
    .record({
      body: schema ? valuesOf(schema) : fc.constant(undefined),
      query: fc.record(values, { requiredKeys: [] }),
      code: fc.option(code, { freq: 3 }),
      n: someHeld,
      isHeld: fc.boolean(),
    })
    .map((one) => async (on: Fuzzed) => {
      const held = pick(on, one.n)
      const isChange = /update|delete/.test(name)
      const known = { url: `https://example.com/${held.code}` }
      const body = {
        ...(one.body as object),
        ...(one.isHeld && isChange && held),
        // The one that each of the first codes has.
        ...(one.isHeld && name === 'POST /api/shorten' && known),
      }
      const sent: Sent = {
        ...plain(name, operation, held),
        query: one.query,
        ...(schema && { body }),
        ...(name.includes('{code}') && one.code !== null && { code: String(one.code) }),
      }
      const answer = await send(on, name, sent)
      const taken = [200, 201, 302, 403, 404, 409]
      const faults = taken.includes(answer.status) ? [] : ['a good request is refused']
      if (schema && !on.api.takesBody(name, body)) faults.push('the test sent a bad body')
      complain(name, sent, answer, faults)
      await remember(on, name, sent, answer)
    })
}

/** Keeps what was made for later requests; what was deleted must be gone for all of them. */
async function remember(on: Fuzzed, name: string, sent: Sent, answer: Answer): Promise<void> {
  const { code, passcode } = answer.body
  if (answer.status === 201 && typeof passcode === 'string') {
    on.held.push({ code: String(code), passcode })
  }
  if (name !== 'POST /api/delete' || answer.status !== 200) return
  on.held = on.held.filter((one) => one.code !== code)
  const url = 'https://example.com/'
  for (const [other, operation] of on.api.operations) {
    if (!other.includes('{code}') && !/update|delete/.test(other)) continue
    const again = {
      ...plain(other, operation, sent.body as Held),
      ...(bodySchema(operation) && {
        body: other.startsWith('PATCH')
          ? {}
          : { ...(sent.body as object), ...(other.endsWith('update') && { url }) },
      }),
    }
    const { status } = await send(on, other, again)
    expect({ other, status }).toEqual({ other, status: other.startsWith('POST') ? 403 : 404 })
  }
  while (on.held.length < 3) {
    // A URL of its own each time: for one that the account has, no passcode would come.
    on.held.push(await on.app.shorten(`https://example.com/${Bun.randomUUIDv7()}`, 'enterprise'))
  }
}

function badRequests(name: string, operation: Operation) {
  const schema = bodySchema(operation)
  const refused = (sent: (on: Fuzzed) => Sent) => async (on: Fuzzed) => {
    const one = sent(on)
    const answer = await send(on, name, one)
    const isRefused = answer.status >= 400 && answer.status < 500
    complain(name, one, answer, isRefused ? [] : ['a bad request is taken'])
  }
  const bodies = schema
    ? fc.tuple(violationsOf(schema), someHeld).map(([body, n]) =>
        refused((on) => {
          const known = on.api.takesBody(name, JSON.parse(JSON.stringify(body)))
          if (known) throw new Error(`the test sent a good body: ${JSON.stringify(body)}`)
          return { ...plain(name, operation, pick(on, n)), body }
        }),
      )
    : undefined
  const parameters = query(operation)
    .filter(({ schema }) => schema.type !== 'string' || schema.enum || schema.pattern)
    .map(({ name: parameter, schema }) =>
      fc
        .tuple(violationsOf(schema as Schema).filter(isText(schema as Schema)), someHeld)
        .map(([value, n]) =>
          refused((on) => ({
            ...plain(name, operation, pick(on, n)),
            query: { [parameter]: value },
          })),
        ),
    )
  const path = operation.parameters.find((one) => one.in === 'path')
  const codes = path
    ? violationsOf(path.schema as Schema)
        .filter((code) => typeof code === 'string' && code !== '' && !/^\.\.?$/.test(code))
        .map((code) =>
          refused((on) => ({ ...plain(name, operation, pick(on, 0)), code: String(code) })),
        )
    : undefined
  return [bodies, ...parameters, codes].filter((one) => one !== undefined)
}

/** In a query everything is text, which may turn a violation into what the schema takes. */
const isText = (schema: Schema) => (value: unknown) =>
  typeof value !== 'object' &&
  !schema.enum?.includes(String(value)) &&
  !(schema.pattern !== undefined && new RegExp(schema.pattern, 'u').test(String(value))) &&
  !(schema.type === 'integer' && /^\s*$|^\d+$/.test(String(value)) && typeof value === 'string')

test(
  `${REQUESTS} requests as described are taken, and answered as described, seed ${SEED}`,
  async () => {
    await using on = await fuzzed()
    await run(
      // Bodies and queries beyond the spec have rules that the document cannot state.
      each(on, (name, one) => (SPEC.has(name) ? [goodRequest(name, one)] : [])),
      on,
      Math.ceil(REQUESTS / 2),
    )
    const successes = [...on.met.keys()].filter((at) => / (20[01]|302)$/.test(at))
    expect(new Set(successes.map((at) => at.replace(/ \d+$/, ''))).size).toBe(12)
  },
  TIMEOUT_MS,
)

test(
  `requests against the description are refused, and answered as described, seed ${SEED}`,
  async () => {
    await using on = await fuzzed()
    await run(each(on, badRequests), on, Math.ceil(REQUESTS / 2))
    expect([...on.met.keys()].filter((at) => / [235]\d\d$/.test(at))).toEqual([])
  },
  TIMEOUT_MS,
)
